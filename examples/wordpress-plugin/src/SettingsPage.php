<?php

namespace Profilesvc;

/**
 * Settings > Business profile: connecting, the profile, the switch for posts.
 */
final class SettingsPage
{
    private const SLUG = 'profilesvc';

    private Store $store;
    private Connector $connector;
    private ProfileSync $sync;

    public function __construct(Store $store, Connector $connector, ProfileSync $sync)
    {
        $this->store     = $store;
        $this->connector = $connector;
        $this->sync      = $sync;
    }

    public function register(): void
    {
        add_action('admin_menu', function (): void {
            $title = __('Business profile', 'profilesvc');
            add_options_page($title, $title, 'manage_options', self::SLUG, [$this, 'render']);
        });
        foreach (['connect', 'disconnect', 'save', 'webhook'] as $action) {
            add_action("admin_post_profilesvc_$action", function () use ($action): void {
                $this->handle($action);
            });
        }
    }

    // [settings]
    private function handle(string $action): void
    {
        if (!current_user_can('manage_options')) {
            wp_die(esc_html__('You may not change these settings.', 'profilesvc'), '', 403);
        }
        check_admin_referer("profilesvc_$action");
        $form = wp_unslash($_POST);
        if ('connect' === $action) {
            $this->connect(self::text($form, 'client_id'), self::text($form, 'client_secret'));
        } elseif ('disconnect' === $action) {
            $this->connector->disconnect();
            $this->say('success', __('Disconnected.', 'profilesvc'));
        } elseif ('webhook' === $action) {
            $this->saveWebhook(self::text($form, 'webhook_secret'));
        } else {
            $this->save($form);
        }
        set_transient('settings_errors', get_settings_errors(), 30);
        wp_safe_redirect(admin_url('options-general.php?page=' . self::SLUG . '&settings-updated=true'));
        exit;
    }

    private function connect(string $clientId, string $clientSecret): void
    {
        $result = $this->connector->connect($clientId, $clientSecret);
        if ($result->isOk()) {
            $location = $result->data['location'];
            /* translators: 1: name of the location, 2: its address */
            $text = __('Connected to %1$s, %2$s.', 'profilesvc');
            $this->say('success', sprintf($text, $location['name'], $location['address']));
        } else {
            $this->say('error', Words::of($result->code, $result->details));
        }
    }
    // [/settings]

    private function saveWebhook(string $secret): void
    {
        if ('' === $secret) {
            $this->store->forget(Store::WEBHOOK, Store::RECEIVED, Store::REPORT);
            $this->say('success', __('Webhooks are no longer accepted.', 'profilesvc'));
        } elseif (null === Signature::key($secret)) {
            $this->say('error', __('This is no secret of a webhook. It starts with whsec_ and is shown when the webhook is created.', 'profilesvc'));
        } else {
            $this->store->set(Store::WEBHOOK, ['secret' => $secret]);
            $this->say('success', __('Webhooks are accepted now.', 'profilesvc'));
        }
    }

    /**
     * @param array<string, mixed> $form
     */
    private function save(array $form): void
    {
        $profile  = ProfileForm::read($form);
        $problems = ProfileForm::problems($profile, $this->store->get(Store::PROFILE), isset($form['long_hours']));
        if ($problems) {
            foreach ($problems as $day => $problem) {
                $this->say('error', ProfileForm::dayName($day) . ': ' . $problem);
            }
            set_transient(self::entered(), [$profile, isset($form['posts'])], 300); // the page shows it again
            return;
        }
        $this->store->set(Store::PROFILE, $profile);
        if (isset($form['posts'])) {
            $this->store->set(Store::POSTS, ['enabled' => true]);
        } else {
            $this->store->forget(Store::POSTS);
        }
        $result = $this->sync->send();
        if (!$result->isOk()) {
            $this->say('error', Words::of($result->code, $result->details));
            return;
        }
        $this->say('success', __('Saved and sent.', 'profilesvc'));
        $kept = array_unique(array_map([ProfileForm::class, 'label'], $result->data['fieldsFiltered'] ?? []));
        if ($kept) {
            /* translators: %s: list of fields, for example "Address, Phone" */
            $this->say('warning', sprintf(__('Not sent, because the plan or the listing does not allow it: %s.', 'profilesvc'), implode(', ', $kept)));
        }
    }

