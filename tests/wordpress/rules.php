<?php

/**
 * Evaluates code with the plugin's classes that decide by themselves, without WordPress: php -n rules.php PLUGIN CODE
 *
 * Only the functions of WordPress that these classes call are replaced. The options are in $options, those of the network
 * in $network, what the service responds in $responses, the requests in $sent, and the time is $now.
 */

namespace {
    define('MINUTE_IN_SECONDS', 60);
    define('HOUR_IN_SECONDS', 3600);
    define('DAY_IN_SECONDS', 86400);
    [$options, $network, $responses, $sent, $now] = [[], [], [], [], 1000000];
    function get_option($name, $default = false)
    {
        return $GLOBALS['options'][$name] ?? $default;
    }
    function update_option($name, $value)
    {
        $GLOBALS['options'][$name] = $value;
    }
    function delete_option($name)
    {
        unset($GLOBALS['options'][$name]);
    }
    function home_url()
    {
        return get_option('home');
    }
    function untrailingslashit($text)
    {
        return rtrim($text, '/\\');
    }
    if (!function_exists('mb_substr')) {
        function mb_substr($text, $start, $length)
        {
            return substr($text, $start, $length);
        }
    }
    function wp_parse_url($url, $part = -1)
    {
        return parse_url($url, $part);
    }
    function wp_json_encode($value)
    {
        return json_encode($value);
    }
    function wp_schedule_single_event()
    {
    }
    function is_wp_error()
    {
        return false;
    }
    function is_multisite()
    {
        return (bool) $GLOBALS['network'];
    }
    function get_site_option($name)
    {
        return $GLOBALS['network'][$name];
    }
    function get_bloginfo()
    {
        return '6.8';
    }
    function wp_remote_request($url, $arguments)
    {
        $GLOBALS['sent'][] = ['path' => parse_url($url, PHP_URL_PATH), 'body' => json_decode((string) $arguments['body'], true)]
            + ['redirection' => $arguments['redirection']];
        [$status, $body] = array_shift($GLOBALS['responses']);
        return ['status' => $status, 'body' => is_string($body) ? $body : json_encode($body), 'headers' => []];
    }
    function wp_remote_retrieve_header($response, $name)
    {
        return $response['headers'][$name] ?? '';
    }
    function wp_remote_retrieve_response_code($response)
    {
        return $response['status'];
    }
    function wp_remote_retrieve_body($response)
    {
        return $response['body'];
    }
    function wp_cache_delete()
    {
    }
    function maybe_unserialize($value)
    {
        return unserialize($value);
    }

    // The database of the class Lock and of Store::read().
    $wpdb = new class {
        public $options = 'options';
        public $prefix  = 'wp_';
        public function prepare($query, ...$values)
        {
            return [$query, $values];
        }
        public function get_var($query)
        {
            return false === strpos($query[0], 'option_value') ? '1' : serialize(get_option($query[1][0]));
        }
    };
    define('DB_NAME', 'wordpress');
    set_error_handler(static function (int $kind, string $message, string $file, int $line): bool {
        throw new \ErrorException($message, 0, $kind, $file, $line);
    });
    spl_autoload_register(static function (string $class) use ($argv): void {
        require $argv[1] . '/src/' . substr($class, strlen('Profilesvc\\')) . '.php';
    });
}

namespace Profilesvc {
    function time(): int
    {
        return $GLOBALS['now'];
    }

    $input = json_decode((string) stream_get_contents(STDIN), true);
    echo json_encode(eval('namespace Profilesvc; ' . $argv[2]));
}
