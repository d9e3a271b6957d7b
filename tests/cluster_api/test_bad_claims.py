"""Rule `bad-object-fails-alone`, for claims: one that cannot be served, for whatever reason, stops no other."""

from typing import Any

import pytest

from pools.cluster_api import allocation, claim_writes
from pools.cluster_api.observed import PoolBinding
from pools.core.cluster_api.conditions import Reason
from pools.models import Finding
from pools.platform import events
from tests.cluster_api.world import World
from tests.kube.manifests import build

pytestmark = pytest.mark.django_db(transaction=True)

SPACE = "s" * 60
LONG = "c" * 230


def message(world: World, name: str, namespace: str) -> str:
    manifest = world.claim(name, namespace)
    (ready,) = [
        condition for condition in manifest["status"]["conditions"] if condition["type"] == "Ready"
    ]
    return str(ready.get("message"))


@pytest.fixture
def served(world: World) -> World:
    """A claim that is answered, and one that is being deleted."""
    world.pool("10.0.0.0/28")
    world.put_global_pool("all")
    world.follow_claims("a", "leaving", pool="all", kind="GlobalCadastrePool")
    world.delete_claim("leaving")
    return world


def check_others(world: World) -> None:
    """A claim before, one behind and one that leaves are served in the next sync."""
    world.follow_claims("0-before", "z-behind", pool="all", kind="GlobalCadastrePool")
    assert (
        world.ready("0-before") == world.ready("z-behind") == world.ready("a") == ("True", "Ready")
    )
    assert world.claim("leaving") is None
    assert "blue/leaving" not in world.held()


def test_a_name_that_is_too_long_for_a_holder_is_refused_alone(served: World) -> None:
    served.server.put(build("v1", "Namespace", SPACE))
    served.put_claim(LONG, namespace=SPACE, pool="all", kind="GlobalCadastrePool")
    check_others(served)
    assert served.ready(LONG, SPACE) == ("False", Reason.ALLOCATION_FAILED.value)
    assert "at most 253 characters" in message(served, LONG, SPACE)
    assert served.address(LONG, SPACE) is None
    served.delete_claim(LONG, SPACE)
    served.sync()
    assert served.claim(LONG, SPACE) is None


@pytest.mark.parametrize(
    "step", ["allocation", "record", "condition", "writes"]
)  # record: in the history
def test_an_error_in_any_step_even_in_that_of_errors_is_that_of_one_claim(
    step: str, served: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_for_bad(module: Any, function: str) -> None:
        before = getattr(module, function)

        def failing(*args: Any, **options: Any) -> Any:
            text = repr((args, options))
            if (
                "ObjectName(namespace='blue', name='bad')" in text
                or "('ipaddressclaim', 'blue/bad')" in text
            ):
                raise KeyError("bad")
            return before(*args, **options)

        monkeypatch.setattr(module, function, failing)

    fail_for_bad(allocation, "hold_address")
    if step == "record":
        fail_for_bad(events, "record_allocation_failure")
    if step == "condition":
        fail_for_bad(claim_writes, "status_writes")
    if step == "writes":
        monkeypatch.undo()
        fail_for_bad(claim_writes, "_address")
    served.put_claim("bad", pool="all", kind="GlobalCadastrePool")
    check_others(served)
    if step in {"allocation", "record"}:
        assert served.ready("bad") == ("False", Reason.ALLOCATION_FAILED.value)
        return
    finding = Finding.objects.get(code="object_failed")
    assert finding.subject == "blue/bad"
    assert "IPAddressClaim blue/bad" in finding.message
    monkeypatch.undo()
    served.sync()
    assert served.ready("bad") == ("True", "Ready")
    assert not Finding.objects.filter(code="object_failed").exists()


def test_a_gateway_that_cannot_be_reserved_is_that_of_one_pool(
    served: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pools.cluster_api import observed

    def fail(binding: PoolBinding, **_options: Any) -> None:
        if binding.pool_object.key.name == "bad":
            raise KeyError("bad")

    monkeypatch.setattr(observed, "reserve_gateway", fail)
    served.put_pool("bad")
    served.put_claim("of-bad", pool="bad")
    check_others(served)
    assert served.ready("of-bad") == ("False", Reason.POOL_NOT_READY.value)
