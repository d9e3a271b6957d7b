"""The account of the database servers, and folders that this account can access.

PostgreSQL refuses to run as root. So root runs it (and Redis) as `nobody`, who cannot access a folder
such as /root, and `up` does not change permissions of home directories. In this case a copy of the
programs and the data of the servers are in /var/lib/cadastre, and the data folder has a symbolic link
to the data. Without the link (`rm -rf var`) the next start creates a new, empty database.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import pwd
import subprocess
import tempfile
from typing import Any

from ipam_site.supervisor import processes

SHELTER = pathlib.Path("/var/lib/cadastre")


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
    """Return the account of the servers: the owner of an existing folder, else `nobody` for root."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid())
    if folder.exists() and (stat := folder.stat()).st_uid != 0:
        return Account(stat.st_uid, stat.st_gid)
    nobody = pwd.getpwnam("nobody")
    return Account(nobody.pw_uid, nobody.pw_gid)


def servers_folder(data: pathlib.Path) -> tuple[pathlib.Path, Account]:
    """Return the folder of the servers' data, created if it is missing, and its account."""
    link = data / "servers"
    account = for_servers(link)
    if link.is_symlink() and not link.exists():
        message = f"{link} points to {link.readlink()}, which does not exist"
        raise processes.CannotStartError(message)
    if not link.exists():
        link.mkdir(mode=0o700)
        account.chown(link)
        if not account.reaches(link, access="-w"):
            link.rmdir()
            folder = shelter("data-")
            account.chown(folder)
            link.symlink_to(folder)
    return link.resolve(), account


def shelter(prefix: str) -> pathlib.Path:
    """Return a new folder in /var/lib/cadastre, of root only."""
    SHELTER.mkdir(mode=0o755, parents=True, exist_ok=True)
    return pathlib.Path(tempfile.mkdtemp(dir=SHELTER, prefix=prefix))
