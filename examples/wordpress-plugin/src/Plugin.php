<?php

namespace Profilesvc;

/**
 * Creates the parts of the plugin and registers their hooks.
 */
final class Plugin
{
    public const VERSION = '1.0.0';

    private string $file;

    public function __construct(string $file)
    {
        $this->file = $file;
    }

    public function start(): void
    {
        $store     = new Store();
        $problems  = new Problems($store);
        $api       = new Api(self::url());
        $session   = new Session($store, $api, new Tokens($store, $api), $problems);
        $heartbeat = new Heartbeat($store, $session);
        $sync      = new ProfileSync($store, $session);
        $connector = new Connector($store, $api, $heartbeat);

        $heartbeat->register();
        $sync->register();
        (new PostPublisher($store, $session))->register();
        (new SiteHealth($store, $problems))->register();
        (new Webhook($store, $heartbeat))->register();
        if (is_admin()) {
            (new AdminMessages($problems))->register();
            (new SettingsPage($store, $connector, $sync))->register();
        }
        if (defined('WP_CLI') && WP_CLI) {
            \WP_CLI::add_command('profilesvc', new Cli($store, $connector, $heartbeat, $sync, $problems));
        }

        add_action('init', [$this, 'loadTranslations']);
        register_activation_hook($this->file, static function ($network) use ($heartbeat): void {
            Store::onSites((bool) $network, [$heartbeat, 'schedule']);
        });
        register_deactivation_hook($this->file, static function ($network): void {
            Store::onSites((bool) $network, [Store::class, 'unschedule']);
        });
    }

    public function loadTranslations(): void
    {
        load_plugin_textdomain('profilesvc', false, dirname(plugin_basename($this->file)) . '/languages');
    }

    // [url]
    /**
     * Return the address of the service. Set it in wp-config.php: define('PROFILESVC_URL', 'http://127.0.0.1:8000');
     */
    public static function url(): string
    {
        return untrailingslashit(defined('PROFILESVC_URL') ? PROFILESVC_URL : 'https://profiles.example');
    }
    // [/url]
}
