"""Hosts are read as browsers read them: the URL parser of Node.js is that of the URL Standard."""

import json
import shutil
import subprocess

import pytest

from support.cases.sites import ADDRESSES

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed here"),
]
CODE = "for (const text of JSON.parse(process.argv[1])) console.log(new URL(text).host)"


def test_the_table_of_sites_is_the_browsers_rule() -> None:
    """The service also leaves out a full stop at the end, and the ports of both schemes."""
    cases = {each["address"].strip(): each["site"] for each in ADDRESSES if each["site"]}
    urls = [text if "://" in text else f"https://{text}" for text in cases]
    done = subprocess.run(["node", "-e", CODE, json.dumps(urls)], capture_output=True, text=True, check=True)
    hosts = [host.removesuffix(":80").removesuffix(":443").removesuffix(".") for host in done.stdout.splitlines()]
    assert dict(zip(cases, hosts, strict=True)) == cases
