<?php

namespace Profilesvc;

require_once __DIR__ . '/Hours.php';

/**
 * Sends the profile that the owner entered: title, address, phone, hours.
 */
final class ProfileSync
{
    public const EVENT = 'profilesvc_sync';

    private Store $store;
    private Session $session;

    public function __construct(Store $store, Session $session)
    {
        $this->store   = $store;
        $this->session = $session;
    }

    public function register(): void
    {
        add_action(self::EVENT, [$this, 'resume']);
        add_action(Heartbeat::EVENT, [$this, 'schedule']);
    }

    // [sync]
    /**
     * Send the stored profile.
     */
    public function send(): Result
    {
        $profile = self::profile($this->store->get(Store::PROFILE));
        if (!$profile) {
            return Result::failure('EMPTY_PROFILE'); // the service would return VALIDATION_ERROR for {}
        }
        return Lock::run('profile', function () use ($profile): Result {
            wp_unschedule_hook(self::EVENT); // this profile replaces one that was not sent yet
            $location = $this->store->get(Store::CREDENTIALS)['location'] ?? '';
            return $this->deliver(Push::of('/api/v1/sync/' . rawurlencode($location), $profile));
        });
    }

    /**
     * Send again what did not arrive, with the same idempotency key. The lock keeps an older profile from arriving
     * after a newer one.
     */
    public function resume(): void
    {
        Lock::run('profile', function (): void {
            $item = $this->store->read(Store::PENDING);
            if ($item) {
                $this->deliver(Push::stored($item));
            }
        });
    }

    /**
     * Schedule the next attempt if it is missing: deactivating the plugin removes it, and PHP can end during a request.
     */
    public function schedule(): void
    {
        if ($this->store->get(Store::PENDING) && !wp_next_scheduled(self::EVENT)) {
            wp_schedule_single_event(time(), self::EVENT);
        }
    }

    private function deliver(Push $push): Result
    {
        $store = function (array $item): void {
            $item ? $this->store->set(Store::PENDING, $item) : $this->store->forget(Store::PENDING);
        };
        $later = static function (int $seconds): void {
            wp_schedule_single_event(time() + $seconds, self::EVENT);
        };
        return $push->send($this->session, 'profile', $store, $later);
    }

    /**
     * Return the profile in the provider's format. An empty field is left out: null would clear it at the provider.
     *
     * @param array<string, mixed> $entered
     *
     * @return array<string, mixed>
     */
    public static function profile(array $entered): array
    {
        return array_filter([
            'title'             => $entered['title'] ?? '',
            'phoneNumbers'      => array_filter(['primaryPhone' => $entered['phone'] ?? '']),
            'storefrontAddress' => array_filter([
                'regionCode'         => $entered['country'] ?? '',
                'postalCode'         => $entered['postal_code'] ?? '',
                'administrativeArea' => $entered['area'] ?? '',
                'locality'           => $entered['locality'] ?? '',
                'addressLines'       => $entered['address'] ?? [],
            ]),
            'regularHours'      => array_filter(['periods' => self::periods($entered['hours'] ?? [])]),
        ]);
    }
    // [/sync]

    /**
     * @param array<string, mixed> $hours by day, as ProfileForm reads them
     *
     * @return list<array<string, mixed>> nothing if a day cannot be read: without its period it would be sent as closed
     */
    private static function periods(array $hours): array
    {
        $periods = [];
        foreach (Hours::DAYS as $day) {
            try {
                $periods = array_merge($periods, Hours::periods($day, Hours::text($hours[$day] ?? '')));
            } catch (\InvalidArgumentException $error) {
                return [];
            }
        }
        return $periods;
    }
}
