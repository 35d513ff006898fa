<?php

namespace Profilesvc;

/**
 * What the owner of the site sees. The API's `message` is written for developers, so it is never shown.
 */
final class Words
{
    // [words]
    /**
     * @param array<string, mixed> $details
     */
    public static function of(string $code, array $details = []): string
    {
        if (isset($details['deactivation_reason'])) {
            return self::ofDeactivation((string) $details['deactivation_reason']);
        }
        if ('SITE_CHANGED' === $code) { // the site is not the one that was connected
            /* translators: 1: domain of the connected site, 2: domain of this site */
            $text = __('These credentials belong to %1$s, and this site is %2$s. If this is a copy for tests, nothing has to be done: it sends nothing. If the site has moved, connect it again.', 'profilesvc');
            return sprintf($text, $details['connected'] ?? '', $details['here'] ?? '') . self::ofNames($details);
        }
        if ('SITE_VARIES' === $code) { // the site also runs at an address that is not the connected one
            /* translators: 1: domain of the connected site, 2: other domain */
            $text = __('The credentials belong to %1$s. This site, or a copy of its database, also ran as %2$s, and there it sent nothing.', 'profilesvc');
            return sprintf($text, $details['connected'] ?? '', $details['here'] ?? '') . self::ofNames($details);
        }
        if ('QUOTA_EXCEEDED' === $code && isset($details['resets_at'])) {
            $day = wp_date((string) get_option('date_format'), (int) strtotime((string) $details['resets_at']));
            /* translators: %s: date */
            return sprintf(__('The posts of this month are used up. New posts can be published from %s.', 'profilesvc'), $day);
        }
        $fields = self::fields($details);
        if ($fields && in_array($code, ['VALIDATION_ERROR', 'PROVIDER_API_ERROR'], true)) {
            /* translators: %s: list of fields, for example "Address, Phone" */
            return sprintf(__('These fields are not accepted: %s. Correct them and save again.', 'profilesvc'), implode(', ', $fields));
        }
        return self::ofCode($code) ?? __('Something unexpected went wrong. If it happens again, contact support.', 'profilesvc');
    }

    /**
     * Return what to do if WP_HOME depends on the request.
     *
     * @param array<string, mixed> $details
     */
    private static function ofNames(array $details): string
    {
        $line = sprintf("define('PROFILESVC_SITES', '%s, %s');", $details['connected'] ?? '', $details['here'] ?? '');
        /* translators: %s: a line of PHP */
        return ' ' . sprintf(__('If both are addresses of one site, because its WP_HOME depends on the request, add this line to wp-config.php: %s', 'profilesvc'), $line);
    }

    /**
     * Return the labels of the fields that the service or the provider rejected.
     *
     * @param array<string, mixed> $details
     *
     * @return list<string>
     */
    private static function fields(array $details): array
    {
        $paths = array_merge(array_column((array) ($details['errors'] ?? []), 'field'), (array) ($details['fields'] ?? []));
        return array_values(array_unique(array_map([ProfileForm::class, 'label'], array_filter($paths, 'strlen'))));
    }

    private static function ofDeactivation(string $reason): string
    {
        switch ($reason) {
            case 'billing_issue':
                return __('A payment failed or the subscription has ended. The connection resumes by itself after payment.', 'profilesvc');
            case 'plan_downgrade':
                return __('Your plan covers fewer locations now. Choose a larger plan to connect this one again.', 'profilesvc');
            case 'security_concern':
                return __('The connection was blocked for your safety. Ask support for a new client secret and connect again.', 'profilesvc');
            case 'user_requested':
                return __('The connection was switched off in the dashboard. Switch it on there; this site then continues by itself.', 'profilesvc');
        }
        return __('The connection is switched off. Look into the dashboard for the reason.', 'profilesvc');
    }
    // [/words]

    /**
     * What the service reported by a webhook. A heartbeat after it makes all but a second site outdated.
     */
    public static function ofReport(string $type, int $at): string
    {
        $day = (string) wp_date(get_option('date_format') . ' ' . get_option('time_format'), $at);
        if ('connection.site_mismatch' === $type) {
            /* translators: %s: date and time */
            return sprintf(__('On %s the service reported that a second site uses the credentials. It is probably a copy: give it a key of its own.', 'profilesvc'), $day);
        }
        if ('connection.idle' === $type) {
            /* translators: %s: date and time */
            return sprintf(__('On %s the service reported that this site had sent no heartbeat for two hours. A heartbeat follows when WP-Cron runs.', 'profilesvc'), $day);
        }
        /* translators: %s: date and time */
        return sprintf(__('On %s the service reported that this site was offline. A heartbeat follows when WP-Cron runs.', 'profilesvc'), $day);
    }

