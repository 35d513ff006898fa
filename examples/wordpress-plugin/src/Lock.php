<?php

namespace Profilesvc;

/**
 * A lock that the processes of one site share. The database releases it when a process ends.
 */
final class Lock
{
    // [lock]
    private const SECONDS = 65; // longer than the requests of one holder: six, of 10 s

    /**
     * @return mixed what $work returns
     */
    public static function run(string $purpose, callable $work)
    {
        global $wpdb;
        // GET_LOCK's names are shared by all sites of a database server, and have at most 64 characters.
        $name = 'profilesvc_' . md5(DB_NAME . '/' . $wpdb->prefix . '/' . $purpose);
        $held = $wpdb->get_var($wpdb->prepare('SELECT GET_LOCK(%s, %d)', $name, self::SECONDS));
        try {
            return $work(); // also without the lock, for example on SQLite: the service accepts a repetition for 30 s
        } finally {
            if ('1' === $held) {
                $wpdb->get_var($wpdb->prepare('SELECT RELEASE_LOCK(%s)', $name));
            }
        }
    }
    // [/lock]
}
