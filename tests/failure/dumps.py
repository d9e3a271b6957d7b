"""Backup and restore of the test's database with the commands of docs/how-to/backup-and-restore.md."""

import pathlib
import re
import shlex
import subprocess

from django.db import connection

from ipam_site.supervisor import embedded
from tests import commands

_PAGE = pathlib.Path("docs/how-to/backup-and-restore.md")
_RECOVERY = re.compile(r" *SELECT ipam_recovery_begin.*?;\n", re.DOTALL)


def back_up(file: pathlib.Path) -> subprocess.CompletedProcess[str]:
    command, _ = _commands()
    return _run(command, file)


def restore(file: pathlib.Path, *, recovery: bool = True) -> subprocess.CompletedProcess[str]:
    """Restore, as the page says for a register, or for a copy without recovery."""
    _, command = _commands()
    connection.close()  # the test's own transactions and prepared statements
    return _run(command if recovery else _RECOVERY.sub("", command), file)


def _commands() -> list[str]:
    return re.findall(r"```bash\n(.*?)```", _PAGE.read_text(), re.DOTALL)


def _run(command: str, file: pathlib.Path) -> subprocess.CompletedProcess[str]:
    script = (
        f"{commands.output('pg_environment')}\n{re.sub('FILE', shlex.quote(str(file)), command)}"
    )
    # The tests' server is the embedded one, but DATABASE_URL names it.
    path = {"PATH": f"{embedded.client_programs()}:/usr/bin:/bin", "USER": "ann"}
    return subprocess.run(
        ["bash", "-c", script], env=path, capture_output=True, text=True, check=False
    )
