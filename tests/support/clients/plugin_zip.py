"""The WordPress plugin as a zip file, which wp-admin installs. `make plugin` writes it."""

import sys
import zipfile
from pathlib import Path

from support.repository import ROOT

PLUGIN = ROOT / "examples/wordpress-plugin"
NAME = "profilesvc.zip"
_FOLDER = "profilesvc"
_ONLY_FOR_DEVELOPERS = {"phpcs.xml.dist"}


def write_zip(folder: Path) -> Path:
    """Write the zip file. Equal sources give equal bytes: files in order, of one time, and not compressed, because
    compressors differ.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NAME
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as packed:
        for file in sorted(PLUGIN.rglob("*")):
            if file.is_file() and file.name not in _ONLY_FOR_DEVELOPERS:
                entry = zipfile.ZipInfo(f"{_FOLDER}/{file.relative_to(PLUGIN).as_posix()}")  # of 1980-01-01
                entry.create_system, entry.external_attr = 3, 0o100644 << 16
                packed.writestr(entry, file.read_bytes())
    return path


if __name__ == "__main__":
    print(write_zip(Path(sys.argv[1])))
