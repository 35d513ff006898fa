<?php

namespace Profilesvc;

require_once __DIR__ . '/Secrets.php';
require_once __DIR__ . '/Site.php';

/**
 * What the plugin stores: options of the site and metadata of posts. No option is loaded on every page (autoload is off).
 */
final class Store
{
    // [store]
    public const CREDENTIALS    = 'profilesvc_credentials';    // what Connector::connect stores
    public const TOKEN          = 'profilesvc_token';          // access, access_until, refresh, refresh_until
    public const STOPPED        = 'profilesvc_stopped';        // since: when the service rejected the credentials
    public const PAUSE          = 'profilesvc_pause';          // until: the time of the last Retry-After
    public const PROBLEMS       = 'profilesvc_problems';       // the last failure of each area
    public const LAST_HEARTBEAT = 'profilesvc_last_heartbeat'; // at
    public const PROFILE        = 'profilesvc_profile';        // what the owner entered
    public const PENDING        = 'profilesvc_pending';        // a profile that was not sent yet
    public const POSTS          = 'profilesvc_posts';          // enabled
    public const WEBHOOK        = 'profilesvc_webhook';        // secret: verifies deliveries
    public const RECEIVED       = 'profilesvc_received';       // the ids of the last deliveries
    public const REPORT         = 'profilesvc_report';         // type, at: what the service reported about the connection
    public const OTHER_SITE     = 'profilesvc_other_site';     // site, at: another address at which this site has run

    /**
     * @return array<string, mixed> the value of an option, or an empty array
     */
    public function get(string $option): array
    {
        $value = get_option($option);
        return is_array($value) ? Secrets::open($value) : [];
    }

    /**
     * @param array<string, mixed> $value
     */
    public function set(string $option, array $value): void
    {
        update_option($option, Secrets::seal($value), false);
    }

    public function forget(string ...$options): void
    {
        array_map('delete_option', $options);
    }

    /**
     * Read an option from the database, because another process can have changed it since this one cached it.
     *
     * @return array<string, mixed>
     */
    public function read(string $option): array
    {
        global $wpdb;
        $value = $wpdb->get_var($wpdb->prepare("SELECT option_value FROM $wpdb->options WHERE option_name = %s", $option));
        wp_cache_delete($option, 'options');
        $value = maybe_unserialize($value);
        return is_array($value) ? Secrets::open($value) : [];
    }

    /**
     * Whether the secret of an option was encrypted with other security keys than those of wp-config.php now.
     */
    public function isUnreadable(string $option): bool
    {
        $value = $this->get($option);
        return '' === ($value['client_secret'] ?? $value['secret'] ?? null);
    }

    /**
     * Encrypt secrets, and encode the site, that an earlier version of this plugin stored as they are.
     */
    public function protect(): void
    {
        foreach ([self::CREDENTIALS, self::TOKEN, self::WEBHOOK] as $option) {
            $stored = get_option($option);
            if (is_array($stored) && self::isPlain($stored)) {
                Lock::run('token', function () use ($option): void {
                    $value = $this->read($option);
                    if (isset($value['site'])) {
                        $value['site'] = Site::stored(Site::connected((string) $value['site']));
                    }
                    if ($value) {
                        $this->set($option, $value);
                    }
                });
            }
        }
    }

    /**
     * @param array<string, mixed> $stored
     */
    private static function isPlain(array $stored): bool
    {
        $isPlain = isset($stored['site']) && !Site::isEncoded((string) $stored['site']);
        return $isPlain || Secrets::seal($stored) !== $stored;
    }
    // [/store]

    public const POST_NAME    = '_profilesvc_post';    // metadata: the name of the post at the service
    public const POST_PENDING = '_profilesvc_pending'; // metadata: a post that was not sent yet

    private const OPTIONS = [
        self::CREDENTIALS, self::TOKEN, self::STOPPED, self::PAUSE, self::PROBLEMS, self::LAST_HEARTBEAT, self::PROFILE,
        self::PENDING, self::POSTS, self::WEBHOOK, self::RECEIVED, self::REPORT, self::OTHER_SITE,
    ];
    private const EVENTS = ['profilesvc_heartbeat', 'profilesvc_sync', 'profilesvc_publish'];

    // [erase]
    public static function unschedule(): void
    {
        array_map('wp_unschedule_hook', self::EVENTS);
    }

    public static function erase(): void
    {
        self::unschedule();
        array_map('delete_option', self::OPTIONS);
        delete_post_meta_by_key(self::POST_NAME);
        delete_post_meta_by_key(self::POST_PENDING);
    }

    /**
     * @param bool $all whether to run it on every site of the network, or only on this one
     */
    public static function onSites(bool $all, callable $work): void
    {
        if (!$all) {
            $work();
            return;
        }
        foreach (get_sites(['fields' => 'ids', 'number' => 0]) as $site) {
            switch_to_blog($site);
            $work();
            restore_current_blog();
        }
    }
    // [/erase]
}
