"""The data folder: where a running `up` says which servers it started, and keeps their secrets.

up.lock            held by the one running `up`
secrets.json       0600, generated once: Django's key, the servers' passwords
connections.json   0600, written at each start: database_url, redis_url
servers/           PostgreSQL's and Redis' own folders
logs/              one file per process
"""

from __future__ import annotations

import json
import os
import pathlib
import tempfile

from ipam_site import env

PROJECT = pathlib.Path(__file__).resolve().parent.parent


def locate(given: str = "") -> pathlib.Path:
    """The data folder: as given, else IPAM_DATA (or DATA, as `make` calls it), else the project's `var/`."""
    known = given or env.text("IPAM_DATA") or env.text("DATA")
    return pathlib.Path(known or PROJECT / "var").absolute()


def read(path: pathlib.Path) -> dict[str, str]:
    """The JSON object of the file; {} when there is no such file or another user owns it."""
    try:
        content = json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}
    return {str(key): str(value) for key, value in content.items()}


def write(path: pathlib.Path, content: dict[str, str]) -> None:
    """Replace the file as a whole: readable by its owner only, complete also after a power cut."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "w") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    if os.geteuid() == 0:
        # Root uses the folder of an ordinary user, who will want to use it again.
        owner = path.parent.stat()
        os.chown(temporary, owner.st_uid, owner.st_gid)
    os.replace(temporary, path)


def secrets(data: pathlib.Path) -> dict[str, str]:
    return read(data / "secrets.json")


def connections(data: pathlib.Path) -> dict[str, str]:
    return read(data / "connections.json")
