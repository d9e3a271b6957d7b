"""Lock the data folder and generate its secrets. See ipam_site.data_folder."""

from __future__ import annotations

import fcntl
import os
import secrets
from typing import TYPE_CHECKING

from ipam_site import data_folder

if TYPE_CHECKING:
    import pathlib

_SECRETS = ("secret_key", "postgres_superuser", "postgres", "redis")


class InUseError(Exception):
    """Another `up` uses this data folder, or the folder belongs to another user."""


def lock(data: pathlib.Path) -> int:
    """Create the folder if it is missing, lock it, and return the file descriptor of the lock.

    The kernel releases the lock when the process ends. Children do not inherit it. Raises InUseError.
    """
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.geteuid() == 0 and not any(data.iterdir()):
            # The folder is new. Root's servers run under another account, which has to traverse it;
            # its content has permissions of its own.
            data.chmod(0o711)
        (data / "logs").mkdir(mode=0o700, exist_ok=True)
        handle = os.open(data / "up.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except PermissionError as error:
        raise InUseError(
            f"{error.filename} belongs to another user; choose another DATA folder"
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(handle, 20).decode(errors="replace").strip() or "?"
        os.close(handle)
        raise InUseError(f"{data} is in use by another `up`, process {holder}") from error
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
    return handle


def secrets_of(data: pathlib.Path) -> dict[str, str]:
    """Return the secrets of the folder, which the first start generates and no start changes."""
    stored = data_folder.secrets(data)
    if not set(_SECRETS) <= set(stored) and (data / "servers" / "postgres").exists():
        raise FileNotFoundError(
            f"{data}/secrets.json is missing or incomplete: the database cannot be opened without it"
        )
    # Older folders lack these: without a key ring, nothing has been encrypted yet.
    sizes = dict.fromkeys(_SECRETS, 48) | {"key_ring": 32, "metrics_token": 32}
    if not set(sizes) <= set(stored):
        stored = {name: secrets.token_urlsafe(size) for name, size in sizes.items()} | stored
        data_folder.write(data / "secrets.json", stored)
    return stored
