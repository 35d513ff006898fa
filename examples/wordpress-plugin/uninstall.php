<?php

/**
 * Remove everything that the plugin stored, on every site of the network.
 */

namespace Profilesvc;

defined('WP_UNINSTALL_PLUGIN') || exit;

// Once, because the plugin can be loaded already: deactivated and deleted by the same process.
require_once __DIR__ . '/src/Store.php';

Store::onSites(is_multisite(), [Store::class, 'erase']);
