"""The data folder as the supervisor sees it: locked, with generated secrets. See ipam_site.data_folder."""

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
    """Another `up` runs on this data folder, or it belongs to somebody else."""


def lock(data: pathlib.Path) -> int:
    """Make the folder when it is missing and take it for this process; the lock's file descriptor.

    The kernel gives the lock back when the process ends, however it ends. Children do not inherit it.
    Raises InUseError.
    """
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.geteuid() == 0 and not any(data.iterdir()):
            # New, so it is ours alone: root's servers run under another account, which has to get
            # through. What lies in it is closed one by one.
            data.chmod(0o711)
        (data / "logs").mkdir(mode=0o700, exist_ok=True)
        handle = os.open(data / "up.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except PermissionError as error:
        raise InUseError(
            f"{error.filename} belongs to another user: choose another DATA"
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
    """The folder's secrets, generated at its first start and never changed."""
    known = data_folder.secrets(data)
    if not set(_SECRETS) <= set(known) and (data / "servers" / "postgres").exists():
        raise FileNotFoundError(
            f"{data}/secrets.json is missing or incomplete, without it the database cannot be opened"
        )
    # These came later than the others: a folder without a key ring has sealed nothing yet.
    sizes = dict.fromkeys(_SECRETS, 48) | {"key_ring": 32, "metrics_token": 32}
    if not set(sizes) <= set(known):
        known = {name: secrets.token_urlsafe(size) for name, size in sizes.items()} | known
        data_folder.write(data / "secrets.json", known)
    return known
