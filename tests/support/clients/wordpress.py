"""A WordPress on a MariaDB of its own, from Debian's packages, with the plugin of examples/ in it."""

import html
import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.clients.plugin_zip import write_zip
from support.network.ports import free_port, listens
from support.repository import ROOT
from support.waiting import until

HERE = ROOT / "tests/wordpress"
SOURCE = Path("/usr/share/wordpress")
NEEDED = ("php", "mariadbd", "mariadb-install-db", "phpcs")
PATH = os.environ.get("PATH", "") + ":/usr/sbin"
PASSWORD = "password of the tests"
_MARK = "--result--\n"
_USER = "nobody"  # MariaDB refuses to run as root


def missing() -> list[str]:
    """Return the programs that are not installed."""
    programs = [name for name in NEEDED if shutil.which(name, path=PATH) is None]
    if "php" not in programs and b"mysqli" not in subprocess.run(["php", "-m"], capture_output=True, check=True).stdout:
        programs.append("php-mysql")
    return programs if SOURCE.is_dir() else [*programs, "wordpress"]


@contextmanager
def mariadb(folder: Path) -> Iterator[Path]:
    """Run MariaDB on a socket in this folder, without a port."""
    data, path = folder / "data", folder / "mariadb.sock"
    as_user = [f"--user={_USER}"] if os.geteuid() == 0 else []
    if as_user:
        shutil.chown(folder, _USER)
    environment = {**os.environ, "PATH": PATH}
    install = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal"]
    subprocess.run([*install, "--skip-test-db", *as_user], check=True, capture_output=True, env=environment)
    options = [f"--datadir={data}", f"--socket={path}", "--skip-networking", f"--pid-file={folder / 'pid'}"]
    fast = [
        "--innodb-flush-log-at-trx-commit=0",
        "--skip-log-bin",
        "--innodb-buffer-pool-size=32M",
        "--innodb-flush-method=fsync",
    ]
    server = subprocess.Popen(
        ["mariadbd", "--no-defaults", *options, *fast, *as_user], env=environment, stderr=subprocess.DEVNULL
    )
    try:
        _until_listening(path, server)
        yield path
    finally:
        server.kill()  # its files are removed
        server.wait(30)


def _until_listening(path: Path, server: subprocess.Popen[bytes]) -> None:
    def listens() -> bool:
        assert server.poll() is None, "MariaDB has ended"
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(str(path)) == 0

    until(listens, "MariaDB", every=0.05)


class WordPress:
    """A folder with WordPress and its plugin. Each call runs a PHP process of its own."""

    def __init__(self, folder: Path, service: str, database: Path) -> None:
        self.root = folder / "wordpress"
        shutil.copytree(SOURCE, self.root, ignore=shutil.ignore_patterns(".htaccess"))
        shutil.copy(HERE / "wp-config.php", self.root / "wp-config.php")
        (self.root / "wp-content/mu-plugins").mkdir()
        for name in ("must-use.php", "wp-cli.php"):
            shutil.copy(HERE / name, self.root / "wp-content/mu-plugins")
        self.port = free_port()
        self.url = f"http://localhost:{self.port}"
        settings = {"socket": str(database), "user": "root", "service": service, "site": self.url}
        (self.root / "settings.json").write_text(json.dumps(settings))
        self._database = database
        # Compiling WordPress takes longer than running it.
        cache = folder / "cache"
        cache.mkdir()
        compiled = {"enable_cli": 1, "file_cache": cache, "file_cache_only": 1, "validate_timestamps": 0}
        self._options = ["-d", "display_errors=stderr", "-d", "log_errors=0"]
        for name, value in compiled.items():
            self._options += ["-d", f"opcache.{name}={value}"]

    def install(self, name: str = "wordpress") -> None:
        """Create a database and the tables of WordPress in it."""
        create = f"(new mysqli(null, 'root', '', '', 0, '{self._database}'))->query('CREATE DATABASE {name}');"
        subprocess.run(["php", "-r", create], check=True)
        self.run(
            "define('WP_INSTALLING', true);"
            f"require '{self.root}/wp-load.php'; require ABSPATH . 'wp-admin/includes/upgrade.php';"
            f"wp_install('Harbour Coffee', 'admin', 'admin@site.example', false, '', '{PASSWORD}');",
            alone=True,
            DATABASE=name,
        )

    def add_plugin(self, archive: Path) -> None:
        """Install a plugin from a zip file, as an upload in wp-admin does."""
        code = (
            "require_once ABSPATH . 'wp-admin/includes/class-wp-upgrader.php';"
            "require_once ABSPATH . 'wp-admin/includes/file.php'; require_once ABSPATH . 'wp-admin/includes/misc.php';"
            "$skin = new Automatic_Upgrader_Skin();"
            "return [(new Plugin_Upgrader($skin))->install(getenv('ARCHIVE')), $skin->get_upgrade_messages()];"
        )
        done, messages = self.run(code, ARCHIVE=archive)
        assert done is True, messages

    def start(self, code: str, *, alone: bool = False, **environment: object) -> "subprocess.Popen[str]":
        """Start PHP with this code, inside WordPress unless `alone`."""
        driver = ["-r", code] if alone else [str(HERE / "drive.php"), str(self.root), code]
        return subprocess.Popen(
            ["php", *self._options, *driver],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={"PATH": PATH, "SERVER_NAME": "localhost", **{name: str(value) for name, value in environment.items()}},
        )

    def finish(self, process: "subprocess.Popen[str]", entered: str = "") -> Any:
        """Wait for a process, which reads what is entered, and return its result."""
        out, errors = process.communicate(entered, timeout=60)
        assert process.returncode == 0, out + errors
        return json.loads(out.split(_MARK)[1]) if _MARK in out else out

    def run(self, code: str, *, entered: str = "", **options: Any) -> Any:
        """Run code and return its result. Options are those of `start`."""
        return self.finish(self.start(code, **options), entered)

    def cron(self) -> None:
        """Run the events that are due, as the system's cron does."""
        subprocess.run(
            ["php", *self._options, str(self.root / "wp-cron.php")], check=True, capture_output=True, env={"PATH": PATH}
        )

    @contextmanager
    def served(self) -> Iterator[str]:
        """Serve the site by PHP's own server."""
        command = ["php", *self._options, "-S", f"127.0.0.1:{self.port}", "-t", str(self.root)]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={"PATH": PATH})
        try:
            until(lambda: listens(self.port), "PHP's server")
            yield self.url
        finally:
            server.terminate()
            server.wait(10)


