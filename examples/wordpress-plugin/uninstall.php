<?php

/**
 * Remove everything that the plugin stored, on every site of the network.
 */

namespace Profilesvc;

defined('WP_UNINSTALL_PLUGIN') || exit;

require __DIR__ . '/src/Store.php';

Store::onSites(is_multisite(), [Store::class, 'erase']);
