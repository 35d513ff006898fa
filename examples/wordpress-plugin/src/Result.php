<?php

namespace Profilesvc;

/**
 * The response to a request, or the reason why there is none.
 */
final class Result
{
    public int $status = 0;
    public string $code = 'UNREADABLE';
    /** @var array<string, mixed> */
    public array $data = [];
    /** @var array<string, mixed> */
    public array $details = [];
    public int $retryAfter = 0;
    public string $requestId = '';

    // [result]
    /**
     * @param array<string, mixed> $response what wp_remote_request returned
     */
    public static function of(array $response): self
    {
        $result             = new self();
        $result->status     = (int) wp_remote_retrieve_response_code($response);
        $header             = wp_remote_retrieve_header($response, 'retry-after'); // an array if it was sent twice
        $result->retryAfter = min(HOUR_IN_SECONDS, RetryAfter::seconds(is_string($header) ? $header : '', time()) ?? 0);
        $result->requestId  = (string) wp_remote_retrieve_header($response, 'x-request-id');
        $body               = json_decode(wp_remote_retrieve_body($response), true);
        if ('ok' === ($body['status'] ?? '')) {
            $result->code = 'OK';
            $result->data = (array) ($body['data'] ?? []);
        } elseif (is_string($body['error']['code'] ?? null)) {
            $result->code    = $body['error']['code'];
            $result->details = (array) ($body['error']['details'] ?? []);
        }
        if ('AUTH_INVALID_TOKEN' === $result->code && 'missing' === ($result->details['reason'] ?? '')) {
            $result->code = 'TOKEN_REMOVED'; // the plugin sends a token, so a proxy has removed the header
        }
        return $result; // anything else is UNREADABLE: the page of a proxy, for example
    }
    // [/result]

    /**
     * @param array<string, mixed> $details
     */
    public static function failure(string $code, array $details = [], int $retryAfter = 0): self
    {
        $result             = new self();
        $result->code       = $code;
        $result->details    = $details;
        $result->retryAfter = $retryAfter;
        return $result;
    }

    public function isOk(): bool
    {
        return 'OK' === $this->code;
    }

    // [final]
    private const WORTH_REPEATING = [
        'NO_CONNECTION', 'UNREADABLE', 'TOKEN_REMOVED', 'WAITING', 'REQUEST_TIMEOUT', 'CONFLICT', 'IDEMPOTENCY_IN_PROGRESS',
        'RATE_LIMITED', 'INTERNAL_ERROR', 'SERVICE_UNAVAILABLE',
    ];

    /**
     * Whether the same request would get the same response again.
     */
    public function isFinal(): bool
    {
        if ('PROVIDER_API_ERROR' === $this->code) {
            return empty($this->details['retryable']);
        }
        return !in_array($this->code, self::WORTH_REPEATING, true);
    }
    // [/final]

    /**
     * Whether the plugin sent no request, so nothing new is known.
     */
    public function isObstacle(): bool
    {
        return in_array($this->code, ['NOT_CONNECTED', 'SITE_CHANGED', 'KEYS_CHANGED', 'STOPPED', 'WAITING'], true);
    }

    /**
     * Whether a change must be kept: the same request can succeed later, or after the owner has repaired the connection.
     */
    public function keepsChange(): bool
    {
        return !$this->isFinal() || $this->concernsConnection() || in_array($this->code, ['SITE_CHANGED', 'KEYS_CHANGED', 'STOPPED'], true);
    }

    /**
     * Whether the service, or a proxy in front of it, could not respond for the moment.
     */
    public function isTemporary(): bool
    {
        $byGateway = 'UNREADABLE' === $this->code && in_array($this->status, [429, 502, 503, 504], true);
        return $byGateway || in_array($this->code, ['RATE_LIMITED', 'SERVICE_UNAVAILABLE'], true);
    }

    public function isDeactivated(): bool
    {
        return isset($this->details['deactivation_reason']);
    }

    /**
     * Whether the token did not arrive or was rejected, or the key is deactivated: a problem of the connection, whatever
     * the request was.
     */
    public function concernsConnection(): bool
    {
        return in_array($this->code, ['AUTH_INVALID_TOKEN', 'TOKEN_REMOVED'], true) || $this->isDeactivated();
    }
}
