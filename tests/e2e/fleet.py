"""What the demo fleet lacks: a cluster that does not answer, committed imports, a webhook, a check."""

from claims.imports import drafts as import_drafts
from claims.models import NAD, VMImport
from claims.waves import waves
from pools.models import Cluster, Connection, Drift, Finding, Now, ObservedObject, SyncRun
from pools.platform.alerts import targets
from pools.register.demo import demo
from tests import factories
from tests.claims import worlds
from tests.claims.imports import drafts

NODE = {
    "apiVersion": "cilium.io/v2",
    "kind": "CiliumNode",
    "metadata": {"name": "worker-1", "uid": "u-1"},
    "spec": {
        "ipam": {
            "pools": {
                "requested": [{"pool": "green-pool", "needed": {"ipv4-addrs": 300}}],
                "allocated": [{"pool": "green-pool", "cidrs": ["10.20.1.0/24", "10.99.0.0/24"]}],
            }
        }
    },
}


def observed() -> dict[str, int]:
    """A connected cluster with differences, objects, a finding and runs; ids by their kinds."""
    cluster = Cluster.objects.get(name=demo.FRANKFURT)
    for model in (SyncRun, ObservedObject, Drift, Connection):
        model.objects.all().delete()
    Finding.objects.exclude(kind="IPAMClaim").delete()
    Connection.objects.create(
        cluster=cluster, server="https://api.frankfurt.example:6443", mode="managed", sealed="",
        managed_resources=["pools", "pod-cidrs"], version="v1.33.2", identity="0f6b7c1e-1f0c-4d1c-9f2e",
        due_at=Now(), succeeded_at="2026-01-01T00:00:00Z", failures=4,
        error_code="cluster_unreachable", error="the connection was refused",
    )  # fmt: skip
    rows = [
        Drift.objects.create(
            cluster=cluster, kind="CiliumPodIPPool", name="green-pool", path=path, desired=desired,
            observed=observed, managers=["kubectl-client-side-apply"], since=Now(),
            conflict="the field belongs to kubectl" if path.endswith("Size") else "",
        )
        for path, desired, observed in (
            ("spec.ipv4.cidrs", ["10.20.0.0/16", "10.30.0.0/16"], ["10.20.0.0/16"]),
            ("spec.ipv4.maskSize", 24, 25),
        )
    ]  # fmt: skip
    for name, problem in (("worker-1", ""), ("worker-2", "spec.ipam.pools: a list is expected")):
        row = ObservedObject.objects.create(
            cluster=cluster, kind="CiliumNode", api_version="cilium.io/v2", name=name, uid=name,
            resource_version="77", manifest=NODE, problem_code=problem and "wrong_type",
            problem=problem, first_seen_at=Now(), changed_at=Now(),
        )  # fmt: skip
    Finding.objects.create(
        cluster=cluster, kind="CiliumNode", code="overlap", subject="worker-1 10.20.1.0/24",
        severity="error", message="10.20.1.0/24 is also held by node worker-7.", since=Now(),
    )  # fmt: skip
    counts = {"seen": 120, "changed": 3, "written": 1, "failed": 0}
    for succeeded in (True, False):
        SyncRun.objects.create(
            cluster=cluster, trigger="schedule", started_at=Now(), ended_at=Now(),
            succeeded=succeeded, kinds={"CiliumNode": counts, "CiliumPodIPPool": counts},
            error_code="" if succeeded else "cluster_unreachable",
            error="" if succeeded else "the connection was refused",
        )  # fmt: skip
    return {"cluster": cluster.pk, "drift": rows[0].pk, "object": row.pk}


def operated() -> None:
    """An import that is drafted, one that is written, a wave of it, a webhook and a check."""
    network = worlds.network(subnets=("10.0.0.0/16",))
    NAD.objects.create(network=network, namespace="shop", name="n", allow_persistent_ips=True)
    drafts.draft(network, drafts.row("gw", drafts.mac(3), "10.0.0.1", network="VM Network"))
    done = drafts.draft(network, drafts.row("web", drafts.mac(1), "10.0.0.5"), namespace="shop")
    import_drafts.IMPORTS.commit(done.pk, author=worlds.BY)
    wave = waves.create(network.cluster, "Saturday", author=worlds.BY)
    waves.add_import(wave.pk, VMImport.objects.get(pk=done.pk), author=worlds.BY)
    targets.create("alerts", "https://hooks.example/ipam", author=factories.BY)
