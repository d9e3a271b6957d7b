"""Rule `overrides-need-a-reason`."""

from typing import Any

from tests.security.target import Target


def _holder(name: str) -> dict[str, Any]:
    return {"holder": {"kind": "vm", "id": name}}


def test_force_and_the_end_of_a_cooldown(target: Target) -> None:
    part = {"mask_size": 32, "cidrs": ["10.89.0.0/29"]}
    pool = {
        "cluster": "prod",
        "name": "s33",
        "category": "vm",
        "ipv4": part,
        "cooldown_seconds": 600,
    }
    place = f"pools/{target.rest('POST', 'pools/', pool).json()['id']}/allocations/"
    held = target.rest("POST", place, _holder("victim")).json()["blocks"][0]
    block = held["id"]
    release, cooldown = f"blocks/{block}/release/", f"blocks/{block}/end-cooldown/"
    for token in ("viewer", "operator", "vera"):
        assert target.rest("POST", release, {"force": True, "reason": "x"}, token).status == 403
        assert target.rest("POST", cooldown, {"reason": "x"}, token).status == 403
    assert target.rest("POST", release, _holder("another")).status == 409
    for reason in ({}, {"reason": ""}, {"reason": "  "}):
        assert target.rest("POST", release, {"force": True} | reason).status == 400, reason
    done = target.rest("POST", release, {"force": True, "reason": "its host burnt"})
    assert done.status == 200, done.text
    assert target.rest("POST", cooldown, {}).status == 400
    assert target.rest("POST", cooldown, {"reason": "never used"}).status == 200
    events = target.rest("GET", f"events/?block={held['cidr']}&limit=20").json()["results"]
    reasons = {(event["actor"], event["reason"]) for event in events}
    assert {("administrator", "its host burnt"), ("administrator", "never used")} <= reasons


def test_a_cluster_goes_by_force_with_a_reason_only(target: Target) -> None:
    target.rest("POST", "clusters/", {"name": "burnt"})
    part = {"mask_size": 32, "cidrs": ["10.90.0.0/29"]}
    pool = {"cluster": "burnt", "name": "p", "category": "vm", "ipv4": part}
    pool_id = target.rest("POST", "pools/", pool).json()["id"]
    target.rest("POST", f"pools/{pool_id}/allocations/", _holder("a"))
    path = "clusters/burnt/?force=true"
    assert target.rest("DELETE", f"{path}&reason=x", token="operator").status == 403
    assert target.rest("DELETE", "clusters/burnt/").status == 409
    assert target.rest("DELETE", path).status == 400
    assert target.rest("DELETE", f"{path}&reason=fire").status == 204
