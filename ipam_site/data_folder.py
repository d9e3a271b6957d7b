"""The data folder: `up` stores here the addresses of the servers that it runs, and their secrets.

up.lock            locked by the running `up`
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


def locate(folder: str = "") -> pathlib.Path:
    """Return `folder`, else IPAM_DATA (or DATA, the variable of `make`), else the project's `var/`."""
    configured = folder or env.text("IPAM_DATA") or env.text("DATA")
    return pathlib.Path(configured or PROJECT / "var").absolute()


def read(path: pathlib.Path) -> dict[str, str]:
    """Return the JSON object of the file; {} if the file is missing or not readable."""
    try:
        content = json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}
    return {str(key): str(value) for key, value in content.items()}


def write(path: pathlib.Path, content: dict[str, str]) -> None:
    """Replace the file atomically, also across a power failure; only its owner can read it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "w") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    if os.geteuid() == 0:
        # Root may use another user's folder: this user must still be able to use it.
        owner = path.parent.stat()
        os.chown(temporary, owner.st_uid, owner.st_gid)
    os.replace(temporary, path)


def secrets(data: pathlib.Path) -> dict[str, str]:
    return read(data / "secrets.json")


def connections(data: pathlib.Path) -> dict[str, str]:
    return read(data / "connections.json")
