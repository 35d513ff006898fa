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
}
