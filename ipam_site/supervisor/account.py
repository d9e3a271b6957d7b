"""Under which account the database servers run, and where they can reach their files.

PostgreSQL refuses to run as root. So root starts it (and Redis) as an account of its own, `cadastre`.
That account cannot enter a folder such as /root, and loosening the permissions of somebody's home is
out of the question. What it cannot reach therefore lies in /var/lib/cadastre: a copy of the programs,
and the servers' data with a link to it from the data folder. The link is what ties the two together:
without it (`rm -rf var`) the next start makes a new, empty database, and says what lies unused.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import pwd
import secrets
import shutil
import subprocess
from typing import Any

SHELTER = pathlib.Path("/var/lib/cadastre")
_NAME = "cadastre"


@dataclasses.dataclass(frozen=True)
class Account:
    uid: int
    gid: int

    def popen(self) -> dict[str, Any]:
        """What subprocess needs to become this account; nothing when we are it already."""
        if self.uid == os.geteuid():
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def reaches(self, path: pathlib.Path, *, wanted: str = "-x") -> bool:
        """Whether the account may use the path; asked of the kernel, which knows ACLs too."""
        asked = ["/bin/sh", "-c", f'test {wanted} "$1"', "sh", str(path)]
        return subprocess.run(asked, cwd="/", check=False, **self.popen()).returncode == 0

    def own(self, path: pathlib.Path) -> None:
        if self.uid != os.geteuid():
            os.chown(path, self.uid, self.gid)


def for_servers(folder: pathlib.Path) -> Account:
    """The account of the servers: the owner of a folder that is there already, else a fresh choice."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid())
    if folder.exists() and (stat := folder.stat()).st_uid != 0:
        return Account(stat.st_uid, stat.st_gid)
    entry = _entry(_NAME) or _created() or pwd.getpwnam("nobody")
    return Account(entry.pw_uid, entry.pw_gid)


def _entry(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _created() -> pwd.struct_passwd | None:
    useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if not useradd:
        return None
    # Without a home and a shell; a failure (a read-only /etc) leaves `nobody`.
    subprocess.run(
        [useradd, "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", _NAME],
        check=False,
        capture_output=True,
    )
    return _entry(_NAME)


def servers_folder(data: pathlib.Path) -> tuple[pathlib.Path, Account]:
    """The folder of the servers' data, made when it is missing, and the account that owns it."""
    link = data / "servers"
    account = for_servers(link)
    if link.is_symlink() and not link.exists():
        raise FileNotFoundError(f"{link} points to {link.readlink()}, which is gone")
    if not link.exists():
        _make(link, account)
    return link.resolve(), account


def _make(link: pathlib.Path, account: Account) -> None:
    link.mkdir(mode=0o700)
    account.own(link)
    if account.reaches(link, wanted="-w"):
        return
    link.rmdir()
    folder = SHELTER / f"data-{secrets.token_hex(6)}"
    SHELTER.mkdir(mode=0o755, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700)
    account.own(folder)
    (SHELTER / f"{folder.name}.belongs-to").write_text(str(link))
    link.symlink_to(folder)


def unused_folders() -> list[pathlib.Path]:
    """Sheltered data that no data folder links to any more, for a hint; see `remove_unused_folders`.

    Only root has such data, and only root may look where the links would be.
    """
    if os.geteuid() != 0:
        return []
    unused = []
    for note in SHELTER.glob("data-*.belongs-to"):
        folder = note.with_suffix("")
        link = pathlib.Path(note.read_text())
        if folder.exists() and not (link.is_symlink() and link.readlink() == folder):
            unused.append(folder)
    return unused


def remove_unused_folders() -> list[pathlib.Path]:
    """Remove that data, but of servers that still run, and return what was removed."""
    removed = []
    for folder in unused_folders():
        if any(_is_running(note) for note in folder.rglob("postmaster.pid")):
            continue
        shutil.rmtree(folder)
        folder.with_name(f"{folder.name}.belongs-to").unlink()
        removed.append(folder)
    return removed


def _is_running(note: pathlib.Path) -> bool:
    """Whether the server that wrote its number there is alive."""
    number = note.read_text().partition("\n")[0]
    return number.isdigit() and pathlib.Path(f"/proc/{number}").exists()
