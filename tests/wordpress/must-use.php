<?php

/**
 * A must-use plugin of the tests: it moves the plugin's clock, and turns the plugin's warnings into exceptions.
 */

namespace Profilesvc;

function time(): int
{
    return \time() + (int) getenv('CLOCK_OFFSET');
}

set_error_handler(static function (int $kind, string $message, string $file, int $line): bool {
    if (false !== strpos($file, '/plugins/profilesvc/')) {
        throw new \ErrorException($message, 0, $kind, $file, $line);
    }
    return true; // WordPress 6.1 has warnings of its own on PHP 8.2
});
