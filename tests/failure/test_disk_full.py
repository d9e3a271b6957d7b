"""Rule `full-disk-changes-nothing`: what needs space is 503, and there is nothing to repair."""

import contextlib
import pathlib
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection

from ipam_site.supervisor import embedded, processes
from pools.models import Block, BlockEvent
from tests import servers
from tests.edges import api as apis
from tests.failure import dumps

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("committed")]
_SMALL = "size=130m"


@pytest.fixture
def disk() -> Iterator[pathlib.Path]:
    """A small file system; needs the right to mount one."""
    base = pathlib.Path(tempfile.mkdtemp(prefix="cadastre-disk-"))
    base.chmod(0o755)
    folder = base / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", _SMALL, "tmpfs", str(folder)]
    if (
        not shutil.which("mount")
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        shutil.rmtree(base)
        pytest.skip("mounting a file system is not allowed here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
        shutil.rmtree(base)


@pytest.fixture
def full(disk: pathlib.Path, tmp_path: pathlib.Path) -> Iterator[psycopg.Connection]:
    """The register on that disk, its server's log elsewhere; a superuser's connection."""
    file = tmp_path / "register.dump"
    assert dumps.back_up(file).returncode == 0
    folder, account = servers._folder()
    account.chown(disk)
    server = embedded.Server(
        bin=embedded.programs(account)[0], data=folder / "postgres", account=account,
        port=processes.free_port(), password=secrets.token_urlsafe(24),
    )  # fmt: skip
    embedded.make_data(server)
    process = servers._popen(server.command({"fsync": "off"}), folder, account, signal.SIGQUIT)
    before = {
        name: connection.settings_dict[name]
        for name in ("HOST", "PORT", "USER", "PASSWORD", "NAME")
    }
    try:
        embedded.wait_until_ready(server, lambda: process.poll() is None)
        embedded.make_database(server, name="cadastre", password=server.password)
        with server.connect() as superuser:
            superuser.execute(f"CREATE TABLESPACE small LOCATION '{disk}'")
            superuser.execute("ALTER DATABASE cadastre SET TABLESPACE small")
        connection.close()
        connection.settings_dict.update(
            HOST="127.0.0.1", PORT=str(server.port), USER="cadastre", PASSWORD=server.password,
            NAME="cadastre",
        )  # fmt: skip
        assert dumps.restore(file, recovery=False).returncode == 0
        with server.connect("cadastre") as superuser:
            yield superuser
    finally:
        connection.close()
        connection.settings_dict.update(before)
        servers._end(process, folder, signal.SIGQUIT)


def _fill(superuser: psycopg.Connection) -> None:
    superuser.execute("CREATE TABLE filler (x text); ALTER TABLE filler ALTER x SET STORAGE PLAIN")
    for rows in (5000, 100, 1):
        with contextlib.suppress(psycopg.errors.DiskFull):
            while True:
                superuser.execute(
                    "INSERT INTO filler SELECT repeat('x', 7000) FROM generate_series(1, %s)",
                    [rows],
                )


def test_what_needs_space_is_503_until_there_is_some(full: psycopg.Connection) -> None:
    api = apis.Api()
    api.cluster()
    pool = api.vm_pool("10.0.0.0/16")
    path = f"pools/{pool}/allocations/"
    first = api.take(pool, "first")
    _fill(full)
    answers = []
    for number in range(50):
        answers.append(api("POST", path, apis.holder(f"vm-{number}") | {"count": 2000}))
        if answers[-1].status_code != 201:
            break
    apis.refused(answers[-1], 503, "ipam_unavailable")
    done = 1 + 2000 * (len(answers) - 1)
    # Nothing is half done, each change has its event, and reading goes on.
    assert Block.objects.filter(state="held").count() == done
    assert BlockEvent.objects.filter(pgh_label="allocated").count() == done
    assert api("GET", f"blocks/{first['id']}/").status_code == 200
    full.execute("DROP TABLE filler")
    full.execute("CHECKPOINT")
    assert api("POST", path, apis.holder("later") | {"count": 2000}).status_code == 201
