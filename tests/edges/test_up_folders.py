"""Where root's servers keep their data, when the account that they run under cannot reach it."""

import os
import pathlib
import shutil
from collections.abc import Iterator

import pytest

from ipam_site import data_folder
from ipam_site.supervisor import embedded, processes
from tests import running_site

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root changes the account")


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    with running_site.folder() as data:
        monkeypatch.setattr(embedded, "SHELTER", data.parent / "shelter")
        yield data.parent


def _made(data: pathlib.Path) -> pathlib.Path:
    os.close(data_folder.lock(data))
    servers, owner = embedded.servers_folder(data)
    assert owner.uid not in {0, None}
    assert owner.reaches(servers, access="-w")
    assert (servers.stat().st_uid, servers.stat().st_mode & 0o777) == (owner.uid, 0o700)
    assert embedded.servers_folder(data) == (servers, owner)
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
    assert servers.parent == embedded.SHELTER
    assert (home / "project/var/servers").readlink() == servers


def test_without_its_data_folder_a_new_one_is_made(base: pathlib.Path) -> None:
    home = base / "home"
    home.mkdir(mode=0o700)
    first = _made(home / "var")
    (home / "var/servers").unlink()
    assert _made(home / "var") != first
    assert first.exists()


def test_sheltered_data_that_is_gone_is_not_made_anew(base: pathlib.Path) -> None:
    home = base / "home"
    home.mkdir(mode=0o700)
    shutil.rmtree(_made(home / "var"))
    with pytest.raises(processes.CannotStartError, match="does not exist"):
        embedded.servers_folder(home / "var")


def test_a_used_folder_keeps_its_permissions(base: pathlib.Path) -> None:
    used = base / "used"
    used.mkdir(mode=0o700)
    (used / "letter").touch()
    assert _made(used).parent == embedded.SHELTER
    assert used.stat().st_mode & 0o777 == 0o700
