<?php

namespace Profilesvc;

/**
 * Connects this site to the business profile service.
 */
final class Cli
{
    private Store $store;
    private Connector $connector;
    private Heartbeat $heartbeat;
    private ProfileSync $sync;
    private Problems $problems;

    public function __construct(
        Store $store,
        Connector $connector,
        Heartbeat $heartbeat,
        ProfileSync $sync,
        Problems $problems
    ) {
        $this->store     = $store;
        $this->connector = $connector;
        $this->heartbeat = $heartbeat;
        $this->sync      = $sync;
        $this->problems  = $problems;
    }

    /**
     * Connect the site. The client secret is read from standard input, because other users can see command lines.
     *
     * ## OPTIONS
     *
     * <client-id>
     * : The client id of the key.
     *
     * ## EXAMPLES
     *
     *     wp profilesvc connect svcid_1_1767323045678_demo_site < secret.txt
     *
     * @param list<string> $arguments
     */
    public function connect(array $arguments): void
    {
        $this->report($this->connector->connect($arguments[0], (string) file_get_contents('php://stdin')));
    }

    /**
     * Forget the credentials and stop sending.
     */
    public function disconnect(): void
    {
        $this->connector->disconnect();
        \WP_CLI::success(__('Disconnected.', 'profilesvc'));
    }

    /**
     * Send a heartbeat now.
     */
    public function heartbeat(): void
    {
        $this->report($this->heartbeat->beat());
    }

    /**
     * Send the stored profile now.
     */
    public function sync(): void
    {
        $this->report($this->sync->send());
    }

    /**
     * Show the location and the problems.
     */
    public function status(): void
    {
        $location = $this->store->get(Store::CREDENTIALS)['location_name'] ?? '';
        \WP_CLI::line($location ? $location : Words::of('NOT_CONNECTED'));
        foreach ($this->problems->all() as $area => $problem) {
            \WP_CLI::line("$area: {$problem['code']} " . Words::of($problem['code'], $problem['details']));
        }
    }

    private function report(Result $result): void
    {
        if ($result->isOk()) {
            \WP_CLI::success(__('Done.', 'profilesvc'));
        } else {
            \WP_CLI::error(Words::of($result->code, $result->details));
        }
    }
}
