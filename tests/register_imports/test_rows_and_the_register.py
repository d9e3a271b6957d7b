"""What a row becomes beside what the register has: each status, with the reason, the object and its former values."""

from collections.abc import Callable
from typing import Any

import pytest

from pools.core import errors
from pools.models import Cluster, Container, Pool, PoolCIDR, RegisterRecord, ReservedRange
from pools.register import pools
from pools.register.allocator import window
from tests import factories
from tests.register_imports import sources
from tests.register_imports.sources import BY, rows_of

pytestmark = pytest.mark.django_db(transaction=True)

NET = "10.0.1.0/24"


def pool(cluster: Cluster, **options: Any) -> Pool:
    options = {"cooldown": 3600, **options}
    return factories.pool(NET, name="ours", within=cluster, mask=32, **options)


def container(cluster: Cluster) -> None:
    space = pool(cluster).space
    Container.objects.create(space=space, cidr="10.0.0.0/16", description="old")


def held(cluster: Cluster, holder: str = "web", kind: str = "host") -> Any:
    holder_of_kind = factories.holder(holder, kind=kind)
    return factories.take(pool(cluster), holder_of_kind, cidr="10.0.1.2/32")


def cooling(cluster: Cluster, holder: str = "other") -> None:
    window.release_blocks([held(cluster, holder)["id"]])


def cooled(cluster: Cluster) -> None:
    block = factories.take(pool(cluster, cooldown=0), factories.holder("db"), cidr="10.0.1.2/32")
    window.release_blocks([block["id"]])


def reserved(cluster: Cluster) -> None:
    factories.reserve(pool(cluster), "10.0.1.10-10.0.1.20")


def nothing(_cluster: Cluster) -> None:
    """The register has no more than the cluster."""


Case = tuple[Callable[[Cluster], Any], str, str, str]
CASES: dict[str, Case] = {
    "a new container": (nothing, "prefix,status\n10.0.0.0/16,container\n", "new", ""),
    "a container with another text": (container, "prefix,status,description\n10.0.0.0/16,container,new\n", "changed", ""),
    "a container that is a pool": (pool, f"prefix,status\n{NET},container\n", "conflict", "registered_as_pool"),
    "a prefix that is a container": (container, "prefix\n10.0.0.0/16\n", "changed", ""),
    "a new pool": (nothing, f"prefix\n{NET}\n", "new", ""),
    "a pool as it is": (pool, f"prefix\n{NET}\n", "unchanged", ""),
    "a pool with another text": (pool, f"prefix,description\n{NET},new\n", "changed", ""),
    "a name that another pool has": (pool, "prefix,pool name\n10.0.2.0/24,ours\n", "conflict", "already_exists"),
    "a prefix in a pool": (pool, "prefix\n10.0.1.128/25\n", "conflict", "cidr_overlap"),
    "a free address": (pool, "ip,host\n10.0.1.2,web\n", "new", ""),
    "an address of the same holder": (held, "ip,holder\n10.0.1.2,web\n", "unchanged", ""),
    "another organization": (held, "ip,holder,tenant\n10.0.1.2,web,Other\n", "changed", ""),
    "another holder": (held, "ip,host\n10.0.1.2,db\n", "conflict", "already_allocated"),
    "a holder of another kind": (lambda cluster: held(cluster, kind="vm"), "ip,host\n10.0.1.2,web\n", "conflict", "already_allocated"),
    "an address that cools": (cooling, "ip,host\n10.0.1.2,web\n", "conflict", "cooling_down"),
    "an address that cools after its holder": (lambda cluster: cooling(cluster, "web"), "ip,host\n10.0.1.2,web\n", "new", ""),
    "an address that has cooled": (cooled, "ip,host\n10.0.1.2,web\n", "new", ""),
    "a new range": (pool, "start ip,end ip\n10.0.1.10,10.0.1.20\n", "new", ""),
    "a range that is there": (reserved, "start ip,end ip\n10.0.1.10,10.0.1.20\n", "unchanged", ""),
    "a part of a range": (reserved, "start ip,end ip\n10.0.1.12,10.0.1.14\n", "unchanged", ""),
    "a wider range": (reserved, "start ip,end ip\n10.0.1.12,10.0.1.24\n", "conflict", "ranges_overlap"),
}  # fmt: skip


@pytest.mark.parametrize(("prepare", "content", "status", "code"), CASES.values(), ids=CASES)
def test_a_row(prepare: Callable[[Cluster], Any], content: str, status: str, code: str) -> None:
    cluster = factories.cluster()
    prepare(cluster)
    row = rows_of(sources.draft(content, cluster=cluster))[0]
    assert row.status == status
    assert [reason["code"] for reason in row.reasons] == ([code] if code else [])
    is_there = status in {"changed", "unchanged"} or code in {"already_allocated", "ranges_overlap"}
    assert (row.object_id is not None) is is_there
    assert (row.before is not None) is (status == "changed")


def test_the_former_values_of_changed_rows() -> None:
    cluster = factories.cluster()
    held(cluster)
    space = Pool.objects.get().space
    Container.objects.create(space=space, cidr="10.0.0.0/16", description="old", tags=["a"])
    content = f"prefix,description\n10.0.0.0/16,new\n{NET},net\n".encode()
    draft = sources.draft(content, b"ip,holder,note\n10.0.1.2,web,x\n", cluster=cluster)
    before = {row.number: row.before for row in rows_of(draft)}
    attributes = {"owner": "", "custom_fields": {}}
    assert before[1] == {"description": "old", "details": None, "tags": ["a"], **attributes}
    assert before[2] == {"description": "", "details": None, "tags": [], **attributes}
    assert before[3] == {"holder": "web", "org": "", "description": None, "details": None}


def test_an_address_whose_prefix_is_not_imported() -> None:
    content = f"prefix,tenant\n{NET},{'x' * 300}\n".encode()
    draft = sources.draft(content, b"ip,holder\n10.0.1.2,web\n")
    row = rows_of(draft)[1]
    assert (row.status, row.reasons[0]["code"]) == ("invalid", "pool_not_imported")
    assert row.reasons[0]["message"] == f"the prefix {NET}, row 2, is not imported"


def test_the_undo_is_refused_while_somebody_reserves_addresses_of_its_pool() -> None:
    draft = sources.draft(f"prefix\n{NET}\n".encode(), b"start ip,end ip\n10.0.1.10,10.0.1.20\n")
    sources.commit(draft)
    added = factories.reserve(Pool.objects.get(), "10.0.1.30-10.0.1.40")
    with pytest.raises(errors.ImportInUse, match=r"10\.0\.1\.30-10\.0\.1\.40 in the pool"):
        sources.undo(draft)
    pools.unreserve(added, author=BY)
    sources.undo(draft)
    for model in (PoolCIDR, ReservedRange, RegisterRecord):
        assert not model._default_manager.exists()
