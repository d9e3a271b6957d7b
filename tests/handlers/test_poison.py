"""Rule `bad-object-fails-alone`: each is in trouble alone, once, and briefly told."""

import copy
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from pools.clusters.reconcile import apply
from pools.models import Drift, Finding, ObservedObject
from tests.handlers import fleet, node_world
from tests.handlers.cilium_world import NODES, POOLS, CiliumWorld
from tests.kube.fake import FakeCluster

Manifest = dict[str, Any]
Poison = Callable[[Manifest], object]
CANARY = "canary-of-the-body"
CYCLE = [
    {"apiVersion": "cilium.io/v2", "kind": kind, "name": "poison", "uid": "poison"}
    for kind in ("CiliumNode", "CiliumPodIPPool")
]


def _deep(depth: int) -> Any:
    result: Any = CANARY
    for _ in range(depth):
        result = {"a": [result]}
    return result


def _metadata(**values: Any) -> Poison:
    return lambda manifest: manifest["metadata"].update(values)


def _all(**values: Any) -> Poison:
    return lambda manifest: manifest.update(values)


ANY: dict[str, Poison] = {
    "1.4 MiB": _metadata(annotations={"a": CANARY + "x" * 1_400_000}),
    "YAML in an annotation": _metadata(annotations={"a": f"{CANARY}: !!python/object:os.system x"}),
    "a name of 253 characters": _metadata(name="a" * 253),
    "a name of 5,000 characters": _metadata(name=CANARY * 280),
    "a name with a line break": _metadata(name=f"a\n{CANARY}"),
    "a cycle of owners": _metadata(ownerReferences=CYCLE),
    "100,000 labels": _metadata(labels={f"k{n}": CANARY for n in range(100_000)}),
    "labels that are none": _metadata(labels=[CANARY]),
    "NUL": _metadata(annotations={"a": f"{CANARY}\0"}),
    "half a surrogate pair": _metadata(annotations={CANARY: "\ud800"}),
    "an unknown version": _all(apiVersion="cilium.io/v9", newField={CANARY: [1]}),
    "another kind": _all(kind="Secret", data={"a": CANARY}),
    "deep": _all(extra=_deep(200)),
    "no spec": _all(spec=None),
    "a spec that is a list": _all(spec=[CANARY]),
    "a spec that is a text": _all(spec=CANARY),
}


def _cidrs(*cidrs: Any) -> Poison:
    return lambda manifest: manifest["spec"]["ipv4"].update(cidrs=list(cidrs))


def _mask(size: Any) -> Poison:
    return lambda manifest: manifest["spec"]["ipv4"].update(maskSize=size)


OF_POOLS: dict[str, Poison] = ANY | {
    "100,000 CIDRs": _cidrs(*(f"11.{n >> 8 & 255}.{n & 255}.0/24" for n in range(100_000))),
    "a CIDR that is none": _cidrs(CANARY),
    "a CIDR that is a number": _cidrs(7, None, {"cidr": [CANARY]}),
    "all addresses": _cidrs("0.0.0.0/0"),
    "a mask of 10^400": _mask(10**400),
    "a mask that is true": _mask(True),
    "a mask that is not a number": _mask(CANARY),
    "a negative mask": _mask(-1),
}


def _pools(**values: Any) -> Poison:
    return lambda manifest: manifest["spec"]["ipam"]["pools"].update(values)


def _needs(number: Any) -> Poison:
    return _pools(requested=[{"pool": "a", "needed": {"ipv4-addrs": number}}])


def _lists(*cidrs: Any, pool: Any = "a") -> Poison:
    return _pools(allocated=[{"pool": pool, "cidrs": list(cidrs)}])


OF_NODES: dict[str, Poison] = ANY | {
    "65,536 CIDRs": _lists(*(f"12.{n >> 8 & 255}.{n & 255}.0/24" for n in range(65_536))),
    "100,000 requests": _pools(requested=[{"pool": f"p{n}", "needed": {"ipv4-addrs": 1}} for n in range(100_000)]),
    "the same CIDR twice": _lists("10.0.2.0/24", "10.0.2.0/24"),
    "a CIDR that is none": _lists(CANARY),
    "a pool that is a number": _lists("10.0.2.0/24", pool=7),
    "2^63 addresses": _needs(2**63),
    "10^400 addresses": _needs(10**400),
    "-1 addresses": _needs(-1),
    "true addresses": _needs(True),
    "addresses in words": _needs(CANARY),
    "all addresses": _lists("0.0.0.0/0", "::/0"),
}  # fmt: skip
CASES = [
    *((POOLS, name, poison) for name, poison in OF_POOLS.items()),
    *((NODES, name, poison) for name, poison in OF_NODES.items()),
]


