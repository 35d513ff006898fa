<?php

namespace Profilesvc;

/**
 * Publishes new posts of the site as updates of the business, if the owner has switched it on.
 */
final class PostPublisher
{
    public const EVENT = 'profilesvc_publish';

    private const LONGEST = 1500;

    private Store $store;
    private Session $session;

    public function __construct(Store $store, Session $session)
    {
        $this->store   = $store;
        $this->session = $session;
    }

    // [posts]
    public function register(): void
    {
        add_action('transition_post_status', [$this, 'notice'], 10, 3);
        add_action(self::EVENT, [$this, 'publish']);
        add_action(Heartbeat::EVENT, [$this, 'schedule']);
    }

    /**
     * Leave the request to WP-Cron, so that the editor does not wait for it.
     */
    public function notice(string $new, string $old, \WP_Post $post): void
    {
        // An import would publish the posts of years.
        if ('publish' === $new && 'publish' !== $old && !defined('WP_IMPORTING') && $this->isWanted($post)) {
            update_post_meta($post->ID, Store::POST_PENDING, []); // no request yet
            wp_schedule_single_event(time(), self::EVENT, [$post->ID]);
        }
    }

    /**
     * Schedule the attempts that are missing: deactivating the plugin removes them, and PHP can end during a request.
     */
    public function schedule(): void
    {
        $pending = ['meta_key' => Store::POST_PENDING, 'post_status' => 'any', 'numberposts' => -1, 'fields' => 'ids'];
        foreach (get_posts($pending) as $id) {
            if (!wp_next_scheduled(self::EVENT, [$id])) {
                wp_schedule_single_event(time(), self::EVENT, [$id]);
            }
        }
    }

    private function isWanted(\WP_Post $post): bool
    {
        return $this->store->get(Store::POSTS) && 'post' === $post->post_type && 'publish' === $post->post_status
            && '' === $post->post_password && !get_post_meta($post->ID, Store::POST_NAME, true);
    }

    public function publish(int $id): void
    {
        $post = get_post($id);
        if (!$post || !$this->isWanted($post)) {
            delete_post_meta($id, Store::POST_PENDING);
            return;
        }
        $item   = get_post_meta($id, Store::POST_PENDING, true) ?: [];
        $push   = $item ? Push::stored($item) : Push::of($this->path(), self::update($post));
        $client = $this->clientId();
        $store  = static function (array $item) use ($id, $client): void {
            $first = ['client_id' => $client, 'since' => time()]; // of the first attempt
            // wp_slash, because update_post_meta removes backslashes.
            $item ? update_post_meta($id, Store::POST_PENDING, wp_slash($item + $first))
                : delete_post_meta($id, Store::POST_PENDING);
        };
        $later  = static function (int $seconds) use ($id): void {
            wp_schedule_single_event(time() + $seconds, self::EVENT, [$id]);
        };
        $listed = $this->listed($item);
        $result = $listed ?? $push->send($this->session, 'posts', $store, $later);
        if ($result->isOk()) {
            update_post_meta($id, Store::POST_NAME, $result->data['name']);
            $store([]);
        } elseif ($listed) {
            $later(HOUR_IN_SECONDS); // the list could not be read
        }
    }

    /**
     * Return the post that an earlier attempt has published, or why the list of posts could not be read. Return null if
     * the attempt can be repeated: the service knows an idempotency key for a day, and only from the same API key.
     *
     * @param array<string, mixed> $item
     */
    private function listed(array $item): ?Result
    {
        $isKnown = ($item['client_id'] ?? '') === $this->clientId() && $item['since'] > time() - 23 * HOUR_IN_SECONDS;
        if (!$item || $isKnown) {
            return null;
        }
        $result = $this->session->send('posts', 'GET', $this->path() . '&pageSize=100', null);
        if (!$result->isOk()) {
            return $result;
        }
        $text = static fn (array $post): array => [$post['summary'] ?? '', $post['callToAction']['url'] ?? ''];
        foreach ($result->data['localPosts'] as $post) { // the newest first
            if ($text($post) === $text($item['body'])) {
                $result->data = $post;
                return $result;
            }
        }
        return null;
    }

    /**
     * @return array<string, mixed>
     */
    private static function update(\WP_Post $post): array
    {
        $text = wp_strip_all_tags($post->post_title) . "\n\n" . wp_strip_all_tags(get_the_excerpt($post));
        return [
            'topicType'    => 'STANDARD',
            'summary'      => mb_substr(html_entity_decode(trim($text), ENT_QUOTES), 0, self::LONGEST),
            'callToAction' => ['actionType' => 'LEARN_MORE', 'url' => get_permalink($post)],
        ];
    }
    // [/posts]

    private function path(): string
    {
        $location = $this->store->get(Store::CREDENTIALS)['location'] ?? '';
        return '/api/v1/posts?locationId=' . rawurlencode($location);
    }

    private function clientId(): string
    {
        return $this->store->get(Store::CREDENTIALS)['client_id'] ?? '';
    }
}
