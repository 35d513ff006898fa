<?php

/**
 * Plugin Name:       Business Profile Connector
 * Description:       Reports to profilesvc that this site is alive, and sends the business profile and new posts to it.
 * Version:           1.0.0
 * Requires at least: 6.0
 * Requires PHP:      7.4
 * License:           GPL-2.0-or-later
 * License URI:       https://www.gnu.org/licenses/gpl-2.0.html
 * Text Domain:       profilesvc
 * Update URI:        false
 * Domain Path:       /languages
 */

namespace Profilesvc;

defined('ABSPATH') || exit;

spl_autoload_register(static function (string $class): void {
    if (0 === strpos($class, __NAMESPACE__ . '\\')) {
        require __DIR__ . '/src/' . substr($class, strlen(__NAMESPACE__) + 1) . '.php';
    }
});

(new Plugin(__FILE__))->start();
