"""Deactivating and deleting the plugin."""

from typing import Any

import pytest

from support.clients.wordpress import Site, WordPress

pytestmark = pytest.mark.wordpress

LEFT = """
global $wpdb;
$options = $wpdb->get_col("SELECT option_name FROM $wpdb->options WHERE option_name LIKE '%profilesvc%'");
$meta = $wpdb->get_col("SELECT meta_key FROM $wpdb->postmeta WHERE meta_key LIKE '%profilesvc%'");
$events = array_keys(array_merge(...array_values(_get_cron_array())));
$events = array_filter($events, fn ($name) => 0 === strpos($name, 'profilesvc'));
return array_merge($options, $meta, array_values($events));
"""
FILL = """
foreach ((new ReflectionClass(Profilesvc\\Store::class))->getConstants() as $name => $value) {
    if (is_string($value) && 0 === strpos($value, 'profilesvc_')) {
        update_option($value, ['client_id' => 'x', 'site' => 'localhost'], false);
    }
}
foreach (['profilesvc_sync', 'profilesvc_heartbeat', 'profilesvc_publish'] as $event) {
    wp_schedule_event(time() + 60, 'hourly', $event);
    wp_schedule_single_event(time() + 9000, $event, [7]);
}
foreach ([Profilesvc\\Store::POST_NAME, Profilesvc\\Store::POST_PENDING] as $name) {
    update_post_meta(1, $name, 'x');
}
"""
DEACTIVATE = "deactivate_plugins('profilesvc/profilesvc.php');"
UNINSTALL = "uninstall_plugin('profilesvc/profilesvc.php');"


def test_deactivation_ends_the_events_and_activation_brings_them_back(connected: Site) -> None:
    connected.run(DEACTIVATE)
    left = connected.wordpress.run(LEFT)
    assert "profilesvc_credentials" in left
    assert "profilesvc_heartbeat" not in left
    connected.wordpress.run("activate_plugin('profilesvc/profilesvc.php');")
    assert "profilesvc_heartbeat" in connected.wordpress.run(LEFT)


def test_deletion_leaves_nothing(site: Site) -> None:
    site.run(FILL)
    assert len(site.run(LEFT)) >= 14
    site.run(DEACTIVATE)
    site.wordpress.run(UNINSTALL)
    assert site.wordpress.run(LEFT) == []


def test_deletion_by_the_process_that_deactivated_it_leaves_nothing(connected: Site) -> None:
    assert connected.run(DEACTIVATE + UNINSTALL + LEFT) == []


@pytest.fixture(scope="module")
def network(installation: WordPress) -> WordPress:
    """A multisite network with two sites, in a database of its own."""
    installation.install("network")
    schema = "require ABSPATH . 'wp-admin/includes/upgrade.php'; global $wpdb;"
    tables = "foreach ($wpdb->tables('ms_global') as $name => $table) { $wpdb->$name = $table; } install_network();"
    populate = "populate_network(1, 'localhost', 'admin@site.example', 'Network', '/', false);"
    installation.run(schema + tables + populate, DATABASE="network")
    second = (
        "return wp_insert_site(['domain' => 'localhost', 'path' => '/second/', 'title' => 'Second', 'user_id' => 1]);"
    )
    assert installation.run(second, DATABASE="network", NETWORK="1") == 2
    return installation


def test_deletion_leaves_nothing_on_any_site_of_a_network(network: WordPress) -> None:
    def run(code: str) -> Any:
        return network.run(code, DATABASE="network", NETWORK="1", SITE="http://localhost")

    def on_each(code: str) -> Any:
        return run(
            f"$work = function () {{ {code} }};"
            "foreach (get_sites(['fields' => 'ids']) as $id)"
            " { switch_to_blog($id); $found[] = $work(); restore_current_blog(); } return $found;"
        )

    run("activate_plugin('profilesvc/profilesvc.php', '', true);")
    on_each(FILL)
    assert [len(left) >= 14 for left in on_each(LEFT)] == [True, True]
    run("do_action('deactivate_profilesvc/profilesvc.php', false);")  # on the first site only
    events = "return (bool) wp_next_scheduled('profilesvc_heartbeat');"
    assert on_each(events) == [False, True]
    run("do_action('activate_profilesvc/profilesvc.php', true);")
    assert on_each(events) == [True, True]
    run("deactivate_plugins('profilesvc/profilesvc.php', false, true);")
    run(UNINSTALL)
    assert on_each(LEFT) == [[], []]
