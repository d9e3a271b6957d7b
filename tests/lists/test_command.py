"""`manage.py ipam list`: who holds what, by every filter, in pages that nobody has to keep."""

import csv
import io
import json
from typing import Any

import pytest
from django.core.management import CommandError

from pools.management import output
from pools.register import block_lists
from tests import commands, factories


def ipam(*words: str, form: str = "json") -> Any:
    text = commands.output("ipam", "list", *words, "-o", form)
    return json.loads(text) if form == "json" else text


@pytest.fixture
def register() -> None:
    first, second = factories.cluster(), factories.cluster()
    nodes = factories.pool("fd00::/112", category="node", within=first, name="nodes")
    instances = factories.pool(
        "fd01::/112", category="instance", within=first, name="instances", cooldown=3600
    )
    vms = factories.pool("10.0.0.0/24", within=second, name="vms", cooldown=60)
    same = factories.pool("10.1.0.0/24", within=first, name="vms")
    factories.take(nodes, factories.holder("n-1", kind="node"))
    factories.take(instances, factories.holder("i-1", kind="instance"), org="acme", env="prod")
    factories.take(instances, factories.holder("i-2", kind="instance"), org="globex", env="prod")
    factories.take(vms, factories.holder("n-1"), org="acme")
    factories.give_back(factories.take(vms, factories.holder("gone")))
    factories.take(same, factories.holder("x"))


@pytest.mark.sample(20)
@pytest.mark.usefixtures("register")
@pytest.mark.parametrize(
    ("words", "holders"),
    [
        ("", ["n-1", "i-1", "i-2", "x", "n-1", "gone"]),
        ("--org acme", ["i-1", "n-1"]),
        ("--env prod", ["i-1", "i-2"]),
        ("--org globex --env prod", ["i-2"]),
        ("--node n-1", ["n-1"]),
        ("--instance i-2", ["i-2"]),
        ("--vm n-1", ["n-1"]),
        ("--holder n-1", ["n-1", "n-1"]),
        ("--holder n-1 --holder-kind vm", ["n-1"]),
        ("--holder-kind instance", ["i-1", "i-2"]),
        ("--pool vms", ["x", "n-1", "gone"]),
        ("--pool nodes", ["n-1"]),
        ("--category instance", ["i-1", "i-2"]),
        ("--family 4", ["x", "n-1", "gone"]),
        ("--state cooling", ["gone"]),
        ("--pool vms --state held", ["x", "n-1"]),
        ("--limit 2", ["x", "n-1"]),
        ("--org nobody", []),
    ],
)
def test_filters(words: str, holders: list[str]) -> None:
    result = ipam(*words.split())
    by_space: dict[str, list[str]] = {}
    for row in result:
        by_space.setdefault(row["cluster"], []).append(row["holder_id"])
    assert sorted(row["holder_id"] for row in result) == sorted(holders)


@pytest.mark.usefixtures("register")
def test_by_cluster_and_by_a_pool_of_a_cluster() -> None:
    first, *_ = ipam()
    cluster = first["cluster"]
    assert {row["cluster"] for row in ipam("--cluster", cluster)} == {cluster}
    assert [row["holder_id"] for row in ipam("--pool", f"{cluster}/vms")] == ["x"]
    assert ipam("--cluster", cluster, "--pool", "vms") == ipam("--pool", f"{cluster}/vms")


@pytest.mark.parametrize("size", [1, 3, 10, 50])
def test_pages_leave_nothing_out(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_lists, "_PAGE", size)
    for pool in (factories.pool("10.0.0.0/24", "fd00::/112"), factories.pool("10.0.0.0/24")):
        factories.ask(pool, *factories.holders(10))
    result = [(row["cluster"], row["block"]) for row in ipam()]
    assert len(result) == len(set(result)) == 30
    assert ipam("--limit", "7") == ipam()[:7]


def test_a_table_and_csv() -> None:
    pool = factories.pool("10.0.0.0/24", name="vms")
    factories.take(pool, factories.holder("=vm"), org="acme")
    text = ipam(form="table")
    head, line = text.splitlines()
    assert head.split()[:5] == ["CLUSTER", "POOL", "CATEGORY", "BLOCK", "STATE"]
    assert "10.0.0.1/32   held" in line
    (row,) = csv.DictReader(ipam(form="csv").splitlines())
    assert (row["holder_id"], row["block"]) == ("'=vm", "10.0.0.1/32")
    assert ipam("--org", "nobody", form="table") == ""


def test_a_table_is_printed_as_its_rows_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "WIDTH_SAMPLE", 2)
    out = io.StringIO()

    def rows() -> Any:
        yield {"a": "x"}
        yield {"a": "xyz"}
        assert out.getvalue().splitlines() == ["A", "x", "xyz"]
        yield {"a": "longer than those"}
        assert out.getvalue().splitlines() == ["A", "x", "xyz", "longer than those"]
        yield {"a": "y"}

    assert output.write(rows(), ["a"], "table", out) == 4


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("--cluster none", "unknown_cluster"),
        ("--pool none", "unknown_pool"),
        ("--pool a/b", "unknown_pool"),
    ],
)
def test_what_there_is_not(words: str, code: str) -> None:
    with pytest.raises(CommandError, match=code):
        ipam(*words.split())


@pytest.mark.parametrize(
    "words", ["--state free", "--limit 0", "--limit x", "--family 5", "--node a --vm b"]
)
def test_a_wrong_command_line(words: str) -> None:
    with pytest.raises(CommandError):
        ipam(*words.split())
