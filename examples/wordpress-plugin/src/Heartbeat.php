<?php

namespace Profilesvc;

/**
 * Reports once an hour that the site is alive.
 */
final class Heartbeat
{
    // [heartbeat]
    public const EVENT = 'profilesvc_heartbeat';

    private Store $store;
    private Session $session;

    public function __construct(Store $store, Session $session)
    {
        $this->store   = $store;
        $this->session = $session;
    }

    public function register(): void
    {
        add_action(self::EVENT, [$this, 'beat']);
        add_action('admin_init', [$this, 'schedule']);
    }

    /**
     * The random start spreads the sites of a host over the hour.
     */
    public function schedule(): void
    {
        if ($this->store->get(Store::CREDENTIALS) && !wp_next_scheduled(self::EVENT)) {
            wp_schedule_event(time() + wp_rand(0, HOUR_IN_SECONDS), 'hourly', self::EVENT);
        }
    }

    /**
     * Send the next heartbeat soon, in addition to the hourly ones.
     */
    public function scheduleOnce(int $seconds): void
    {
        wp_schedule_single_event(time() + $seconds, self::EVENT, ['once']);
    }

    public function beat(): Result
    {
        $this->store->protect();
        $result = $this->session->send('connection', 'POST', '/api/v1/api-keys/heartbeat', [
            'plugin_version'   => Plugin::VERSION,
            'wp_version'       => get_bloginfo('version'),
            'php_version'      => PHP_VERSION,
            // Not get_plugins(): WP-Cron does not load the file that defines it.
            'detected_plugins' => self::names(array_merge((array) get_option('active_plugins', []), self::ofNetwork())),
        ]);
        if ($result->isOk()) {
            $this->store->set(Store::LAST_HEARTBEAT, ['at' => time()]);
        } elseif (!$result->isFinal()) {
            $this->scheduleOnce(max(5 * MINUTE_IN_SECONDS, $result->retryAfter));
        }
        return $result;
    }

    /**
     * Return the plugins that are activated for all sites of a network; the names are the keys.
     *
     * @return list<string>
     */
    private static function ofNetwork(): array
    {
        return is_multisite() ? array_keys((array) get_site_option('active_sitewide_plugins', [])) : [];
    }

    /**
     * The service accepts 500 names of 200 characters, and rejects a heartbeat with more.
     *
     * @param array<mixed> $plugins
     *
     * @return list<string>
     */
    private static function names(array $plugins): array
    {
        $short = static fn ($name): string => mb_substr((string) $name, 0, 200);
        return array_map($short, array_slice(array_values(array_unique($plugins)), 0, 500));
    }
    // [/heartbeat]
}
