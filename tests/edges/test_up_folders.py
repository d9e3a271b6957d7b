"""Where root's servers keep their data, when the account that they run under cannot reach it."""

from __future__ import annotations

import io
import os
import pathlib
from collections.abc import Iterator

import pytest
from django.core.management import call_command

from ipam_site.supervisor import account, folder, run
from tests import running_site

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root changes the account")


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    with running_site.folder() as data:
        monkeypatch.setattr(account, "SHELTER", data.parent / "shelter")
        yield data.parent


def _made(data: pathlib.Path) -> pathlib.Path:
    os.close(folder.lock(data))
    servers, owner = account.servers_folder(data)
    assert owner.uid not in {0, None}
    assert owner.reaches(servers, access="-w")
    assert (servers.stat().st_uid, servers.stat().st_mode & 0o777) == (owner.uid, 0o700)
    assert account.servers_folder(data) == (servers, owner)
    return servers


def test_a_folder_that_it_can_reach_holds_the_data(base: pathlib.Path) -> None:
    assert _made(base / "data") == base / "data/servers"


def test_a_new_folder_is_opened_to_pass_through(base: pathlib.Path) -> None:
    (base / "data").mkdir(mode=0o700)
    assert _made(base / "data") == base / "data/servers"
    assert (base / "data").stat().st_mode & 0o777 == 0o711


def test_nobodys_home_is_opened(base: pathlib.Path) -> None:
    home = base / "home"
    home.mkdir(mode=0o700)
    servers = _made(home / "project/var")
    assert home.stat().st_mode & 0o777 == 0o700
    assert servers.parent == account.SHELTER
    assert (home / "project/var/servers").readlink() == servers
    assert not account.unused_folders()


def test_without_its_data_folder_the_sheltered_data_is_unused(base: pathlib.Path) -> None:
    home = base / "home"
    home.mkdir(mode=0o700)
    first = _made(home / "var")
    (home / "var/servers").unlink()
    assert account.unused_folders() == [first]
    second = _made(home / "var")
    assert second != first
    assert account.unused_folders() == [first]


def test_what_is_unused_is_counted_in_a_line_and_removed_by_a_command(base: pathlib.Path) -> None:
    home = base / "home"
    home.mkdir(mode=0o700)
    unused = []
    for _ in range(2):
        unused.append(_made(home / "var"))
        (home / "var/servers").unlink()
    used = _made(home / "var")
    (unused[1] / "postmaster.pid").write_text(f"{os.getpid()}\n/tmp\n")
    said: list[str] = []
    run.welcome(run.Options("", 0, home / "var", demo=False, workers=1, say=said.append), "")
    assert [line for line in said if str(account.SHELTER) in line] == [
        f"  2 folders have databases of deleted data folders, in {account.SHELTER}."
    ]
    output = io.StringIO()
    call_command("up", "--remove-old-data", stdout=output)
    assert output.getvalue() == f"removed {unused[0]}\n"
    assert (unused[0].exists(), unused[1].exists(), used.exists()) == (False, True, True)
    (unused[1] / "postmaster.pid").unlink()
    call_command("up", "--remove-old-data", stdout=output)
    assert sorted(account.SHELTER.iterdir()) == [used, used.with_name(f"{used.name}.belongs-to")]


def test_sheltered_data_that_is_gone_is_not_made_anew(base: pathlib.Path) -> None:
    home = base / "home"
    home.mkdir(mode=0o700)
    _made(home / "var").rmdir()
    with pytest.raises(FileNotFoundError, match="does not exist"):
        account.servers_folder(home / "var")


def test_a_used_folder_keeps_its_permissions(base: pathlib.Path) -> None:
    used = base / "used"
    used.mkdir(mode=0o700)
    (used / "letter").touch()
    assert _made(used).parent == account.SHELTER
    assert used.stat().st_mode & 0o777 == 0o700
