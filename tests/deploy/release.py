"""`make release-schema REF=v0.2.0`: the register as that release makes it, kept for the tests of upgrades.

register.sql.gz  the demo fleet, written by the release's own code: schema, functions and data as plain SQL
release.json     which release that was, and its migrations

Before the first release there is no REF: the register is made by the working tree, and its code is that of
the commit that brought the two files.
"""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import re
import secrets
import subprocess
import sys
import tarfile
import tempfile
from typing import TypedDict

import psycopg
from psycopg import sql

from ipam_site.supervisor import account, programs
from tests import servers

PROJECT = pathlib.Path(__file__).parents[2]
_FOLDER = pathlib.Path(__file__).parent / "last_release"
_DUMP = _FOLDER / "register.sql.gz"
_FACTS = _FOLDER / "release.json"
# What older servers than the one that was dumped do not know, and what only psql understands.
_LEFT_OUT = re.compile(rb"^(SET transaction_timeout = .*|\\(un)?restrict .*)\n", re.MULTILINE)


class Release(TypedDict):
    ref: str  # a tag; empty before the first release
    commit: str  # of the tag; empty before the first release
    migrations: list[str]  # application.name, in the order of their application


def last() -> Release:
    found: Release = json.loads(_FACTS.read_text())
    return found


def applied() -> set[tuple[str, str]]:
    """(application, name) of the last release's migrations."""
    return {(app, name) for app, _, name in (one.partition(".") for one in last()["migrations"])}


def commit() -> str:
    """The commit with the last release's code; empty when the two files are not committed yet."""
    if last()["commit"]:
        return last()["commit"]
    if _git("status", "--porcelain", "--", str(_FOLDER)):
        return ""
    return _git("log", "-1", "--format=%H", "--", str(_FOLDER))


def _git(*arguments: str) -> str:
    """What git says; empty without git or outside of a repository."""
    done = subprocess.run(
        ["git", *arguments], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def restore(url: str) -> None:
    """The last release's register, into an empty database."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(gzip.decompress(_DUMP.read_bytes()))


def code(folder: pathlib.Path, commit: str) -> bool:
    """The release's files, into the folder; False when the commit is not in this repository's history."""
    archive = subprocess.run(
        ["git", "archive", "--format=tar", commit], cwd=PROJECT, capture_output=True, check=False
    )
    if archive.returncode:
        return False
    with tempfile.TemporaryFile() as file:
        file.write(archive.stdout)
        file.seek(0)
        with tarfile.open(fileobj=file) as tar:
            tar.extractall(folder, filter="data")
    return True


def _environment(url: str) -> dict[str, str]:
    values = {"DATABASE_URL": url, "IPAM_DATA": "/nonexistent", "REDIS_URL": "", "IPAM_HTTPS": "0"}
    values |= {"SECRET_KEY": secrets.token_urlsafe(48), "IPAM_KEY_RING": secrets.token_urlsafe(32)}
    return values | {"DJANGO_SETTINGS_MODULE": "ipam_site.settings"}


def run(
    folder: pathlib.Path, url: str, *arguments: str, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a management command of the code in the folder, with the database of the URL."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=folder,
        env=env | _environment(url) | more,
        capture_output=True,
        text=True,
        check=False,
    )


def command(folder: pathlib.Path, url: str, *arguments: str, **more: str) -> str:
    """What a management command says that must succeed, as in `run`."""
    done = run(folder, url, *arguments, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def make(ref: str) -> None:
    """Write the files of last_release/ from the code of a tag, or of the working tree."""
    sha = _git("rev-parse", f"{ref}^{{commit}}") if ref else ""
    url = servers.start_postgres()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) if ref else PROJECT
        if ref and not code(folder, sha):
            sys.exit(f"{ref} is not in this repository's history")
        command(folder, url, "migrate", "--no-input", "--verbosity=0")
        command(folder, url, "demo")
    binaries = programs.postgres(programs.folder(account.for_servers(_FOLDER)))
    dump = subprocess.check_output(
        [binaries / "pg_dump", "--no-owner", "--no-privileges", "--rows-per-insert=500", url]
    )
    _FOLDER.mkdir(exist_ok=True)
    _DUMP.write_bytes(gzip.compress(_LEFT_OUT.sub(b"", dump), mtime=0))
    with psycopg.connect(url) as connection:
        query = sql.SQL("SELECT app, name FROM django_migrations ORDER BY id")
        migrations = [f"{app}.{name}" for app, name in connection.execute(query)]
    facts: Release = {"ref": ref, "commit": sha, "migrations": migrations}
    _FACTS.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) < 2 and last()["ref"]:
        sys.exit("make release-schema REF=the release's tag")
    make("".join(sys.argv[1:]))
