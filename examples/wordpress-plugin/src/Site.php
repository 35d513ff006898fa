<?php

namespace Profilesvc;

/**
 * The site as the service names it.
 */
final class Site
{
    public static function host(): string
    {
        return strtolower((string) wp_parse_url(home_url(), PHP_URL_HOST));
    }

    /**
     * Return host and path, because a staging copy often is a folder of the site. Plugins for languages filter
     * home_url(), so read the option.
     */
    public static function address(): string
    {
        $home = (string) get_option('home');
        $path = (string) wp_parse_url($home, PHP_URL_PATH);
        return strtolower((string) wp_parse_url($home, PHP_URL_HOST)) . untrailingslashit($path);
    }

    /**
     * @return array<string, string> the details of SITE_CHANGED, or an empty array if this is the connected site
     */
    public static function change(string $connected): array
    {
        return self::address() === $connected ? [] : ['connected' => $connected, 'here' => self::address()];
    }
}
