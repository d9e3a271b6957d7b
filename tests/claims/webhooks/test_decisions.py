"""What the webhooks decided is written down: by dry runs nothing, and never for ever."""

import time
from datetime import timedelta
from typing import Any

from claims import tasks
from claims.models import Decision
from claims.workloads import vm_lookup
from pools.platform import database
from tests.claims.webhooks.doors import Door
from tests.core.vm_world import pod


def test_a_decision(door: Door) -> None:
    began = time.perf_counter()
    response = door.ask(pod())
    most = (time.perf_counter() - began) * 1000
    decision = Decision.objects.get()
    assert (decision.cluster, decision.path, decision.operation) == (
        door.cluster,
        "mutate-pods",
        "CREATE",
    )
    assert (decision.namespace, decision.name) == ("blue", "virt-launcher-vm-server-00000")
    assert (decision.vm, decision.network) == ("vm-server", "cluster_udn_blue")
    assert (decision.code, decision.allowed) == ("patched", True)
    assert f"cadastre: {decision.message}" == response["warnings"][0]
    assert decision.patch[0]["op"] == "add"
    assert 0 < decision.milliseconds < most
    assert decision.at == database.now()


def test_a_launcher_pod_without_a_vm(door: Door) -> None:
    odd = pod(labels={"kubevirt.io": "virt-launcher"})
    odd["metadata"]["annotations"] = {}
    assert "warnings" not in door.ask(odd)
    assert Decision.objects.get().code == "not_a_vm"


def test_long_names_are_cut(door: Door) -> None:
    vm_lookup.record_decision(door.cluster.pk, path="mutate-pods", code="x", message="m" * 2000)
    assert len(Decision.objects.get().message) == 1000


def test_what_an_annotation_said_is_recorded_without_secrets(door: Door) -> None:
    secret = "token=abcdef0123456789"
    patch = [{"op": "add", "path": "/metadata", "value": f"a {secret}"}]
    vm_lookup.record_decision(
        door.cluster.pk, path="mutate-pods", code="x", message=f"no MAC: {secret}", patch=patch
    )
    decision = Decision.objects.get()
    assert decision.message == "no MAC: token=[redacted]"
    assert decision.patch == [patch[0] | {"value": "a token=[redacted]"}]


def test_old_ones_are_deleted(door: Door, settings: Any) -> None:
    for _ in range(3):
        door.ask(pod())
    old = Decision.objects.first()
    assert old is not None
    Decision.objects.filter(pk=old.pk).update(at=database.now() - timedelta(days=31))
    settings.IPAM_DECISION_DAYS = 0
    assert tasks.tidy_decisions() == 0
    settings.IPAM_DECISION_DAYS = 30
    assert tasks.tidy_decisions() == 1
    assert Decision.objects.count() == 2
    assert tasks.tidy_decisions() == 0
