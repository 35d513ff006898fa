<?php

namespace Profilesvc;

/**
 * Verifies deliveries by Standard Webhooks. It needs nothing of WordPress.
 */
final class Signature
{
    // [signature]
    private const TOLERANCE = 300; // seconds between the clocks, and the age of a delivery

    /**
     * Return whether the body was signed with this secret in the last five minutes. While a secret is replaced, there are
     * two signatures.
     *
     * @param string $id the header webhook-id
     * @param string $sentAt the header webhook-timestamp
     * @param string $signatures the header webhook-signature
     * @param string $body the body as it arrived, before it is parsed
     */
    public static function isValid(string $secret, string $id, string $sentAt, string $signatures, string $body, int $now): bool
    {
        $key = self::key($secret);
        if (null === $key || '' === $id || !preg_match('/^[0-9]{1,12}\z/', $sentAt)) {
            return false;
        }
        $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$sentAt.$body", $key, true));
        $found    = false;
        foreach (array_slice(explode(' ', $signatures), 0, 10) as $signature) {
            $found = hash_equals($expected, $signature) || $found; // compares in constant time
        }
        return $found && abs($now - (int) $sentAt) <= self::TOLERANCE;
    }

    /**
     * Return the key in a secret such as whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw, or null for an invalid one.
     */
    public static function key(string $secret): ?string
    {
        $key = 0 === strpos($secret, 'whsec_') ? base64_decode(substr($secret, 6), true) : false;
        return false === $key || strlen($key) < 24 || strlen($key) > 64 ? null : $key;
    }
    // [/signature]
}
