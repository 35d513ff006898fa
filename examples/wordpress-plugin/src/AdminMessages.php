<?php

namespace Profilesvc;

/**
 * Shows the problems on the dashboard, the list of plugins and the settings page.
 */
final class AdminMessages
{
    // [messages]
    private const SCREENS = ['dashboard', 'plugins', 'settings_page_profilesvc'];

    private Problems $problems;

    public function __construct(Problems $problems)
    {
        $this->problems = $problems;
    }

    public function register(): void
    {
        add_action('admin_notices', [$this, 'render']);
    }

    public function render(): void
    {
        $screen = get_current_screen();
        if (!current_user_can('manage_options') || !$screen || !in_array($screen->id, self::SCREENS, true)) {
            return;
        }
        foreach ($this->problems->all() as $problem) {
            printf(
                '<div class="notice notice-%s"><p><strong>%s</strong> %s%s%s</p></div>',
                'SITE_CHANGED' === $problem['code'] ? 'info' : 'warning',
                esc_html__('Business profile:', 'profilesvc'),
                esc_html(Words::of($problem['code'], $problem['details'])),
                self::link($problem['details']), // escaped
                self::reference((string) $problem['request_id']) // escaped
            );
        }
    }

    /**
     * Link the page where the owner can pay or choose a plan, if that is what helps.
     *
     * @param array<string, mixed> $details
     */
    private static function link(array $details): string
    {
        if (!in_array($details['deactivation_reason'] ?? '', ['billing_issue', 'plan_downgrade'], true)) {
            return '';
        }
        $safe = esc_url((string) ($details['upgrade_url'] ?? ''), ['https', 'http']);
        return $safe ? sprintf(' <a href="%s">%s</a>', $safe, esc_html__('Open billing', 'profilesvc')) : '';
    }

    /**
     * What support needs to find the request.
     */
    private static function reference(string $id): string
    {
        /* translators: %s: id of a request */
        $text = __('(Reference for support: %s)', 'profilesvc');
        return $id ? ' <small>' . esc_html(sprintf($text, $id)) . '</small>' : '';
    }
    // [/messages]
}