@contextmanager
def installed(service: str) -> Iterator[WordPress]:
    """Set up MariaDB and WordPress in a temporary folder, and remove both."""
    with tempfile.TemporaryDirectory(prefix="wordpress-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "db").mkdir()
        with mariadb(folder / "db") as path:
            site = WordPress(folder, service, path)
            site.install()
            site.add_plugin(write_zip(folder))
            yield site


@dataclass(frozen=True)
class Key:
    """The credentials of a key."""

    client_id: str
    client_secret: str


_PARTS = """
use Profilesvc\\{Api, Connector, Heartbeat, Lock, Plugin, Problems, ProfileSync, Push, Session, Store, Tokens, Words};
$store = new Store();
$api = new Api(Plugin::url());
$tokens = new Tokens($store, $api);
$problems = new Problems($store);
$session = new Session($store, $api, $tokens, $problems);
$heartbeat = new Heartbeat($store, $session);
$connector = new Connector($store, $api, $heartbeat);
$sync = new ProfileSync($store, $session);
$store_profile = fn (array $profile) => $store->set(Store::PROFILE, $profile);
function notices(): string {
    require_once ABSPATH . 'wp-admin/includes/screen.php';
    require_once ABSPATH . 'wp-admin/includes/class-wp-screen.php';
    require_once ABSPATH . 'wp-admin/includes/template.php';
    wp_set_current_user(1);
    set_current_screen('dashboard');
    ob_start();
    (new Profilesvc\\AdminMessages(new Profilesvc\\Problems(new Store())))->render();
    return ob_get_clean();
}
"""


class Site:
    """The plugin in a WordPress, as its parts are called by hooks."""

    def __init__(self, wordpress: WordPress) -> None:
        self.wordpress = wordpress

    def run(self, code: str, **options: Any) -> Any:
        """Run code that names the plugin's parts: $store, $api, $tokens, $session, $heartbeat, $connector, $sync."""
        return self.wordpress.run(_PARTS + code, **options)

    def start(self, code: str, **environment: Any) -> "subprocess.Popen[str]":
        """Start such code."""
        return self.wordpress.start(_PARTS + code, **environment)

    def connect(self, key: Key, **environment: Any) -> Any:
        """Connect as the settings page does and return the code."""
        pair = f"'{key.client_id}', '{key.client_secret}'"
        return self.run(f"return $connector->connect({pair})->code;", **environment)

    def beat(self, *, days: float = 0, **environment: Any) -> Any:
        """Send a heartbeat, with the site's clock so many days ahead, and return the code."""
        return self.run("return $heartbeat->beat()->code;", CLOCK_OFFSET=round(days * 86400), **environment)

    def notices(self, **environment: Any) -> str:
        """Return what the owner sees on the dashboard of WordPress."""
        return html.unescape(str(self.run("return notices();", **environment)))
