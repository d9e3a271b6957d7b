"""The account of the database servers, and folders that this account can access.

PostgreSQL refuses to run as root. So root runs it (and Redis) as the account `cadastre`, which cannot
access a folder such as /root, and `up` does not change permissions of home directories. In this case
a copy of the programs and the data of the servers are in /var/lib/cadastre, and the data folder has
a symbolic link to the data. Without the link (`rm -rf var`) the next start creates a new, empty
database, and reports the unused data.
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

from ipam_site.supervisor import processes

SHELTER = pathlib.Path("/var/lib/cadastre")
_NAME = "cadastre"
_OWNER_NOTE = "belongs-to"  # the file with the path of the link


@dataclasses.dataclass(frozen=True)
class Account:
    uid: int
    gid: int

    def popen(self) -> dict[str, Any]:
        """Return the arguments of Popen that switch to this account, {} if it is the present one."""
        if self.uid == os.geteuid():
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def reaches(self, path: pathlib.Path, *, access: str = "-x") -> bool:
        """Return True if the account has this access; `test` also respects ACLs."""
        command = ["/bin/sh", "-c", f'test {access} "$1"', "sh", str(path)]
        return subprocess.run(command, cwd="/", check=False, **self.popen()).returncode == 0

    def chown(self, path: pathlib.Path) -> None:
        if self.uid != os.geteuid():
            os.chown(path, self.uid, self.gid)


def for_servers(folder: pathlib.Path) -> Account:
    """Return the account of the servers: the owner of an existing folder, else a new choice."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid())
    if folder.exists() and (stat := folder.stat()).st_uid != 0:
        return Account(stat.st_uid, stat.st_gid)
    entry = _entry(_NAME) or _create_account() or pwd.getpwnam("nobody")
    return Account(entry.pw_uid, entry.pw_gid)


def _entry(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _create_account() -> pwd.struct_passwd | None:
    useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if not useradd:
        return None
    # Without home and shell. If it fails, for example with a read-only /etc, `nobody` is used.
    subprocess.run(
        [useradd, "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", _NAME],
        check=False,
        capture_output=True,
    )
    return _entry(_NAME)


def servers_folder(data: pathlib.Path) -> tuple[pathlib.Path, Account]:
    """Return the folder of the servers' data, created if it is missing, and its account."""
    link = data / "servers"
    account = for_servers(link)
    if link.is_symlink() and not link.exists():
        raise processes.CannotStartError(
            f"{link} points to {link.readlink()}, which does not exist"
        )
    if not link.exists():
        _make(link, account)
    return link.resolve(), account


def _make(link: pathlib.Path, account: Account) -> None:
    link.mkdir(mode=0o700)
    account.chown(link)
    if account.reaches(link, access="-w"):
        return
    link.rmdir()
    folder = SHELTER / f"data-{secrets.token_hex(6)}"
    SHELTER.mkdir(mode=0o755, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700)
    account.chown(folder)
    (folder / _OWNER_NOTE).write_text(str(link))
    link.symlink_to(folder)


def unused_folders() -> list[pathlib.Path]:
    """Return the folders in /var/lib/cadastre that no data folder links to.

    Only root has such folders, and only root can read where the links would be.
    """
    if os.geteuid() != 0:
        return []
    notes = {
        note.parent: pathlib.Path(note.read_text()) for note in SHELTER.glob(f"*/{_OWNER_NOTE}")
    }
    return [
        folder
        for folder, link in notes.items()
        if not (link.is_symlink() and link.readlink() == folder)
    ]
