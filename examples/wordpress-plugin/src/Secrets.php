<?php

namespace Profilesvc;

/**
 * Encrypts secrets with the security keys of wp-config.php, so that a copy of the database alone does not contain them.
 *
 * PHP's sodium is used, which WordPress replaces where it is missing.
 */
final class Secrets
{
    // [secrets]
    private const SEALED = 'sealed:';
    private const FIELDS = ['client_secret', 'access', 'refresh', 'secret'];

    /**
     * Encrypt the secrets of an option; without security keys they stay as they are.
     *
     * @param array<string, mixed> $value
     *
     * @return array<string, mixed>
     */
    public static function seal(array $value): array
    {
        $key = self::key();
        foreach (self::FIELDS as $field) {
            if ('' !== $key && is_string($value[$field] ?? null) && !self::isSealed($value[$field])) {
                $nonce         = random_bytes(SODIUM_CRYPTO_SECRETBOX_NONCEBYTES);
                $box           = sodium_crypto_secretbox($value[$field], $nonce, $key);
                $value[$field] = self::SEALED . base64_encode($nonce . $box);
            }
        }
        return $value;
    }

    /**
     * Decrypt the secrets of an option. Those of earlier versions, which are not encrypted, stay as they are.
     *
     * @param array<string, mixed> $value
     *
     * @return array<string, mixed> with an empty string for a secret that was encrypted with other keys
     */
    public static function open(array $value): array
    {
        foreach (self::FIELDS as $field) {
            if (self::isSealed($value[$field] ?? null)) {
                $value[$field] = self::opened(substr($value[$field], strlen(self::SEALED)));
            }
        }
        return $value;
    }

    private static function opened(string $sealed): string
    {
        $bytes = (string) base64_decode($sealed, true);
        $size  = SODIUM_CRYPTO_SECRETBOX_NONCEBYTES;
        $key   = self::key();
        if ('' === $key || strlen($bytes) < $size + SODIUM_CRYPTO_SECRETBOX_MACBYTES) {
            return '';
        }
        return (string) sodium_crypto_secretbox_open(substr($bytes, $size), substr($bytes, 0, $size), $key);
    }

    /**
     * @param mixed $text
     */
    public static function isSealed($text): bool
    {
        return is_string($text) && 0 === strpos($text, self::SEALED);
    }

    public static function canSeal(): bool
    {
        return '' !== self::key();
    }

    /**
     * Return the key, or an empty string. Without keys of its own in wp-config.php, WordPress stores some in the same
     * database, where they would protect nothing.
     */
    private static function key(): string
    {
        if (!function_exists('sodium_crypto_secretbox')) {
            return '';
        }
        $secret = '';
        foreach (['AUTH_KEY', 'AUTH_SALT'] as $name) {
            $part = defined($name) ? (string) constant($name) : '';
            if ('' === $part || 'put your unique phrase here' === $part) {
                return '';
            }
            $secret .= $part;
        }
        return hash_hmac('sha256', 'profilesvc', $secret, true);
    }
    // [/secrets]
}
