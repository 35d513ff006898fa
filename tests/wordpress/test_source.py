"""The plugin's files by themselves: syntax, style, and the oldest PHP that they promise."""

import re
import struct
import subprocess
import zipfile
from pathlib import Path

import pytest

from support.clients.plugin_zip import PLUGIN, write_zip
from support.clients.wordpress import Site, WordPress, missing

pytestmark = pytest.mark.wordpress

FILES = sorted(PLUGIN.rglob("*.php"))
# Tokens that came with PHP 8: 7.4 is promised, and Debian has a newer one.
NEWER = """
$newer = ['T_MATCH', 'T_ENUM', 'T_READONLY', 'T_ATTRIBUTE', 'T_NULLSAFE_OBJECT_OPERATOR'];
foreach (array_slice($argv, 1) as $file) {
    foreach (token_get_all(file_get_contents($file)) as $token) {
        if (is_array($token) && in_array(token_name($token[0]), $newer, true)) { echo "$file:$token[2] $token[1]\\n"; }
    }
}
"""
# Unions, `mixed`, promoted properties and named arguments have no token of their own.
NEWER_SYNTAX = re.compile(
    r"\)\s*:\s*(?:mixed|static|never)\b"
    r"|(?:public|private|protected|[(,])\s*[?\w\\]+\|[\w\\|]+\s+\$"
    r"|__construct\([^)]*(?:public|private|protected)\s"
    r"|[(,]\s*\w+:\s(?!:)[^;]*\)\s*;"
    r"|\b(?:str_contains|str_starts_with|str_ends_with|array_is_list|get_debug_type)\("
)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    if missing():
        pytest.skip(f"not installed here: {', '.join(missing())}")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_has_no_syntax_error(file: Path) -> None:
    done = subprocess.run(["php", "-l", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_code_has_the_style_of_its_rules() -> None:
    done = subprocess.run(
        ["phpcs", "-q", "--standard=phpcs.xml.dist"], cwd=PLUGIN, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "")


def newer_than_7_4(text: str) -> list[str]:
    return [found[0] for found in NEWER_SYNTAX.finditer(COMMENT.sub("''", text))]


def test_nothing_is_newer_than_the_promised_php() -> None:
    done = subprocess.run(["php", "-r", NEWER, *map(str, FILES)], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert {file.name: newer_than_7_4(file.read_text("utf-8")) for file in FILES} == {file.name: [] for file in FILES}


def test_newer_syntax_is_found() -> None:
    newer = ["f(int|string $a)", "f(): mixed", "__construct(private A $a)", "f(a: 1);", "str_contains($a, $b)"]
    assert [bool(newer_than_7_4(each)) for each in newer] == [True] * 5


def test_every_file_starts_as_the_plugin_requires() -> None:
    header = (PLUGIN / "profilesvc.php").read_text("utf-8")
    readme = (PLUGIN / "readme.txt").read_text("utf-8")
    assert "License:           GPL-2.0-or-later" in header
    assert "Update URI:        false" in header  # a plugin of this name on WordPress.org must not replace it
    (version,) = re.findall(r"\* Version: +(\S+)", header)
    assert f"VERSION = '{version}'" in (PLUGIN / "src/Plugin.php").read_text("utf-8")
    assert f"Stable tag: {version}" in readme
    for name, value in (("Requires PHP", "7.4"), ("Requires at least", "6.0"), ("License", "GPL-2.0-or-later")):
        assert re.search(rf"^{name}: {re.escape(value)}$", readme, re.MULTILINE), name


def test_the_zip_file_is_the_same_each_time(tmp_path: Path) -> None:
    first, second = write_zip(tmp_path / "a"), write_zip(tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as packed:
        assert packed.testzip() is None
        names = packed.namelist()
        assert {entry.date_time for entry in packed.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert names == sorted(names)
    assert {"profilesvc/profilesvc.php", "profilesvc/readme.txt", "profilesvc/src/Api.php"} <= set(names)


def test_wordpress_has_installed_the_files_of_the_zip_file(installation: WordPress, tmp_path: Path) -> None:
    with zipfile.ZipFile(write_zip(tmp_path)) as packed:
        for name in packed.namelist():
            assert (installation.root / "wp-content/plugins" / name).read_bytes() == packed.read(name), name


def compiled(texts: dict[str, str]) -> bytes:
    """A catalogue of translations as gettext reads it (.mo)."""
    entries = sorted((text.encode(), translated.encode()) for text, translated in texts.items())
    start, data = 28 + 16 * len(entries), b""
    tables: tuple[list[int], list[int]] = ([], [])
    for part, table in enumerate(tables):
        for entry in entries:
            table += [len(entry[part]), start + len(data)]
            data += entry[part] + b"\0"
    head = [0x950412DE, 0, len(entries), 28, 28 + 8 * len(entries), 0, start]
    return struct.pack(f"<{len(head)}I", *head) + struct.pack(f"<{4 * len(entries)}I", *tables[0], *tables[1]) + data


def test_a_translation_is_used(site: Site) -> None:
    translated = "Diese Website ist nicht verbunden."
    catalogue = compiled({"": "Content-Type: text/plain; charset=UTF-8\n", "This site is not connected.": translated})
    folder = site.wordpress.root / "wp-content/plugins/profilesvc/languages"
    (folder / "profilesvc-de_DE.mo").write_bytes(catalogue)
    load = "(new Plugin(WP_PLUGIN_DIR . '/profilesvc/profilesvc.php'))->loadTranslations();"
    words = f"add_filter('plugin_locale', fn () => 'de_DE'); {load} return Words::of('NOT_CONNECTED');"
    assert site.run(words) == translated
