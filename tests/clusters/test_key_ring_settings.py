"""Where the key ring comes from: the environment, a file, or the folder of an `up`."""

import os
import pathlib
import secrets
import subprocess
import sys

import pytest

from ipam_site import data_folder

KEY = secrets.token_urlsafe(32)
PRINT = "from ipam_site import settings; print(settings.IPAM_KEY_RING)"


def _python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "IPAM_KEY_RING": "", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.exhaustive
def test_it_comes_from_the_environment() -> None:
    assert _python("-c", PRINT, IPAM_KEY_RING=f"{KEY}, x").stdout.strip() == str([KEY, "x"])


@pytest.mark.exhaustive
def test_it_comes_from_a_file(tmp_path: pathlib.Path) -> None:
    (tmp_path / "ring").write_text(f"{KEY}\n\nx\n")
    done = _python("-c", PRINT, IPAM_KEY_RING_FILE=str(tmp_path / "ring"))
    assert done.stdout.strip() == str([KEY, "x"])


@pytest.mark.exhaustive
def test_a_file_that_is_not_there_stops_the_start(tmp_path: pathlib.Path) -> None:
    done = _python("-c", PRINT, IPAM_KEY_RING_FILE=str(tmp_path / "ring"))
    assert "IPAM_KEY_RING_FILE" in done.stderr


@pytest.mark.exhaustive
def test_up_makes_one_and_keeps_it(tmp_path: pathlib.Path) -> None:
    stored_secrets = data_folder.make_secrets(tmp_path)
    assert data_folder.make_secrets(tmp_path) == stored_secrets
    assert _python("-c", PRINT, IPAM_DATA=str(tmp_path)).stdout.strip() == str(
        [stored_secrets["key_ring"]]
    )


def test_a_folder_of_an_earlier_version_gets_one(tmp_path: pathlib.Path) -> None:
    stored_secrets = data_folder.make_secrets(tmp_path)
    del stored_secrets["key_ring"]
    data_folder.write(tmp_path / "secrets.json", stored_secrets)
    (tmp_path / "servers/postgres").mkdir(parents=True)
    again = data_folder.make_secrets(tmp_path)
    assert again["key_ring"]
    assert stored_secrets.items() <= again.items()


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("ring", "complains"),
    [("", True), ("short", True), (KEY, False)],
    ids=["none", "short", "right"],
)
def test_production_requires_one(ring: str, complains: bool) -> None:
    done = _python("manage.py", "check", "--deploy", IPAM_KEY_RING=ring, IPAM_HTTPS="1")
    assert ("ipam.E001" in done.stderr) == complains
    assert (done.returncode != 0) == complains