    /**
     * Return the name of the transient with a profile that the owner has to correct.
     */
    private static function entered(): string
    {
        return self::SLUG . '_entered_' . get_current_user_id();
    }

    private function say(string $type, string $text): void
    {
        add_settings_error(self::SLUG, md5($text), esc_html($text), $type);
    }

    /**
     * @param array<string, mixed> $form
     */
    private static function text(array $form, string $name): string
    {
        return is_string($form[$name] ?? null) ? trim($form[$name]) : '';
    }

    public function render(): void
    {
        if (!current_user_can('manage_options')) {
            return;
        }
        $credentials = $this->store->get(Store::CREDENTIALS);
        echo '<div class="wrap"><h1>' . esc_html__('Business profile', 'profilesvc') . '</h1>';
        if ($credentials) {
            $this->renderConnected($credentials);
            $entered = get_transient(self::entered());
            delete_transient(self::entered());
            [$profile, $posts] = is_array($entered)
                ? $entered
                : [$this->store->get(Store::PROFILE), (bool) $this->store->get(Store::POSTS)];
            ProfileForm::render($profile, $posts, !empty($credentials['capabilities']['posts']), is_array($entered));
            $this->renderWebhook();
            echo '<h2>' . esc_html__('Connect again, for example with a new client secret', 'profilesvc') . '</h2>';
        }
        $this->renderConnect();
        echo '</div>';
    }

    private function renderConnect(): void
    {
        self::open('connect');
        echo '<table class="form-table" role="presentation">';
        printf(
            '<tr><th><label for="client_id">%s</label></th>'
            . '<td><input class="regular-text" type="text" id="client_id" name="client_id" required autocomplete="off"></td></tr>',
            esc_html__('Client id', 'profilesvc')
        );
        // The secret is never printed again, not even into this form.
        printf(
            '<tr><th><label for="client_secret">%s</label></th><td><input class="regular-text" type="password" '
            . 'id="client_secret" name="client_secret" required autocomplete="new-password"></td></tr></table>',
            esc_html__('Client secret', 'profilesvc')
        );
        submit_button(__('Connect', 'profilesvc'));
        echo '</form>';
    }

    /**
     * @param array<string, mixed> $credentials
     */
    private function renderConnected(array $credentials): void
    {
        self::open('disconnect');
        /* translators: %s: name of the location */
        $text = __('This site is connected to %s.', 'profilesvc');
        if ($this->store->get(Store::STOPPED) || Site::change($credentials['site']) || $this->store->isUnreadable(Store::CREDENTIALS)) {
            /* translators: %s: name of the location */
            $text = __('This site was connected to %s, and sends nothing now.', 'profilesvc');
        }
        echo '<p>' . esc_html(sprintf($text, $credentials['location_name'])) . '</p>';
        submit_button(__('Disconnect', 'profilesvc'), 'secondary');
        echo '</form>';
    }

    private function renderWebhook(): void
    {
        $report = $this->store->get(Store::REPORT);
        echo '<h2>' . esc_html__('Reports of the service', 'profilesvc') . '</h2>';
        if ($report) {
            echo '<p>' . esc_html(Words::ofReport((string) $report['type'], (int) $report['at'])) . '</p>';
        }
        /* translators: %s: address on this site */
        $text = __('The service can report here that this site is offline. Create a webhook with the address %s in the dashboard, and enter its secret. An empty field ends the reports.', 'profilesvc');
        echo '<p>' . esc_html(sprintf($text, Webhook::url())) . '</p>';
        self::open('webhook');
        printf(
            '<table class="form-table" role="presentation"><tr><th><label for="webhook_secret">%s</label></th><td><input '
            . 'class="regular-text" type="password" id="webhook_secret" name="webhook_secret" autocomplete="new-password"> %s</td></tr></table>',
            esc_html__('Secret of the webhook', 'profilesvc'),
            !empty($this->store->get(Store::WEBHOOK)['secret']) ? esc_html__('A secret is stored.', 'profilesvc') : ''
        );
        submit_button(__('Save the secret', 'profilesvc'), 'secondary');
        echo '</form>';
    }

    public static function open(string $action): void
    {
        printf('<form method="post" action="%s">', esc_url(admin_url('admin-post.php')));
        printf('<input type="hidden" name="action" value="profilesvc_%s">', esc_attr($action));
        wp_nonce_field("profilesvc_$action");
    }
}
