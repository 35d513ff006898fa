"""The plugin's rules that need no WordPress, by PHP with no extension but those that are always there (`php -n`)."""

import json
import re
import shutil
import subprocess
from typing import Any

import pytest

from support.cases.retry_after import CASES, NOW
from support.cases.sites import ADDRESSES, SAME
from support.cases.sites import PLUGIN as SITES
from support.clients.plugin_zip import PLUGIN
from support.repository import ROOT

pytestmark = [
    pytest.mark.wordpress,
    pytest.mark.skipif(shutil.which("php") is None, reason="PHP is not installed here"),
]
BARE = ("-n",)


def php(code: str, value: object = None, options: tuple[str, ...] = BARE) -> Any:
    """What code returns; `$input` is the value."""
    command = ["php", *options, str(ROOT / "tests/wordpress/rules.php"), str(PLUGIN), code]
    done = subprocess.run(command, input=json.dumps(value), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


ADDRESS = """
return array_map(function ($home) {
    $GLOBALS['options'] = ['home' => $home];
    return explode('/', Site::address())[0];
}, $input);
"""


@pytest.mark.parametrize(("options", "kinds"), [(BARE, {None}), ((), {None, "intl"})], ids=["bare", "with intl"])
def test_an_address_is_the_site_that_the_service_reads(options: tuple[str, ...], kinds: set[str | None]) -> None:
    """Without intl the rare mappings of UTS 46 are left out; the plugin never reads a key's domain."""
    if "intl" in kinds and not php("return function_exists('idn_to_ascii');", options=options):
        pytest.skip("php-intl is not installed here")
    cases = [case for case in ADDRESSES if case.get("php") in kinds]
    assert len(cases) > 50
    found = php(ADDRESS, [case["address"] for case in cases], options)
    assert dict(zip((case["address"] for case in cases), found, strict=True)) == {
        case["address"]: case["site"] or "" for case in cases
    }


CHANGE = """
return array_map(function ($case) {
    $GLOBALS['options'] = ['home' => $case['home']];
    return [Site::change($case['connected']) === [], Site::change(Site::stored($case['connected'])) === []];
}, $input);
"""


def test_a_site_is_the_connected_one_in_every_spelling() -> None:
    """As this version stores it, and as earlier ones did."""
    twins = [
        {"connected": case["one"], "home": case["other"], "same": case["same"]} for case in SAME if not case["allowed"]
    ]
    cases = [*SITES, *twins]
    assert php(CHANGE, cases) == [[case["same"]] * 2 for case in cases]


def test_a_site_with_several_addresses_lists_them() -> None:
    """A dynamic WP_HOME; a copy is at an address that is not in the list."""
    code = "define('PROFILESVC_SITES', 'harbour.example, https://Shop.harbour.example:8443/ ,');" + CHANGE
    homes = ["https://shop.harbour.example:8443", "https://www.harbour.example", "https://staging.harbour.example"]
    cases = [{"connected": "harbour.example", "home": home} for home in homes]
    assert [same for same, _ in php(code, cases)] == [True, True, False]
    cases = [{"connected": "other.example", "home": home} for home in homes]
    assert [same for same, _ in php(code, cases)] == [False] * 3


COPY = """
$credentials = ['client_id' => 'id', 'client_secret' => 's3cret', 'site' => Site::stored('harbour.example')];
$options = ['home' => 'https://harbour.example'];
(new Store())->set(Store::CREDENTIALS, $credentials);
$replace = function ($value, $from, $to) use (&$replace) {
    if (is_array($value)) {
        return array_map(fn ($each) => $replace($each, $from, $to), $value);
    }
    return is_string($value) ? str_replace($from, $to, $value) : $value;
};
return array_map(function ($pair) use ($options, $replace) {
    $GLOBALS['options'] = $replace($GLOBALS['options'], ...$pair);
    $found = [Site::change((new Store())->get(Store::CREDENTIALS)['site']), get_option('home')];
    $GLOBALS['options'] = $replace($GLOBALS['options'], $pair[1], $pair[0]);
    return $found;
}, $input);
"""
KEYS = "define('AUTH_KEY', 'a key of its own'); define('AUTH_SALT', 'a salt of its own');"


@pytest.mark.parametrize("keys", ["", KEYS], ids=["plain", "encrypted"])
def test_replacing_the_address_in_a_copied_database_does_not_rewrite_the_connected_site(keys: str) -> None:
    pairs = [
        ["https://harbour.example", "https://staging.harbour.example"],
        ["//harbour.example", "//staging.harbour.example"],
        ["harbour.example", "staging.harbour.example"],
        ["harbour.example", "harbour-copy.test"],
        ["harbour", "copy"],
    ]
    for change, home in php(keys + COPY, pairs):
        assert change == {"connected": "harbour.example", "here": home.removeprefix("https://")}


def test_options_of_earlier_versions_are_encoded_and_encrypted() -> None:
    code = (
        KEYS
        + """
    $site = ['site' => 'harbour.example', 'location' => 'l'];
    $old = [
        Store::CREDENTIALS => ['client_id' => 'id', 'client_secret' => 's3cret'] + $site,
        Store::TOKEN       => ['access' => 't0ken', 'refresh' => 'r3fresh', 'access_until' => 5, 'refresh_until' => 4],
        Store::WEBHOOK     => ['secret' => 'whsec_x'],
    ];
    $options = $old;
    $store = new Store();
    $read = fn () => array_map([$store, 'get'], array_combine(array_keys($old), array_keys($old)));
    $before = $read();
    $store->protect();
    $stored = json_encode($options);
    $store->protect();
    return [$before === $old, $read(), $stored, json_encode($options) === $stored];
    """
    )
    is_same, after, stored, is_stable = php(code)
    assert is_same, "they are read as they are"
    assert is_stable
    assert not re.search(r"s3cret|t0ken|r3fresh|whsec_x|harbour", stored)
    assert after["profilesvc_credentials"].pop("site") == php("return Site::stored('harbour.example');")
    assert after == {
        "profilesvc_credentials": {"client_id": "id", "client_secret": "s3cret", "location": "l"},
        "profilesvc_token": {"access": "t0ken", "access_until": 5, "refresh": "r3fresh", "refresh_until": 4},
        "profilesvc_webhook": {"secret": "whsec_x"},
    }


def test_other_keys_make_secrets_unreadable_and_nothing_else() -> None:
    sealed = php(KEYS + "return Secrets::seal(['client_id' => 'id', 'client_secret' => 's3cret']);")
    read = "$options = [Store::CREDENTIALS => $input]; $store = new Store();"
    read += "return [$store->get(Store::CREDENTIALS), $store->isUnreadable(Store::CREDENTIALS)];"
    assert php(KEYS + read, sealed) == [{"client_id": "id", "client_secret": "s3cret"}, False]
    broken = {**sealed, "client_secret": sealed["client_secret"][:-8]}
    for code, value in ((KEYS.replace("salt of", "other salt of"), sealed), ("", sealed), (KEYS, broken)):
        assert php(code + read, value) == [{"client_id": "id", "client_secret": ""}, True]


@pytest.mark.parametrize("keys", ["", "define('AUTH_KEY', 'put your unique phrase here'); define('AUTH_SALT', 'x');"])
def test_without_keys_of_its_own_secrets_stay_as_they_are(keys: str) -> None:
    assert php(keys + "return [Secrets::canSeal(), Secrets::seal(['secret' => 'x'])];") == [False, {"secret": "x"}]


def test_the_plugin_reads_retry_after() -> None:
    code = f"return array_map(fn ($value) => RetryAfter::seconds($value, {NOW:.0f}), $input);"
    assert php(code, [case["value"] for case in CASES]) == [case["seconds"] for case in CASES]


def test_a_response_waits_an_hour_at_most() -> None:
    code = """
    return array_map(function ($value) {
        $headers = ['retry-after' => $value];
        return Result::of(['status' => 503, 'body' => '', 'headers' => $headers])->retryAfter;
    }, $input);
    """
    assert php(code, ["7", "86400", "soon", ["7", "7"], "Fri, 31 Dec 9999 23:59:59 GMT"]) == [7, 3600, 0, 0, 3600]


PARTS = """
$store = new Store();
$api = new Api('https://profiles.example');
$tokens = new Tokens($store, $api);
$problems = new Problems($store);
$session = new Session($store, $api, $tokens, $problems);
$heartbeat = new Heartbeat($store, $session);
$options['home'] = 'https://harbour.example';
$connect = fn () => $store->set(
    Store::CREDENTIALS,
    ['client_id' => 'id', 'client_secret' => 's', 'site' => Site::stored('harbour.example'), 'location' => 'l']
);
$connect();
$failure = fn ($status, $code) => [$status, ['status' => 'error', 'error' => ['code' => $code]]];
$granted = fn ($token, $seconds = 3600) => [200, ['status' => 'ok', 'data' => [
    'access_token' => $token, 'expires_in' => $seconds, 'refresh_token' => "r-$token", 'refresh_expires_in' => $seconds,
]]];
$ok = [200, ['status' => 'ok', 'data' => []]];
"""


def test_a_token_that_cannot_be_renewed_is_used_until_it_expires() -> None:
    code = """
    $at = function ($seconds, ...$next) use ($tokens) {
        [$GLOBALS['now'], $GLOBALS['responses'], $GLOBALS['sent']] = [1000000 + $seconds, $next, []];
        try {
            $result = $tokens->current();
        } catch (Refused $refused) {
            $result = $refused->result->code;
        }
        return [$result, array_map(fn ($each) => $each['body']['grant_type'], $GLOBALS['sent'])];
    };
    $down = $failure(503, 'SERVICE_UNAVAILABLE');
    return [
        $at(0, $granted('a')), $at(3299), $at(3301, $down), $at(3330), $at(3332, [502, '<html>']), $at(3540, $down),
        $at(3580, $failure(401, 'AUTH_INVALID_TOKEN')), $at(3600),
    ];
    """
    assert php(PARTS + code) == [
        ["a", ["client_credentials"]],
        ["a", []],
        ["a", ["refresh_token"]],
        ["a", []],
        ["a", ["client_credentials"]],  # the refresh token is sent once
        ["a", ["client_credentials"]],
        ["AUTH_INVALID_TOKEN", ["client_credentials"]],
        ["STOPPED", []],
    ]
    short = code.replace("$at(0, $granted('a')), $at(3299)", "$at(0, $granted('a', 60)), $at(29)")
    assert php(PARTS + short)[:2] == [["a", ["client_credentials"]], ["a", []]]


def test_a_token_that_has_expired_or_was_rejected_is_not_used() -> None:
    code = """
    $responses = [$granted('a'), $failure(503, 'SERVICE_UNAVAILABLE'), $failure(503, 'SERVICE_UNAVAILABLE')];
    $tokens->current();
    $results = [];
    foreach ([[3000, 'a'], [3600, '']] as [$seconds, $rejected]) {
        $now = 1000000 + $seconds;
        try {
            $results[] = $tokens->current($rejected);
        } catch (Refused $refused) {
            $results[] = $refused->result->code;
        }
    }
    return $results;
    """
    assert php(PARTS + code) == ["SERVICE_UNAVAILABLE"] * 2


def test_another_address_of_the_site_is_shown_at_the_connected_one() -> None:
    """A WP_HOME that depends on the request: cron ran at the other address, its owner sees only the connected one."""
    code = """
    $found = [$problems->all()];
    $options['home'] = 'https://shop.harbour.example';
    $found[] = $heartbeat->beat()->code;
    $found[] = $sent;
    $options['home'] = 'https://harbour.example';
    $found[] = $problems->all();
    $now += 86401;
    $found[] = $problems->all();
    return $found;
    """
    sites = {"connected": "harbour.example", "here": "shop.harbour.example"}
    before, beat, sent, shown, later = php(PARTS + code)
    assert (before, beat, sent, later) == ([], "SITE_CHANGED", [], [])
    assert (shown["address"]["code"], shown["address"]["details"]) == ("SITE_VARIES", sites)
    listed = "define('PROFILESVC_SITES', 'harbour.example, shop.harbour.example');" + PARTS
    beat = "$responses = [$granted('a'), $ok]; $options['home'] = 'https://shop.harbour.example';"
    assert php(listed + beat + "return [$heartbeat->beat()->code, $problems->all()];") == ["OK", []]


def test_changed_keys_ask_to_connect_again_and_keep_what_waits() -> None:
    """The option holds what was sealed by the keys before."""
    sealed = php(KEYS + "return Secrets::seal(['client_id' => 'id', 'client_secret' => 's', 'location' => 'l']);")
    code = """
    $site = ['site' => Site::stored('harbour.example')];
    [$options[Store::CREDENTIALS], $options[Store::WEBHOOK]] = [$input + $site, ['secret' => $input['client_secret']]];
    $result = $heartbeat->beat();
    $codes = array_column($problems->all(), 'code');
    $connect();
    return [$result->code, $result->keepsChange(), $sent, $codes, array_column($problems->all(), 'code')];
    """
    again = ["KEYS_CHANGED", "WEBHOOK_UNREADABLE"]
    found = php(KEYS.replace("key of", "new key of") + PARTS + code, sealed)
    assert found == ["KEYS_CHANGED", True, [], again, again[1:]]


def test_a_heartbeat_names_the_plugins_of_the_network() -> None:
    code = """
    $options['active_plugins'] = ['a/a.php', 'both/both.php'];
    $responses = [$granted('a'), $ok];
    $heartbeat->beat();
    return end($sent)['body']['detected_plugins'];
    """
    own = ["a/a.php", "both/both.php"]
    assert php(PARTS + code) == own
    network = "$network = ['active_sitewide_plugins' => ['both/both.php' => 1, 'n/n.php' => 2]];"
    assert php(network + PARTS + code) == [*own, "n/n.php"]


def test_secrets_are_sent_by_tls_or_to_this_machine_and_never_to_the_target_of_a_redirect() -> None:
    code = """
    return array_map(function ($url) {
        $GLOBALS['responses'] = [[307, '']];
        return (new Api($url))->request('POST', '/x')->code;
    }, $input);
    """
    private = ["https://profiles.example", "HTTPS://profiles.example", "http://localhost:8000", "http://127.0.0.1"]
    assert php(code, [*private, "http://[::1]:1"]) == ["UNREADABLE"] * 5
    public = [
        "http://profiles.example",
        "http://localhost.evil.example",
        "http://localhost@evil.example",
        "ftp://localhost",
    ]
    assert php(code, [*public, "http://127.0.0.1.evil.example", "https://", "", "//x"]) == ["INSECURE_URL"] * 8
    once = "$responses = [[307, '']]; (new Api('https://profiles.example'))->request('POST', '/x'); return $sent;"
    assert [request["redirection"] for request in php(once)] == [0]
