<?php

namespace Profilesvc;

/**
 * A change that must arrive once. It keeps its idempotency key until the service has given a final response.
 */
final class Push
{
    // [push]
    /** @var array<string, mixed> */
    private array $item;

    /**
     * @param array<string, mixed> $item
     */
    private function __construct(array $item)
    {
        $this->item = $item;
    }

    /**
     * @param array<string, mixed> $body
     */
    public static function of(string $path, array $body): self
    {
        $item = ['path' => $path, 'body' => $body, 'key' => wp_generate_uuid4(), 'attempts' => 0];
        return new self($item);
    }

    /**
     * @param array<string, mixed> $item what an earlier attempt stored
     */
    public static function stored(array $item): self
    {
        return new self($item);
    }

    /**
     * Send the change, and store it until there is a final response. A key can be switched on again or be replaced by
     * another key of the location, so its rejection is not final.
     *
     * @param callable(array<string, mixed>): void $store called with an empty array when there is nothing left to send
     * @param callable(int): void $later called with the seconds until the next attempt
     */
    public function send(Session $session, string $area, callable $store, callable $later): Result
    {
        $store($this->item); // before the request, because PHP can be killed during it
        $headers = ['X-Idempotency-Key' => $this->item['key']];
        $result  = $session->send($area, 'POST', $this->item['path'], $this->item['body'], $headers);
        if (!$result->keepsChange()) {
            $store([]); // a new change gets a new key: the old one would repeat the same rejection for a day
            return $result;
        }
        if (!$result->isObstacle()) {
            $this->item['attempts']++;
            $store($this->item);
        }
        $later(max($result->retryAfter, min(HOUR_IN_SECONDS, 30 * 2 ** $this->item['attempts'])));
        return $result;
    }
    // [/push]
}
