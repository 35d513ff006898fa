<?php

/**
 * Runs code inside WordPress and prints what it returns as JSON, after a line of its own: drive.php FOLDER CODE
 */

$_SERVER['HTTP_HOST'] = 'localhost';
require $argv[1] . '/wp-load.php';
require_once ABSPATH . 'wp-admin/includes/plugin.php';

echo "\n--result--\n", wp_json_encode(eval($argv[2]));
