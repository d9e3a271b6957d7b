"""The two dialects of an IPAMClaim's status: reads and writes its conditions.

The CRD of OVN-Kubernetes has the condition `IPsAllocated` and an `ownerPod` that is an object; the
enhancement proposal has `IPAllocated`, other reasons, and an `ownerPod` that is a string. Cadastre
writes the dialect of the cluster's CRD.
"""

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from ipaddress import ip_interface
from typing import Any

Condition = dict[str, Any]
_MAX_MESSAGE = 32768


class ClaimOutcome(enum.Enum):
    """Outcome of the allocation for a claim."""

    ALLOCATED = "allocated"
    IP_CONFLICT = "ip-conflict"
    MAC_CONFLICT = "mac-conflict"
    EXHAUSTED = "exhausted"
    ERROR = "error"


@dataclass(frozen=True)
class Dialect:
    """The fields of a cluster's CRD, with the type and the reasons of its condition."""

    condition: str  # its type
    reasons: Mapping[ClaimOutcome, str]
    pod_is_object: bool
    has_conditions: bool = True
    has_owner_pod: bool = True
    spec_mac: bool = False
    spec_ips: bool = False


SHIPPED = Dialect(
    condition="IPsAllocated",
    reasons={
        ClaimOutcome.ALLOCATED: "SuccessfulAllocation",
        ClaimOutcome.IP_CONFLICT: "IPAddressConflict",
        ClaimOutcome.MAC_CONFLICT: "MACAddressConflict",
        ClaimOutcome.EXHAUSTED: "SubnetExhausted",
        ClaimOutcome.ERROR: "InternalError",
    },
    pod_is_object=True,
)
PROPOSED = Dialect(
    condition="IPAllocated",
    reasons={
        ClaimOutcome.ALLOCATED: "SuccessfulAllocation",
        ClaimOutcome.IP_CONFLICT: "IPAlreadyExists",
        ClaimOutcome.MAC_CONFLICT: "MACAlreadyExists",
        ClaimOutcome.EXHAUSTED: "SubnetExhausted",
        ClaimOutcome.ERROR: "InternalError",
    },
    pod_is_object=False,
)
TYPES = (SHIPPED.condition, PROPOSED.condition)
_OUTCOMES = {
    reason: outcome
    for variant in (SHIPPED, PROPOSED)
    for outcome, reason in variant.reasons.items()
}


def dialect(schema: Mapping[str, Any] | None) -> Dialect:
    """Return the dialect of a CRD version's OpenAPI schema; the shipped dialect if there is no schema."""
    if schema is None:
        return SHIPPED
    spec, status = _part(schema, "spec"), _part(schema, "status")
    owner = _properties(status).get("ownerPod")
    text = isinstance(owner, Mapping) and owner.get("type") == "string"
    base_dialect = PROPOSED if text else SHIPPED
    return Dialect(
        condition=base_dialect.condition,
        reasons=base_dialect.reasons,
        pod_is_object=base_dialect.pod_is_object,
        has_conditions=_has(status, "conditions"),
        has_owner_pod=_has(status, "ownerPod"),
        spec_mac=_has(spec, "mac"),
        spec_ips=_has(spec, "ips"),
    )


def with_requests(crd_dialect: Dialect) -> Dialect:
    """Return the dialect with spec.mac and spec.ips, for users of a cluster whose CRD is not known."""
    return replace(crd_dialect, spec_mac=True, spec_ips=True)


