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
        if ($result->isOk() && !$result->data['valid']) {
            return Result::failure($result->data['reason']); // invalid_credentials or domain_not_allowed
        }
        if ($result->isOk()) {
            $this->disconnect(); // forget the token, the problems and the stop of the credentials before
            $this->store->set(Store::CREDENTIALS, [
                'client_id'     => trim($clientId),
                'client_secret' => trim($clientSecret),
                'site'          => Site::host(),
                'location'      => $result->data['location']['id'],
                'location_name' => $result->data['location']['name'],
            ]);
            $this->heartbeat->schedule();
            $this->heartbeat->scheduleOnce(0);
        }
        return $result;
    }

    public function disconnect(): void
    {
        Store::unschedule();
        $this->store->forget(
            Store::CREDENTIALS,
            Store::TOKEN,
            Store::STOPPED,
            Store::PAUSE,
            Store::PROBLEMS,
            Store::LAST_HEARTBEAT,
            Store::PENDING
        );
    }
    // [/connect]
}