    private static function ofCode(string $code): ?string
    {
        return self::ofConnection($code) ?? self::ofChange($code) ?? self::ofDefect($code);
    }

    private static function ofConnection(string $code): ?string
    {
        switch ($code) {
            case 'invalid_credentials': // the credential check: the pair does not match
                return __('The client id and the client secret do not match. Copy both again, or create a new key.', 'profilesvc');
            case 'domain_not_allowed': // the credential check: the key does not allow the domain of the site
                /* translators: %s: domain of this site */
                return sprintf(__('This key belongs to another site. Add %s to the domains of the key, or use a key for this site.', 'profilesvc'), Site::host());
            case 'AUTH_INVALID_TOKEN':
            case 'STOPPED': // no request: the service has rejected the credentials before
                return __('The credentials are no longer valid. The site has stopped sending. Connect it again.', 'profilesvc');
            case 'KEYS_CHANGED': // no request: AUTH_KEY or AUTH_SALT of wp-config.php have changed
                return __('The security keys in wp-config.php have changed, so the stored client secret cannot be read. Connect this site again.', 'profilesvc');
            case 'WEBHOOK_UNREADABLE': // AUTH_KEY or AUTH_SALT of wp-config.php have changed
                return __('The security keys in wp-config.php have changed, so the stored secret of the webhook cannot be read. Enter it again.', 'profilesvc');
            case 'TOKEN_REMOVED': // 401 with the reason `missing`
                return __('The credentials are valid, but a proxy between this site and the service removes the Authorization header. Ask the operator of the proxy or your hosting company to pass it on. The site tries again by itself.', 'profilesvc');
            case 'AUTH_INSUFFICIENT_PERMISSIONS':
                return __('The key does not allow this. Create a key that may read and write.', 'profilesvc');
            case 'NO_CONNECTION': // no response: name, TLS, or more than 10 s
                return __('The service cannot be reached from this site. The site tries again by itself.', 'profilesvc');
            case 'INSECURE_URL': // no request: PROFILESVC_URL is not HTTPS
                return __('The address of the service must start with https://.', 'profilesvc');
            case 'NOT_CONNECTED': // no request: there are no credentials
                return __('This site is not connected.', 'profilesvc');
            case 'WAITING': // no request: the time of the last Retry-After has not ended
            case 'RATE_LIMITED':
                return __('The service asked this site to wait. It continues by itself.', 'profilesvc');
        }
        return null;
    }

    private static function ofChange(string $code): ?string
    {
        switch ($code) {
            case 'PLAN_RESTRICTION':
                return __('Your plan does not include this.', 'profilesvc');
            case 'EMPTY_PROFILE': // no request: nothing is entered
                return __('Nothing is entered. Fill in at least one field.', 'profilesvc');
            case 'LOCATION_NOT_VERIFIED':
                return __('The location is not verified yet. Verify it, then save again.', 'profilesvc');
            case 'SYNC_DISABLED':
                return __('Sync is switched off for this location. Switch it on in the dashboard, then save again.', 'profilesvc');
            case 'QUOTA_EXCEEDED':
                return __('The posts of this month are used up.', 'profilesvc');
            case 'VALIDATION_ERROR':
                return __('Something in the profile or post is not accepted. Check address, phone and hours.', 'profilesvc');
            case 'PROVIDER_API_ERROR':
                return __('The business listing did not accept the change.', 'profilesvc');
            case 'CONFLICT':
            case 'IDEMPOTENCY_IN_PROGRESS':
                return __('Another change is still being saved. The site tries again by itself.', 'profilesvc');
            case 'NOT_FOUND':
                return __('The location no longer exists, or the key has no access to it.', 'profilesvc');
            case 'PAYLOAD_TOO_LARGE':
                return __('The profile or post is too long. Shorten it.', 'profilesvc');
        }
        return null;
    }

    private static function ofDefect(string $code): ?string
    {
        switch ($code) {
            case 'SERVICE_UNAVAILABLE':
            case 'INTERNAL_ERROR':
            case 'REQUEST_TIMEOUT':
            case 'UNREADABLE': // a response that is not the API's, such as the page of a proxy
                return __('The service has a problem at the moment. The site tries again by itself.', 'profilesvc');
            case 'METHOD_NOT_ALLOWED':
            case 'UNSUPPORTED_MEDIA_TYPE':
            case 'IDEMPOTENCY_KEY_REUSED':
            case 'HEADERS_TOO_LARGE':
                return __('This plugin and the service do not understand each other. Update the plugin.', 'profilesvc');
        }
        return null;
    }
}
