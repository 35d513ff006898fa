<?php

namespace Profilesvc;

/**
 * Sends one request to the service.
 */
final class Api
{
    private string $url;

    public function __construct(string $url)
    {
        $this->url = $url;
    }

    // [request]
    /**
     * @param array<string, mixed>|null $body
     * @param array<string, string> $headers
     */
    public function request(string $method, string $path, ?array $body = null, array $headers = []): Result
    {
        if (!$this->isPrivate()) {
            return Result::failure('INSECURE_URL');
        }
        $response = wp_remote_request($this->url . $path, [
            'method'      => $method,
            'timeout'     => 10,
            'redirection' => 0, // a redirect would repeat the token to another address
            'headers'     => $headers + ['Accept' => 'application/json', 'Content-Type' => 'application/json'],
            // An empty PHP array would become [], and the service expects an object.
            'body'        => null === $body ? null : wp_json_encode((object) $body),
        ]);
        return is_wp_error($response) ? Result::failure('NO_CONNECTION') : Result::of($response);
    }
    // [/request]

    /**
     * Whether the secret stays private on the way: by TLS, or because it does not leave this machine.
     */
    private function isPrivate(): bool
    {
        $scheme = strtolower((string) wp_parse_url($this->url, PHP_URL_SCHEME));
        $host   = (string) wp_parse_url($this->url, PHP_URL_HOST);
        $isHere = preg_match('/^(?:(?:.+\.)?localhost\.?|127\.[0-9.]+|\[::1\])$/iD', $host);
        return '' !== $host && ('https' === $scheme || ('http' === $scheme && $isHere));
    }
}
