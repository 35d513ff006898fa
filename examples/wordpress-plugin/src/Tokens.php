<?php

namespace Profilesvc;

/**
 * The access token that all requests of the site share.
 */
final class Tokens
{
    private Store $store;
    private Api $api;

    public function __construct(Store $store, Api $api)
    {
        $this->store = $store;
        $this->api   = $api;
    }

    // [token]
    private const EARLY = 300; // seconds before its end at which a token is renewed, but at most half of its lifetime
    private const LATER = 30;  // seconds until the next attempt, if a token that is still valid cannot be renewed

    /**
     * Return an access token. $rejected is one that the service has just rejected.
     *
     * @throws Refused
     */
    public function current(string $rejected = ''): string
    {
        $token = $this->store->get(Store::TOKEN);
        if (self::isUsable($token, $rejected)) {
            return $token['access'];
        }
        return Lock::run('token', function () use ($rejected): string {
            $token = $this->store->read(Store::TOKEN);
            if (self::isUsable($token, $rejected)) {
                return $token['access']; // another process was faster
            }
            if ($this->store->read(Store::STOPPED) || !$this->store->read(Store::CREDENTIALS)) {
                throw new Refused(Result::failure('STOPPED')); // by another process
            }
            try {
                return $this->renewed($token);
            } catch (Refused $refused) {
                if ('' !== $rejected || !self::isValid($token) || !$refused->result->isTemporary()) {
                    throw $refused;
                }
                $this->store->set(Store::TOKEN, ['later' => time() + self::LATER] + $this->store->read(Store::TOKEN));
                return $token['access'];
            }
        });
    }

    /**
     * @param array<string, mixed> $token
     */
    private static function isUsable(array $token, string $rejected): bool
    {
        if (!self::isValid($token) || $token['access'] === $rejected) {
            return false;
        }
        $early = min(self::EARLY, intdiv($token['lifetime'] ?? 2 * self::EARLY, 2));
        $later = $token['later'] ?? 0;
        return $token['access_until'] - $early > time() || ($later > time() && $later <= time() + self::LATER);
    }

    /**
     * @param array<string, mixed> $token
     */
    private static function isValid(array $token): bool
    {
        return $token && '' !== $token['access'] && $token['access_until'] > time();
    }
    // [/token]

    // [grant]
    /**
     * Get a new pair by the refresh token, or by the credentials if the refresh token ended before the access token. A
     * refresh token is sent once: if the response is lost, a repetition would look like the work of a thief.
     *
     * @param array<string, mixed> $token
     *
     * @throws Refused
     */
    private function renewed(array $token): string
    {
        $result = null;
        $start  = time();
        if ($token && '' !== $token['refresh'] && $token['refresh_until'] > $start) {
            $this->store->set(Store::TOKEN, ['refresh_until' => 0] + $token);
            $result = $this->grant(['grant_type' => 'refresh_token', 'refresh_token' => $token['refresh']]);
        }
        if (null === $result || 'AUTH_INVALID_TOKEN' === $result->code) {
            $credentials = $this->store->read(Store::CREDENTIALS);
            $result      = $this->grant([
                'grant_type'    => 'client_credentials',
                'client_id'     => $credentials['client_id'],
                'client_secret' => $credentials['client_secret'],
            ]);
            if ('AUTH_INVALID_TOKEN' === $result->code) {
                // Revoked, expired, or the secret was replaced. Only the owner can change that.
                $this->store->set(Store::STOPPED, ['since' => time()]);
                $this->store->forget(Store::TOKEN);
            }
        }
        if (!$result->isOk()) {
            throw new Refused($result);
        }
        $this->store->set(Store::TOKEN, [
            'access'        => $result->data['access_token'],
            'access_until'  => $start + $result->data['expires_in'],
            'lifetime'      => $result->data['expires_in'],
            'refresh'       => $result->data['refresh_token'],
            'refresh_until' => $start + $result->data['refresh_expires_in'],
        ]);
        return $result->data['access_token'];
    }

    /**
     * @param array<string, string> $body
     */
    private function grant(array $body): Result
    {
        return $this->api->request('POST', '/api/v1/auth/token', $body);
    }
    // [/grant]
}
