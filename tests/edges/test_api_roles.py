"""What each role may do: every endpoint and verb, as the migration made the roles.

The table has one line for each method that a view names in `needs`; a test holds it complete.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction
from django.urls import resolve

from pools.api import urls
from pools.models import Block, Cluster, Drift, Leak, Notice, ObservedObject
from pools.models.fields import Now
from pools.services.notices import outbox, targets
from tests import factories
from tests.edges import api as apis
from tests.kube import certificates, kubeconfigs

pytestmark = pytest.mark.django_db
ROLES = ("viewer", "operator", "administrator")
MANIFEST = (
    "{apiVersion: cilium.io/v2, kind: CiliumPodIPPool, metadata: {name: green},"
    " spec: {ipv4: {cidrs: [10.20.0.0/16], maskSize: 24}}}"
)
# Loopback is refused before anything is sent.
KUBECONFIG = kubeconfigs.text("https://127.0.0.1:6443", certificates.Authority().pem, token="t")
VMS = {"mask_size": 32, "cidrs": ["10.4.0.0/29"]}


@dataclass(frozen=True)
class Line:
    """A request and the least role that it needs; `status` is what it is answered then."""

    role: str
    method: str
    path: str
    body: Any = None
    status: int = 200


REPORT = {
    "cluster": "prod", "holder_kind": "instance", "sequence": 1, "complete": True, "holders": [],
}  # fmt: skip
TABLE = [
    *(
        Line("viewer", "GET", path)
        for path in (
            "clusters/", "clusters/prod/", "pools/", "pools/{pool}/", "pools/{pool}/cidrs/",
            "blocks/", "blocks/{held}/", "requests/", "requests/{request}/", "environments/",
            "clusters/prod/connection/", "clusters/prod/runs/", "clusters/prod/objects/",
            "clusters/prod/objects/{object}/", "clusters/prod/findings/", "clusters/prod/drift/", "clusters/prod/nodes/",
            "clusters/prod/preflight/", "clusters/prod/manifest/", "pools/{pods}/manifest/",
            "pools/{pods}/forecast/", "utilization/", "pools/{pods}/migrations/", "pools/{pods}/migrations/{migration}/", "overlaps/",
            "history/", "holders/vm/a/history/", "holders/uid/u/history/", "pools/{pool}/at/", "audit/",
            "events/", "addresses/10.0.0.1/", "instances/i-1/network/", "schema/", "docs/",
        )
    ),
    *(Line("viewer", "GET", path) for path in ("notices/", "notices/{notice}/")),
    *(
        Line("administrator", "GET", path)
        for path in ("webhook-targets/", "webhook-targets/{target}/", "webhook-targets/{target}/deliveries/")
    ),
    Line("administrator", "POST", "webhook-targets/", {"name": "n", "url": "https://example.org/"}, 201),
    Line("administrator", "PATCH", "webhook-targets/{target}/", {"enabled": False}),
    Line("administrator", "DELETE", "webhook-targets/{target}/", None, 204),
    Line("administrator", "POST", "webhook-targets/{target}/rotate/"),
    Line("administrator", "POST", "webhook-targets/{target}/test/", None, 202),
    Line("administrator", "POST", "webhook-targets/{target}/deliveries/{delivery}/send/", None, 202),
    Line("viewer", "POST", "clusters/prod/pool-for-pod/", {"pod": {"name": "p"}, "namespace": {"name": "n"}}),
    Line("viewer", "POST", "clusters/prod/node-demand/", {"in_use": {"default": 1}}),
    Line("operator", "POST", "pools/{spare}/migrations/", {"cidr": "10.1.0.0/29"}, 201),
    Line("operator", "POST", "pools/{pods}/migrations/{migration}/steps/", {"step": "reserve"}),
    Line("operator", "POST", "pools/{pool}/allocations/", apis.holder("n"), 201),
    Line("operator", "POST", "blocks/{held}/release/", apis.holder("a")),
    Line("operator", "DELETE", "requests/{request}/"),
    Line("viewer", "GET", "checks/"),
    Line("viewer", "GET", "leaks/"),
    Line("viewer", "GET", "references/"),
    Line("viewer", "GET", "checks/{check}/"),
    Line("operator", "POST", "checks/", {"only": ["leases"]}, 202),
    Line("administrator", "POST", "checks/", {"repair": True}, 202),
    Line("operator", "POST", "pools/", {"cluster": "prod", "name": "n", "category": "vm", "ipv4": VMS}, 201),
    Line("operator", "PATCH", "pools/{pool}/", {"description": "x"}),
    Line("operator", "DELETE", "pools/{spare}/", None, 204),
    Line("operator", "POST", "pools/import/", {"cluster": "prod", "manifest": MANIFEST}, 201),
    Line("operator", "POST", "pools/{pool}/cidrs/", {"cidr": "10.5.0.0/29"}, 201),
    Line("operator", "DELETE", "pools/{spare}/cidrs/{cidr}/", None, 204),
    Line("operator", "POST", "pools/{spare}/cidrs/{cidr}/reserved-ranges/", {"range": "10.1.0.5-10.1.0.6"}, 201),
    Line("operator", "DELETE", "pools/{spare}/reserved-ranges/{range}/", None, 204),
    Line("operator", "POST", "clusters/prod/connection/test/", {}),
    Line("operator", "POST", "clusters/prod/reconcile/", None, 202),
    Line("operator", "POST", "clusters/prod/drift/{drift}/ignore/", {"reason": "known"}),
    Line("operator", "POST", "references/", REPORT),
    Line("operator", "POST", "leaks/reclaim/", {"blocks": [], "reason": "gone"}, 400),
    Line("operator", "POST", "blocks/{leaked}/reclaim/", apis.holder("lost") | {"reason": "gone"}),
    Line("administrator", "POST", "clusters/prod/connection/test/", {"kubeconfig": KUBECONFIG}),
    Line("administrator", "PUT", "clusters/empty/connection/", {"kubeconfig": KUBECONFIG, "offline": True}, 201),
    Line("administrator", "PATCH", "clusters/prod/connection/", {"paused": True}),
    Line("administrator", "DELETE", "clusters/prod/connection/", None, 204),
    Line("administrator", "POST", "blocks/{held}/release/", {"force": True, "reason": "gone"}),
    Line("administrator", "POST", "blocks/{cooling}/end-cooldown/", {"reason": "never used"}),
    Line("administrator", "POST", "clusters/", {"name": "new"}, 201),
    Line("administrator", "PATCH", "clusters/prod/", {"description": "x"}),
    Line("administrator", "DELETE", "clusters/empty/", None, 204),
]  # fmt: skip


def _ids() -> dict[str, int]:
    """A little of everything; its ids."""
    api = apis.Api()
    api.cluster(cluster_prefix=apis.PREFIX)
    api.cluster("empty")
    api("PUT", "clusters/prod/connection/", {"kubeconfig": KUBECONFIG, "offline": True})
    seen = ObservedObject.objects.create(
        cluster=Cluster.objects.get(name="prod"), kind="CiliumNode", name="n", uid="u",
        resource_version="1", manifest={}, first_seen_at=Now(), changed_at=Now(),
    )  # fmt: skip
    pool = api.vm_pool("10.0.0.0/29", cooldown=600)
    full = api.vm_pool("10.2.0.1/32", name="full")
    spare = api.vm_pool("10.1.0.0/29", "fd01::/125", name="spare")
    cidr = api("GET", f"pools/{spare}/cidrs/").json()["results"][0]["id"]
    place = f"pools/{spare}/cidrs/{cidr}/reserved-ranges/"
    made = api.made(place, {"range": "10.1.0.1-10.1.0.2"})
    api.made(f"pools/{api.pool('instance')}/allocations/", apis.holder("i-1", "instance"))
    cooling = api.take(pool, "b")
    api("POST", f"blocks/{cooling['id']}/release/", apis.holder("b"))
    api.take(full, "f")
    waits = api("POST", f"pools/{full}/allocations/", apis.holder("w") | {"wait": True}).json()
    part = {"mask_size": 24, "cidrs": ["10.6.0.0/16"]}
    pods = api.made("pools/", {"cluster": "prod", "name": "pods", "category": "pod", "ipv4": part})
    migration = api.made(f"pools/{pods['id']}/migrations/", {"cidr": "10.6.0.0/16"})
    return {
        "pods": pods["id"], "migration": migration["id"], "pool": pool, "spare": spare, "cidr": cidr, "range": made["id"], "cooling": cooling["id"],
        "check": api("POST", "checks/", {"only": ["leases"]}).json()["id"],
        "held": api.take(pool, "a")["id"], "leaked": _leaked(api.take(pool, "lost")["id"]), "request": waits["id"], "object": seen.pk, **_told(),
        "drift": Drift.objects.create(
            cluster=seen.cluster, kind="CiliumPodIPPool", name="p", path="spec", since=Now()
        ).pk,
    }  # fmt: skip


def _leaked(block_id: int) -> int:
    """A block whose holder nobody saw."""
    block = Block.objects.get(pk=block_id)
    assert block.allocated_at is not None
    Leak.objects.create(
        block=block, cluster=Cluster.objects.get(name="prod"), source="tooling", observations=2,
        holder_kind=block.holder_kind, holder_id=block.holder_id, allocated_at=block.allocated_at,
        missed_at=Now(), observed_at=Now(), confirmed_at=Now(),
    )  # fmt: skip
    return block_id


def _told() -> dict[str, int]:
    """A notice, and a message to a target."""
    notice = Notice.objects.create(
        code="x", subject="y", level="error", title="t", since=Now(), seen_at=Now()
    )
    target, _secret = targets.create("ops", "https://example.org/", by=factories.BY)
    return {"notice": notice.pk, "target": target.pk, "delivery": outbox.write_test(target).pk}


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_what_it_may(role: str, subtests: pytest.Subtests) -> None:
    ids = _ids()
    api = apis.Api(role)
    for line in TABLE:
        with subtests.test(f"{line.method} {line.path}"), transaction.atomic():
            answer = api(line.method, line.path.format(**ids), line.body)
            if ROLES.index(role) >= ROLES.index(line.role):
                assert answer.status_code == line.status, answer.content[:300]
            else:
                apis.refused(answer, 403, "permission_denied")
            transaction.set_rollback(True)


def test_without_a_role_nothing_of_the_register_is_seen() -> None:
    ids = _ids()
    nobody = apis.Api("viewer")
    nobody.user.groups.clear()
    for line in TABLE:
        if line.path not in {"schema/", "docs/"}:
            answer = nobody(line.method, line.path.format(**ids), line.body)
            assert answer.status_code == 403, line


def test_the_table_has_every_method_of_every_view() -> None:
    in_table = {
        (resolve(apis.ROOT + line.path.format(**dict.fromkeys(_NAMES, 1))).url_name, line.method)
        for line in TABLE
    }
    views = {pattern.name: pattern.callback.view_class for pattern in urls.urlpatterns}
    for name, view in views.items():
        needed = set(getattr(view, "needs", {"GET": ()}))
        assert {method for one, method in in_table if one == name} == needed, name
        handled = {m.upper() for m in ("get", "post", "put", "patch", "delete") if hasattr(view, m)}
        assert handled == needed, name


_NAMES = ("check", "leaked", "notice", "target", "delivery", "pool", "spare", "cidr", "range", "cooling", "held", "request", "object", "drift", "pods", "migration")  # fmt: skip