def _part(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    subschema = _properties(schema).get(name)
    return subschema if isinstance(subschema, Mapping) else {}


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _has(schema: Mapping[str, Any], name: str) -> bool:
    return name in _properties(schema) or bool(schema.get("x-kubernetes-preserve-unknown-fields"))


# --- reading --------------------------------------------------------------------------------------


def allocation_condition(conditions: Iterable[Condition]) -> Condition | None:
    """Return the allocation condition, in either dialect; the latest one if there are several."""
    candidates = [condition for condition in conditions if condition.get("type") in TYPES]
    return max(
        candidates,
        key=lambda condition: str(condition.get("lastTransitionTime") or ""),
        default=None,
    )


def outcome_of(condition: Condition | None) -> ClaimOutcome | None:
    """Return the outcome that a condition reports; None for no condition or status Unknown."""
    if condition is None or condition.get("status") not in {"True", "False"}:
        return None
    if condition["status"] == "True":
        return ClaimOutcome.ALLOCATED
    outcome = _OUTCOMES.get(str(condition.get("reason")), ClaimOutcome.ERROR)
    return ClaimOutcome.ERROR if outcome is ClaimOutcome.ALLOCATED else outcome


# --- writing --------------------------------------------------------------------------------------


def allocated_message(ips: Sequence[str]) -> str:
    """Return `IP 192.168.1.5 allocated successfully`, the message of the proposal."""
    return f"{_format_ips(ips)} allocated successfully"


def ip_conflict_message(ips: Sequence[str]) -> str:
    """Return `Requested IP 192.168.1.5 is already assigned in the network`, the message of the proposal."""
    verb = "is" if len(ips) == 1 else "are"
    return f"Requested {_format_ips(ips)} {verb} already assigned in the network"


def outside_message(ips: Sequence[str], subnets: Iterable[object]) -> str:
    verb = "is" if len(ips) == 1 else "are"
    inside = ", ".join(str(subnet) for subnet in subnets) or "none"
    return f"Requested {_format_ips(ips)} {verb} outside the subnets of the network ({inside})"


def _format_ips(ips: Sequence[str]) -> str:
    shown = ", ".join(str(ip_interface(text).ip) for text in ips)
    return f"IP {shown}" if len(ips) == 1 else f"IPs {shown}"


def condition(outcome: ClaimOutcome, message: str, crd_dialect: Dialect) -> Condition:
    """Return the condition of an outcome in a dialect, without the time of its transition."""
    return {
        "type": crd_dialect.condition,
        "status": "True" if outcome is ClaimOutcome.ALLOCATED else "False",
        "reason": crd_dialect.reasons[outcome],
        "message": message[:_MAX_MESSAGE],
    }


def merge_conditions(
    before: Iterable[Condition], allocation: Condition, *, now: datetime
) -> list[Condition]:
    """Return all conditions of a claim, with the allocation condition replaced by `allocation`.

    Server-side apply treats the list as one value, so conditions of other types are included unchanged;
    the condition of the other dialect is removed. The transition time changes only with the status.
    """
    other_conditions: list[Condition] = []
    transition_time = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for condition in before:
        if condition.get("type") not in TYPES:
            other_conditions.append(dict(condition))
        elif (
            condition["type"] == allocation["type"]
            and condition.get("status") == allocation["status"]
        ):
            transition_time = str(condition.get("lastTransitionTime") or transition_time)
    condition_fields = {key: allocation[key] for key in ("type", "status", "reason", "message")}
    return [*other_conditions, condition_fields | {"lastTransitionTime": transition_time}]


def matches(condition: Condition | None, allocation: Condition) -> bool:
    """Return True if a condition equals `allocation`, except for its time."""
    keys = ("type", "status", "reason", "message")
    return condition is not None and all(condition.get(key) == allocation[key] for key in keys)


def render_status(
    ips: Sequence[str], owner_pod: str, conditions: Sequence[Condition], crd_dialect: Dialect
) -> dict[str, Any]:
    """Return the status of a claim with the fields of the CRD."""
    status: dict[str, Any] = {"ips": list(ips)}
    if crd_dialect.has_owner_pod and owner_pod:
        status["ownerPod"] = {"name": owner_pod} if crd_dialect.pod_is_object else owner_pod
    if crd_dialect.has_conditions and conditions:
        status["conditions"] = list(conditions)
    return status
