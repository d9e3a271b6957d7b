"""`manage.py vmimport`: what it prints, what it writes, with which code it ends."""

from __future__ import annotations

import io
import json
import pathlib
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from claims.models import Entry, IPAMClaim, Network
from tests.claims import worlds
from tests.claims.imports.drafts import mac

pytestmark = pytest.mark.django_db
GOOD = f"vm,mac,ip\nweb-01,{mac(1)},10.0.0.11\nweb-02,{mac(2)},10.0.0.12\n"
BAD = GOOD + f"web-03,{mac(3)},10.0.0.1\n"


@pytest.fixture
def network() -> Network:
    return worlds.network()


@pytest.fixture
def file(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "vms.csv"


def run(file: pathlib.Path, content: str | bytes, *arguments: str) -> str:
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    out = io.StringIO()
    try:
        call_command("vmimport", str(file), *arguments, stdout=out)
    except CommandError as error:
        error.out = out.getvalue()  # type: ignore[attr-defined]
        raise
    return out.getvalue()


def refused(file: pathlib.Path, content: str | bytes, *arguments: str) -> Any:
    with pytest.raises(CommandError) as caught:
        run(file, content, *arguments)
    return caught.value


def test_a_draft_is_told_and_nothing_is_written(network: Network, file: pathlib.Path) -> None:
    told = run(file, GOOD, "--network", network.name)
    assert "new              2" in told
    assert not Entry.objects.exists()


def test_written_as_entries_or_as_claims(network: Network, file: pathlib.Path) -> None:
    where = ("--network", str(network.pk), "--namespace", "shop", "--commit")
    told = json.loads(run(file, GOOD, *where, "--json"))
    assert (told["status"], told["counts"]["new"], Entry.objects.count()) == ("committed", 2, 2)
    run(file, GOOD, *where, "--target", "ipamclaims")
    assert IPAMClaim.objects.count() == 2
    assert "unchanged        2" in run(file, GOOD, *where)


def test_bad_rows_end_with_2(network: Network, file: pathlib.Path) -> None:
    error = refused(file, BAD, "--network", network.name, "--commit")
    assert (error.returncode, "Nothing was written" in str(error)) == (2, True)
    assert "10.0.0.1 is the gateway of the network." in error.out
    assert not Entry.objects.exists()
    error = refused(file, BAD, "--network", network.name, "--commit", "--skip-bad")
    assert (error.returncode, Entry.objects.count()) == (2, 2)


@pytest.mark.parametrize(
    ("content", "arguments", "said"),
    [
        (b"\xff\xd8\xff\xe0", ("--network", "cluster_udn_blue"), ""),
        ("", ("--network", "cluster_udn_blue"), "empty"),
        (GOOD, ("--network", "nowhere"), "no such network"),
        (GOOD, ("--network", "9" * 17), "no such network"),
        (
            GOOD,
            ("--network", "cluster_udn_blue", "--cluster", "nowhere"),
            "cluster nowhere does not exist",
        ),
        (GOOD, (), "Specify --network"),
        (GOOD, ("--cluster", "prod", "--mapping", "[1"), "json_syntax"),
        (GOOD, ("--cluster", "prod", "--mapping", '{"x": {"network": 99}}'), "unknown_network"),
    ],
)
def test_what_ends_with_1(
    network: Network, file: pathlib.Path, content: Any, arguments: tuple[str, ...], said: str
) -> None:
    error = refused(file, content, *arguments)
    assert (error.returncode, said in str(error)) == (1, True), error


def test_a_file_that_is_not_there(network: Network, file: pathlib.Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        call_command("vmimport", str(file), "--network", network.name)
