<?php

namespace Profilesvc;

/**
 * The last failure of each area: connection, profile, posts.
 */
final class Problems
{
    // What the notices need. The API's `message` is for developers and is not stored.
    private const DETAILS = ['deactivation_reason', 'upgrade_url', 'resets_at', 'errors', 'fields'];

    private Store $store;

    public function __construct(Store $store)
    {
        $this->store = $store;
    }

    // [problems]
    public function record(string $area, Result $result): void
    {
        if ($result->isObstacle()) {
            return; // it would hide the problem that caused it
        }
        $problems = $this->store->get(Store::PROBLEMS);
        if ($result->isOk()) {
            unset($problems[$area], $problems['connection']);
        } else {
            $problems[$result->concernsConnection() ? 'connection' : $area] = [
                'code'       => $result->code,
                'details'    => array_intersect_key($result->details, array_flip(self::DETAILS)),
                'request_id' => $result->requestId,
                'at'         => time(),
            ];
        }
        $this->store->set(Store::PROBLEMS, $problems);
    }
    // [/problems]

    /**
     * @return array<string, array<string, mixed>> what the owner should know, by area
     */
    public function all(): array
    {
        $credentials = $this->store->get(Store::CREDENTIALS);
        if (!$credentials) {
            return [];
        }
        $change = Site::change($credentials['site']);
        if ($change) {
            return ['connection' => ['code' => 'SITE_CHANGED', 'details' => $change, 'request_id' => '', 'at' => 0]];
        }
        return $this->store->get(Store::PROBLEMS);
    }
}
