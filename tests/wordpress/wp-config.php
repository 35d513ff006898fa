<?php

/**
 * The configuration of the WordPress of the tests. tests/support/clients/wordpress.py writes settings.json next to it.
 */

$settings = json_decode(file_get_contents(__DIR__ . '/settings.json'), true);
$site     = getenv('SITE') ?: $settings['site'];

define('DB_NAME', getenv('DATABASE') ?: 'wordpress');
define('DB_USER', $settings['user']);
define('DB_PASSWORD', '');
define('DB_HOST', 'localhost:' . $settings['socket']);
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
$table_prefix = 'wp_';

foreach (['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'] as $purpose) {
    define($purpose . '_KEY', 'key of the tests');
    define($purpose . '_SALT', getenv($purpose . '_SALT') ?: 'salt of the tests');
}
define('WP_HOME', $site);
define('WP_SITEURL', $site);
define('PROFILESVC_URL', $settings['service']);
define('DISABLE_WP_CRON', true); // the tests run it
define('FS_METHOD', 'direct'); // a plugin is installed without FTP
define('AUTOMATIC_UPDATER_DISABLED', true);
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('WP_ACCESSIBLE_HOSTS', '127.0.0.1');

if (getenv('NETWORK')) {
    define('MULTISITE', true);
    define('SUBDOMAIN_INSTALL', false);
    define('DOMAIN_CURRENT_SITE', 'localhost');
    define('PATH_CURRENT_SITE', '/');
    define('SITE_ID_CURRENT_SITE', 1);
    define('BLOG_ID_CURRENT_SITE', 1);
}

defined('ABSPATH') || define('ABSPATH', __DIR__ . '/');
require_once ABSPATH . 'wp-settings.php';
