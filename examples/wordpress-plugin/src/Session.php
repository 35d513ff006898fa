<?php

namespace Profilesvc;

/**
 * Sends authorised requests: adds the token, renews it once, waits as long as the service asks, stops when it must.
 */
final class Session
{
    private Store $store;
    private Api $api;
    private Tokens $tokens;
    private Problems $problems;

    public function __construct(Store $store, Api $api, Tokens $tokens, Problems $problems)
    {
        $this->store    = $store;
        $this->api      = $api;
        $this->tokens   = $tokens;
        $this->problems = $problems;
    }

    // [session]
    /**
     * @param string $area the feature that a failure is reported for: connection, profile or posts
     * @param array<string, mixed>|null $body
     * @param array<string, string> $headers
     */
    public function send(string $area, string $method, string $path, ?array $body, array $headers = []): Result
    {
        $result = $this->obstacle();
        if (null === $result) {
            try {
                $token  = $this->tokens->current();
                $result = $this->api->request($method, $path, $body, self::bearer($token) + $headers);
                if ('AUTH_INVALID_TOKEN' === $result->code) { // expired or revoked meanwhile: once more, with a new token
                    $token  = $this->tokens->current($token);
                    $result = $this->api->request($method, $path, $body, self::bearer($token) + $headers);
                }
            } catch (Refused $refused) {
                $result = $refused->result;
            }
            $this->pauseAfter($result);
        }
        $this->problems->record($area, $result);
        return $result;
    }

    /**
     * @return array<string, string>
     */
    private static function bearer(string $token): array
    {
        return ['Authorization' => 'Bearer ' . $token];
    }
    // [/session]

    // [obstacle]
    /**
     * Return why no request may be sent now, or null.
     */
    private function obstacle(): ?Result
    {
        $credentials = $this->store->get(Store::CREDENTIALS);
        if (!$credentials) {
            return Result::failure('NOT_CONNECTED');
        }
        $change = Site::change($credentials['site']);
        if ($change) {
            $this->problems->noteSite($change['here']);
            return Result::failure('SITE_CHANGED', $change); // a staging copy would use up the refresh token of the real site
        }
        if ($this->store->isUnreadable(Store::CREDENTIALS)) {
            return Result::failure('KEYS_CHANGED');
        }
        if ($this->store->get(Store::STOPPED)) {
            return Result::failure('STOPPED');
        }
        $seconds = ($this->store->get(Store::PAUSE)['until'] ?? 0) - time();
        // More than an hour is the work of a clock that was wrong.
        return $seconds > 0 && $seconds <= HOUR_IN_SECONDS ? Result::failure('WAITING', [], $seconds) : null;
    }

    private function pauseAfter(Result $result): void
    {
        if ($result->retryAfter > 0 && in_array($result->code, ['RATE_LIMITED', 'SERVICE_UNAVAILABLE'], true)) {
            $this->store->set(Store::PAUSE, ['until' => time() + $result->retryAfter]);
        }
    }
    // [/obstacle]
}
