<?php

namespace Profilesvc;

require_once __DIR__ . '/Host.php';

/**
 * The site as the service names it.
 */
final class Site
{
    private const ENCODED = 'site:';

    public static function host(): string
    {
        return explode('/', self::normal((string) home_url()))[0];
    }

    /**
     * Return host, port and path, because a staging copy often is a folder or another port of the site. Plugins for
     * languages filter home_url(), so read the option.
     */
    public static function address(): string
    {
        return self::normal((string) get_option('home'));
    }

    /**
     * Return the address in the form in which it is stored. A program that replaces addresses in a copied database must
     * not find it, or the copy would take itself for the site.
     */
    public static function stored(string $address): string
    {
        return self::ENCODED . base64_encode($address);
    }

    /**
     * Return the address that is stored, also by the versions of this plugin that stored it as it is.
     */
    public static function connected(string $stored): string
    {
        if (!self::isEncoded($stored)) {
            return $stored;
        }
        return (string) base64_decode(substr($stored, strlen(self::ENCODED)), true);
    }

    public static function isEncoded(string $stored): bool
    {
        return 0 === strpos($stored, self::ENCODED);
    }

    /**
     * @param string $stored the site that was connected
     *
     * @return array<string, string> the details of SITE_CHANGED, or an empty array if this is the connected site
     */
    public static function change(string $stored): array
    {
        if (!self::isOther($stored, self::address())) {
            return [];
        }
        return ['connected' => self::connected($stored), 'here' => self::address()];
    }

    /**
     * Whether two addresses, stored or not, are two sites.
     */
    public static function isOther(string $stored, string $other): bool
    {
        return !self::isSame(self::normal(self::connected($stored)), self::normal(self::connected($other)));
    }

    /**
     * Whether two addresses are one site: the same one but for www, or two names that PROFILESVC_SITES lists.
     */
    private static function isSame(string $one, string $other): bool
    {
        if (in_array($other, [$one, self::twin($one)], true)) {
            return '' !== $one;
        }
        $names = array_map([self::class, 'normal'], self::names());
        $names = array_merge($names, array_map([self::class, 'twin'], $names));
        return '' !== $one && in_array($one, $names, true) && '' !== $other && in_array($other, $names, true);
    }

    /**
     * Return the names of a site that has several. Set them in wp-config.php, if WP_HOME depends on the request:
     * define('PROFILESVC_SITES', 'harbour.example, shop.harbour.example');
     *
     * @return list<string>
     */
    private static function names(): array
    {
        $names = defined('PROFILESVC_SITES') ? explode(',', (string) PROFILESVC_SITES) : [];
        return array_values(array_filter(array_map('trim', $names), 'strlen'));
    }

    /**
     * Return host[:port][/path] of an address. The scheme and its port do not count.
     */
    private static function normal(string $address): string
    {
        if (!preg_match('~^(?:https?://|//|(?![a-z0-9+.-]*://))(\[[^\]/?#]*\]|[^/?#:]*)(?::([0-9]*))?(/[^?#]*)?(?:[?#].*)?$~Dis', trim($address, ' '), $found)) {
            return '';
        }
        $host = Host::canonical($found[1]);
        $port = $found[2] ?? '';
        if ('' === $host || ('' !== $port && (strlen($port) > 5 || (int) $port < 1 || (int) $port > 65535))) {
            return '';
        }
        return $host . (in_array($port, ['', '80', '443'], true) ? '' : ':' . (int) $port) . untrailingslashit($found[3] ?? '');
    }

    private static function twin(string $address): string
    {
        $host = (string) strtok($address, ':/');
        if ('' === $host || false === strpos($host, '.') || '[' === $address[0] || long2ip((int) ip2long($host)) === $host) {
            return '';
        }
        if (0 !== strpos($address, 'www.')) {
            return '.localhost' === substr($host, -10) ? '' : "www.$address";
        }
        return false === strpos(substr($host, 4), '.') ? '' : substr($address, 4);
    }
}
