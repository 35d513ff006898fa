<?php

namespace Profilesvc;

/**
 * A test on Tools > Site Health. It reads what is stored and sends no request.
 */
final class SiteHealth
{
    private Store $store;
    private Problems $problems;

    public function __construct(Store $store, Problems $problems)
    {
        $this->store    = $store;
        $this->problems = $problems;
    }

    public function register(): void
    {
        add_filter('site_status_tests', [$this, 'add']);
    }

    /**
     * @param array<string, mixed> $tests
     *
     * @return array<string, mixed>
     */
    public function add(array $tests): array
    {
        $tests['direct']['profilesvc'] = ['label' => __('Business profile', 'profilesvc'), 'test' => [$this, 'test']];
        return $tests;
    }

    /**
     * @return array<string, mixed>
     */
    public function test(): array
    {
        [$status, $label, $text] = $this->finding();
        return [
            'label'       => $label,
            'status'      => $status,
            'badge'       => ['label' => __('Business profile', 'profilesvc'), 'color' => 'blue'],
            'description' => '<p>' . esc_html($text) . '</p>',
            'actions'     => sprintf(
                '<a href="%s">%s</a>',
                esc_url(admin_url('options-general.php?page=profilesvc')),
                esc_html__('Settings', 'profilesvc')
            ),
            'test'        => 'profilesvc',
        ];
    }

    // [health]
    /**
     * @return array{string, string, string} status, label and description
     */
    private function finding(): array
    {
        $label = __('The business profile has a problem', 'profilesvc');
        if (!$this->store->get(Store::CREDENTIALS)) {
            return ['recommended', __('The business profile is not connected', 'profilesvc'), Words::of('NOT_CONNECTED')];
        }
        foreach ($this->problems->all() as $problem) {
            $status = 'SITE_VARIES' === $problem['code'] ? 'recommended' : 'critical';
            return [$status, $label, Words::of($problem['code'], $problem['details'])];
        }
        $last   = $this->store->get(Store::LAST_HEARTBEAT)['at'] ?? 0;
        $report = $this->store->get(Store::REPORT);
        if ($report && ('connection.site_mismatch' === $report['type'] || $report['at'] >= $last)) {
            return ['recommended', $label, Words::ofReport((string) $report['type'], (int) $report['at'])];
        }
        if (!Secrets::canSeal()) {
            $text = __('The client secret is stored without encryption, because PHP has no sodium, or wp-config.php has no AUTH_KEY and AUTH_SALT of its own. Add them to wp-config.php.', 'profilesvc');
            return ['recommended', __('The credentials of the business profile are not encrypted', 'profilesvc'), $text];
        }
        if (time() - $last > 2 * HOUR_IN_SECONDS) {
            $text = __('No heartbeat was sent in the last two hours. WP-Cron runs only when somebody visits the site: call wp-cron.php from the system\'s cron.', 'profilesvc');
            return ['recommended', $label, $text];
        }
        /* translators: %s: period, for example "5 minutes" */
        $text = sprintf(__('The last heartbeat was sent %s ago.', 'profilesvc'), human_time_diff($last, time()));
        return ['good', __('The business profile is connected', 'profilesvc'), $text];
    }
    // [/health]
}