@pytest.fixture
def world(fake: FakeCluster) -> CiliumWorld:
    world = CiliumWorld(fake)
    world.cidrs("a", "10.0.0.0/22")
    world.node("n1", lists={"a": ["10.0.0.0/24"]})
    return world


def _shown(world: CiliumWorld, plural: str, *more: Manifest) -> bytes:
    """A list of the cluster's objects and these, as an API server of another mind might send it."""
    items = copy.deepcopy([*world.fake.objects(plural), *more])
    kind = {POOLS: "CiliumPodIPPoolList", NODES: "CiliumNodeList"}[plural]
    metadata = {"resourceVersion": "9"}
    listed = {"apiVersion": "cilium.io/v2", "kind": kind, "metadata": metadata, "items": items}
    return json.dumps(listed).encode()


def _poisoned(plural: str, poison: Poison) -> Manifest:
    node = node_world.manifest("poison", lists={"a": ["10.0.1.0/24"]})
    new = fleet.manifest("poison", "10.9.0.0/16") if plural == POOLS else node
    poison(new)
    new["metadata"] |= {"uid": "poison", "resourceVersion": "7"}
    return new


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("plural", "name", "poison"), CASES, ids=[f"{plural}: {name}" for plural, name, _ in CASES]
)
def test_one_object(
    plural: str, name: str, poison: Poison, world: CiliumWorld, caplog: pytest.LogCaptureFixture
) -> None:
    body = _shown(world, plural, _poisoned(plural, poison))
    world.fake.faults.add(verb="list", path=plural, body=body, times=None)
    with caplog.at_level(logging.DEBUG):
        first = world.run()
        objects = ObservedObject.objects.order_by("id").values("uid", "changed_at", "problem")
        rows = list(objects)
        second = world.run()
    # The others are as if it were not there.
    assert "a" in world.names()
    assert world.held()["10.0.0.0/24"] == "n1"
    # It is looked at, and stays as it is: no crash, no loop, no writes.
    for run in (first, second):
        assert not run.error_code, run.error
        assert not [item for item in run.kinds.values() if item.get("code")], run.kinds
    assert [item["changed"] for item in second.kinds.values()] == [0, 0]
    assert list(objects.all()) == rows
    assert not world.fake.log.writes
    # Nobody has to read all of it.
    assert all(len(record.getMessage()) < 5_000 for record in caplog.records)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    for row in ObservedObject.objects.all():
        assert len(row.problem) <= 1000
    assert Finding.objects.count() <= apply.MAX_FINDINGS + 1
    assert not Drift.objects.exists()
    # And when it goes, nothing of it is left.
    world.fake.faults.clear()
    last = world.run()
    assert last.succeeded, (last.error, last.kinds)


@pytest.mark.parametrize("plural", [POOLS, NODES])
@pytest.mark.parametrize(
    "damage",
    [
        lambda body: body.replace(b"poison", b"\xff\xfe", 1),
        lambda body: body[:-1],
        lambda body: body + b"{}",
        lambda body: body.replace(b'"items"', b'"things"'),
        lambda body: body.replace(b'"poison"', b"NaN,", 1),
    ],
    ids=["invalid UTF-8", "no end", "two values", "no items", "no JSON"],
)
def test_a_list_that_is_none_concludes_nothing(
    damage: Callable[[bytes], bytes], plural: str, world: CiliumWorld
) -> None:
    world.passed()
    body = damage(_shown(world, plural, _poisoned(plural, _metadata())))
    world.fake.faults.add(verb="list", path=plural, body=body, times=None)
    run = world.run()
    assert not run.succeeded
    assert "cluster_garbled" in {item.get("code") for item in run.kinds.values()}
    assert (world.names(), world.held()) == (["a"], {"10.0.0.0/24": "n1"})
    assert not ObservedObject.objects.exclude(missed_at=None).exists()
