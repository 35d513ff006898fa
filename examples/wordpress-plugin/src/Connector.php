<?php

namespace Profilesvc;

/**
 * Connects the site with the credentials that the owner entered, and disconnects it.
 */
final class Connector
{
    private Store $store;
    private Api $api;
    private Heartbeat $heartbeat;

    public function __construct(Store $store, Api $api, Heartbeat $heartbeat)
    {
        $this->store     = $store;
        $this->api       = $api;
        $this->heartbeat = $heartbeat;
    }

    // [connect]
    /**
     * Check the credentials for this site and store them if they are valid. The check issues no token.
     */
    public function connect(string $clientId, string $clientSecret): Result
    {
        $result = $this->api->request('POST', '/api/v1/auth/validate-service-credentials', [
            'client_id'     => trim($clientId),
            'client_secret' => trim($clientSecret),
            'site_domain'   => home_url(),
        ]);
        if ($result->isOk() && empty($result->data['valid'])) {
            // invalid_credentials or domain_not_allowed, or another service
            return Result::failure($result->data['reason'] ?? 'UNREADABLE');
        }
        if ($result->isOk()) {
            $location = $result->data['location'];
            $this->replace([
                'client_id'     => trim($clientId),
                'client_secret' => trim($clientSecret),
                'site'          => Site::stored(Site::address()),
                'location'      => $location['id'],
                'location_name' => $location['name'],
                'capabilities'  => $result->data['capabilities'], // sync, posts, reviews: what the plan includes
            ]);
            $this->heartbeat->schedule();
            $this->heartbeat->scheduleOnce(0);
        }
        return $result;
    }

    public function disconnect(): void
    {
        $this->replace([]);
    }

    /**
     * Replace the credentials, and forget what belongs to the old ones. Changes that wait for a valid key stay if the
     * location is the same. The lock keeps out a process that renews the token and would store it after this.
     *
     * @param array<string, mixed> $credentials
     */
    private function replace(array $credentials): void
    {
        Lock::run('token', function () use ($credentials): void {
            Store::unschedule();
            $before = $this->store->read(Store::CREDENTIALS)['location'] ?? '';
            $this->store->forget(Store::CREDENTIALS, Store::TOKEN, Store::STOPPED, Store::PAUSE, Store::PROBLEMS);
            $this->store->forget(Store::LAST_HEARTBEAT, Store::REPORT, Store::OTHER_SITE);
            if (($credentials['location'] ?? '') !== $before) {
                $this->store->forget(Store::PENDING);
                delete_post_meta_by_key(Store::POST_PENDING);
            }
            if ($credentials) {
                $this->store->set(Store::CREDENTIALS, $credentials);
            }
        });
    }
    // [/connect]
}
