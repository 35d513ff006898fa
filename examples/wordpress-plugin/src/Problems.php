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
            return ['connection' => self::problem('SITE_CHANGED', $change)];
        }
        $other    = $this->store->get(Store::OTHER_SITE);
        $problems = $this->store->get(Store::PROBLEMS);
        if ($this->store->isUnreadable(Store::CREDENTIALS)) {
            $problems['connection'] = self::problem('KEYS_CHANGED');
        } elseif (($other['at'] ?? 0) > time() - DAY_IN_SECONDS && Site::isOther($credentials['site'], $other['site'])) {
            $sites               = ['connected' => Site::connected($credentials['site']), 'here' => Site::connected($other['site'])];
            $problems['address'] = self::problem('SITE_VARIES', $sites);
        }
        if ($this->store->isUnreadable(Store::WEBHOOK)) {
            $problems['webhook'] = self::problem('WEBHOOK_UNREADABLE');
        }
        return $problems;
    }

    /**
     * Remember that this site has run at another address, because its owner sees the connected one only.
     */
    public function noteSite(string $address): void
    {
        $last = $this->store->get(Store::OTHER_SITE);
        if (Site::connected($last['site'] ?? '') !== $address || ($last['at'] ?? 0) < time() - HOUR_IN_SECONDS) {
            $this->store->set(Store::OTHER_SITE, ['site' => Site::stored($address), 'at' => time()]);
        }
    }

    /**
     * @param array<string, string> $details
     *
     * @return array<string, mixed>
     */
    private static function problem(string $code, array $details = []): array
    {
        return ['code' => $code, 'details' => $details, 'request_id' => '', 'at' => 0];
    }
}
