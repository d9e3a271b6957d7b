"""The data folder: `up` stores here the addresses of the servers that it runs, and their secrets.

up.lock            locked by the running `up` and its servers
secrets.json       0600, generated once: Django's key, the servers' passwords
connections.json   0600, written at each start: database_url, redis_url
servers/           PostgreSQL's and Redis' own folders
logs/              one file per process
"""

import fcntl
import json
import os
import pathlib
import tempfile
import time
from secrets import token_urlsafe

from ipam_site import env

PROJECT = pathlib.Path(__file__).resolve().parent.parent
_SECRETS = ("secret_key", "postgres_superuser", "postgres", "redis")


class UnusableError(Exception):
    """The data folder cannot be used; the message says why."""


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


def lock(data: pathlib.Path, *, seconds: float = 30) -> int:
    """Create the folder if it is missing, lock it, and return the file descriptor of the lock.

    The kernel releases the lock when the process and the children that inherit it have ended: the servers of an
    `up` that was killed keep it until then, for which this waits so many seconds. Raises UnusableError.
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
        message = f"{error.filename} belongs to another user; choose another DATA folder"
        raise UnusableError(message) from error
    deadline = time.monotonic() + seconds
    while not _is_locked(handle):
        holder = os.pread(handle, 20, 0).decode(errors="replace").strip() or "?"
        if pathlib.Path(f"/proc/{holder}").exists() or time.monotonic() > deadline:
            os.close(handle)
            message = f"{data} is in use by another `up`, process {holder}, or its servers"
            raise UnusableError(message)
        time.sleep(0.05)
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
    return handle


def _is_locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def make_secrets(data: pathlib.Path) -> dict[str, str]:
    """Return the secrets of the folder, which the first start generates and no start changes.

    Raises UnusableError if a database has lost its secrets.
    """
    stored = secrets(data)
    if not set(_SECRETS) <= set(stored) and (data / "servers" / "postgres").exists():
        raise UnusableError(
            f"{data}/secrets.json is missing or incomplete: the database cannot be opened without it"
        )
    # Older folders lack these: without a key ring, nothing has been encrypted yet.
    sizes = dict.fromkeys(_SECRETS, 48) | {"key_ring": 32, "metrics_token": 32}
    if not set(sizes) <= set(stored):
        stored = {name: token_urlsafe(size) for name, size in sizes.items()} | stored
        write(data / "secrets.json", stored)
    return stored
