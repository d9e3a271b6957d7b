"""The status of a claim in the words of the cluster's own definition."""

import pathlib
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from claims.core.ipamclaims import dialects as words
from claims.core.ipamclaims.dialects import ClaimOutcome

CRDS = pathlib.Path(__file__).parents[1] / "kube" / "crds"
NOW = datetime(2026, 5, 13, 11, 56, tzinfo=UTC)
LATER = datetime(2026, 5, 14, tzinfo=UTC)
OTHER = {"type": "Ready", "status": "True", "reason": "X", "message": "", "lastTransitionTime": "t"}


def schema(name: str) -> dict[str, Any]:
    document = yaml.safe_load((CRDS / f"{name}.yaml").read_text())
    json_schema: dict[str, Any] = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return json_schema


SHIPPED = words.dialect(schema("k8s.cni.cncf.io_ipamclaims"))
SPEC = words.dialect(schema("k8s.cni.cncf.io_ipamclaims.proposal"))


def test_dialects_are_told_by_the_schema() -> None:
    shipped = (SHIPPED.condition, SHIPPED.pod_is_object, SHIPPED.spec_mac, SHIPPED.spec_ips)
    assert shipped == ("IPsAllocated", True, False, False)
    spec = (SPEC.condition, SPEC.pod_is_object, SPEC.spec_mac, SPEC.spec_ips)
    assert spec == ("IPAllocated", False, True, True)
    assert words.dialect(None) == words.SHIPPED
    bare = words.dialect({"properties": {"status": {"properties": {"ips": {}}}}})
    assert (bare.has_conditions, bare.has_owner_pod) == (False, False)
    assert words.render_status(["10.0.0.5/24"], "pod", [OTHER], bare) == {"ips": ["10.0.0.5/24"]}


@pytest.mark.parametrize(
    ("outcome", "shipped", "spec"),
    [
        (ClaimOutcome.ALLOCATED, "SuccessfulAllocation", "SuccessfulAllocation"),
        (ClaimOutcome.IP_CONFLICT, "IPAddressConflict", "IPAlreadyExists"),
        (ClaimOutcome.MAC_CONFLICT, "MACAddressConflict", "MACAlreadyExists"),
        (ClaimOutcome.EXHAUSTED, "SubnetExhausted", "SubnetExhausted"),
        (ClaimOutcome.ERROR, "InternalError", "InternalError"),
    ],
)
def test_outcomes_in_both_dialects(outcome: ClaimOutcome, shipped: str, spec: str) -> None:
    for dialect, reason in ((SHIPPED, shipped), (SPEC, spec)):
        condition = words.condition(outcome, "because", dialect)
        assert condition["type"] == dialect.condition
        assert condition["reason"] == reason
        assert condition["status"] == ("True" if outcome is ClaimOutcome.ALLOCATED else "False")
        assert words.outcome_of(condition) is outcome


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (None, None),
        ({"type": "IPsAllocated", "status": "Unknown"}, None),
        ({"type": "IPsAllocated", "status": "False", "reason": "Whatever"}, ClaimOutcome.ERROR),
        ({"type": "IPsAllocated", "status": "False", "reason": "SuccessfulAllocation"}, ClaimOutcome.ERROR),
        ({"type": "IPsAllocated", "status": "True", "reason": "IPAlreadyExists"}, ClaimOutcome.ALLOCATED),
    ],
)  # fmt: skip
def test_a_condition_is_read_by_its_status_first(
    condition: Any, expected: ClaimOutcome | None
) -> None:
    assert words.outcome_of(condition) is expected


def test_the_time_moves_with_the_status_alone_and_others_types_stay() -> None:
    failed = words.condition(ClaimOutcome.IP_CONFLICT, "no", SPEC)
    first = words.merge_conditions([OTHER], failed, now=NOW)
    assert first == [OTHER, failed | {"lastTransitionTime": "2026-05-13T11:56:00Z"}]
    again = words.condition(ClaimOutcome.EXHAUSTED, "full", SPEC)
    second = words.merge_conditions(first, again, now=LATER)
    assert second[1]["lastTransitionTime"] == "2026-05-13T11:56:00Z"
    assert second[1]["reason"] == "SubnetExhausted"
    third = words.merge_conditions(
        second, words.condition(ClaimOutcome.ALLOCATED, "ok", SPEC), now=LATER
    )
    assert third[1]["lastTransitionTime"] == "2026-05-14T00:00:00Z"
    assert third[0] == OTHER


def test_the_condition_of_the_other_dialect_goes() -> None:
    before = words.merge_conditions([], words.condition(ClaimOutcome.ERROR, "x", SHIPPED), now=NOW)
    after = words.merge_conditions(
        before, words.condition(ClaimOutcome.ERROR, "x", SPEC), now=LATER
    )
    assert [item["type"] for item in after] == ["IPAllocated"]
    assert words.matches(
        words.allocation_condition(after), words.condition(ClaimOutcome.ERROR, "x", SPEC)
    )
    assert not words.matches(
        words.allocation_condition(after), words.condition(ClaimOutcome.ERROR, "y", SPEC)
    )
