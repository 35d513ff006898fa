<?php

namespace Profilesvc;

/**
 * Receives the events of the service: it stores what the service reports about this site, and passes each event on.
 */
final class Webhook
{
    // [webhook]
    private const LARGEST_BODY = 262144; // bytes
    private const REMEMBERED   = 50;     // ids, because a delivery can arrive twice

    private Store $store;
    private Heartbeat $heartbeat;

    public function __construct(Store $store, Heartbeat $heartbeat)
    {
        $this->store     = $store;
        $this->heartbeat = $heartbeat;
    }

    public function register(): void
    {
        add_action('rest_api_init', function (): void {
            register_rest_route('profilesvc/v1', '/webhook', [
                'methods'             => 'POST',
                'callback'            => [$this, 'receive'],
                'permission_callback' => [$this, 'check'], // the signature is the permission
            ]);
        });
    }

    public static function url(): string
    {
        return rest_url('profilesvc/v1/webhook');
    }

    /**
     * @return true|\WP_Error
     */
    public function check(\WP_REST_Request $request)
    {
        $secret = (string) ($this->store->get(Store::WEBHOOK)['secret'] ?? '');
        $body   = (string) $request->get_body();
        $header = static fn (string $name): string => (string) $request->get_header($name);
        $signed = [$header('webhook_id'), $header('webhook_timestamp'), $header('webhook_signature'), $body, time()];
        if (strlen($body) <= self::LARGEST_BODY && Signature::isValid($secret, ...$signed)) {
            return true;
        }
        return new \WP_Error('profilesvc_signature', 'The signature is missing or invalid, or the delivery is too old.', ['status' => 401]);
    }

    public function receive(\WP_REST_Request $request): \WP_REST_Response
    {
        $event = json_decode((string) $request->get_body(), true);
        $type  = is_array($event) ? $event['type'] ?? null : null;
        $data  = is_array($event) ? $event['data'] ?? null : null;
        if (!is_string($type) || !is_array($data)) {
            return new \WP_REST_Response(['code' => 'profilesvc_event'], 400);
        }
        if ($this->isNew((string) $request->get_header('webhook_id'))) {
            $this->note($type, $data);
            /**
             * Act on any event of the service, for example empty a page cache after profile.drifted.
             */
            do_action('profilesvc_event', $type, $data);
        }
        return new \WP_REST_Response(null, 204);
    }

    private function isNew(string $id): bool
    {
        $ids = $this->store->get(Store::RECEIVED);
        if (in_array($id, $ids, true)) {
            return false;
        }
        $this->store->set(Store::RECEIVED, array_slice(array_merge($ids, [$id]), -self::REMEMBERED));
        return true;
    }

    /**
     * A webhook has the events of all sites of its owner. A silent site that can be reached sends a heartbeat at once.
     *
     * @param array<string, mixed> $data
     */
    private function note(string $type, array $data): void
    {
        $ours = $this->store->get(Store::CREDENTIALS)['client_id'] ?? null;
        if (null === $ours || ($data['client_id'] ?? null) !== $ours || 0 !== strpos($type, 'connection.')) {
            return;
        }
        if ('connection.online' === $type) {
            $this->store->forget(Store::REPORT);
            return;
        }
        $this->store->set(Store::REPORT, ['type' => $type, 'at' => time()]);
        if ('connection.site_mismatch' !== $type) {
            $this->heartbeat->scheduleOnce(0);
        }
    }
    // [/webhook]
}
