<?php

/**
 * A must-use plugin of the tests: it stands for WP-CLI, which Debian does not have.
 */

if (getenv('COMMAND')) {
    define('WP_CLI', true);

    class WP_CLI
    {
        public static array $commands = [];
        public static array $lines    = [];

        public static function add_command(string $name, object $command): void
        {
            self::$commands[$name] = $command;
        }

        public static function line(string $text): void
        {
            self::$lines[] = $text;
        }

        public static function success(string $text): void
        {
            self::$lines[] = "Success: $text";
        }

        public static function error(string $text): void
        {
            self::$lines[] = "Error: $text";
        }
    }
}
