"""nginx for the tests: the program, its main file in a folder of the test, and deploy/nginx.conf with other ports."""

import os
import shutil
from pathlib import Path

from support.repository import ROOT

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
_KINDS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def main_file(folder: Path, include: str) -> str:
    """Return a main file that keeps everything in the folder. Compression is on, as in Debian's file."""
    paths = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in _KINDS)
    user = "user root;" if os.geteuid() == 0 else ""  # who may write into the folder of the test
    http = f"access_log off; gzip on; {paths} include {include};"
    return f"{user} worker_processes 1; pid {folder}/pid; error_log {folder}/error.log; events {{}} http {{ {http} }}"


def site_file(upstreams: list[int], http: int, https: int, certificates: Path, name: str) -> str:
    """Return deploy/nginx.conf with these ports, this folder of certificates and this name."""
    text = (ROOT / "deploy" / "nginx.conf").read_text("utf-8")
    for old, new in [
        ("127.0.0.1:8000", f"127.0.0.1:{upstreams[0]}"),
        ("127.0.0.1:8001", f"127.0.0.1:{upstreams[1]}"),
        ("listen 80;", f"listen 127.0.0.1:{http};"),
        ("listen 443 ", f"listen 127.0.0.1:{https} "),
        ("/var/log/nginx/access.log", f"{certificates}/access.log"),
        ("/etc/letsencrypt/live/profiles.example.com", str(certificates)),
        ("profiles.example.com", name),
    ]:
        assert old in text
        text = text.replace(old, new)
    return text
