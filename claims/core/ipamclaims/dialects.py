"""The two dialects of an IPAMClaim's status: its conditions, read and written.

OVN-Kubernetes ships the type `IPsAllocated` and an `ownerPod` that is an object; the enhancement
proposal has `IPAllocated`, other reasons, and an `ownerPod` that is a text. What is written is what the
cluster's own CRD has.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from ipaddress import ip_interface
from typing import Any

Condition = dict[str, Any]
_LONGEST_MESSAGE = 32768


class ClaimOutcome(enum.Enum):
    """How a claim was answered."""

    ALLOCATED = "allocated"
    IP_CONFLICT = "ip-conflict"
    MAC_CONFLICT = "mac-conflict"
    EXHAUSTED = "exhausted"
    ERROR = "error"


@dataclass(frozen=True)
class Dialect:
    """What the cluster's CRD has, and the words that belong to it."""

    condition: str  # the type
    reasons: Mapping[ClaimOutcome, str]
    pod_is_object: bool
    has_conditions: bool = True
    has_owner_pod: bool = True
    spec_mac: bool = False
    spec_ips: bool = False

    @property
    def takes_requests(self) -> bool:
        """Whether spec.mac and spec.ips are there: the decentralized form."""
        return self.spec_mac and self.spec_ips


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
    """The dialect of the OpenAPI schema of the CRD's version; the shipped one when none is shown."""
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


def with_requests(words: Dialect) -> Dialect:
    """The same, with spec.mac and spec.ips: for people, where no definition is known."""
    return replace(words, spec_mac=True, spec_ips=True)


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
    """The condition that says whether addresses were allocated, in either dialect."""
    candidates = [condition for condition in conditions if condition.get("type") in TYPES]
    return max(
        candidates,
        key=lambda condition: str(condition.get("lastTransitionTime") or ""),
        default=None,
    )


def outcome_of(condition: Condition | None) -> ClaimOutcome | None:
    """What a condition says, by its status and reason; None without one, or when it is Unknown."""
    if condition is None or condition.get("status") not in {"True", "False"}:
        return None
    if condition["status"] == "True":
        return ClaimOutcome.ALLOCATED
    outcome = _OUTCOMES.get(str(condition.get("reason")), ClaimOutcome.ERROR)
    return ClaimOutcome.ERROR if outcome is ClaimOutcome.ALLOCATED else outcome


# --- writing --------------------------------------------------------------------------------------


def allocated(ips: Sequence[str]) -> str:
    """`IP 192.168.1.5 allocated successfully`, the text of the proposal."""
    return f"{_format_ips(ips)} allocated successfully"


def ip_conflict(ips: Sequence[str]) -> str:
    """`Requested IP 192.168.1.5 is already assigned in the network`, the text of the proposal."""
    verb = "is" if len(ips) == 1 else "are"
    return f"Requested {_format_ips(ips)} {verb} already assigned in the network"


def mac_conflict(mac: str) -> str:
    return f"Requested MAC {mac} is already assigned in the network"


def mac_of_gateway(mac: str, gateway: str) -> str:
    return f"Requested MAC {mac} is that of the network's gateway {gateway}"


def exhausted(family: int) -> str:
    return f"The network has no free IPv{family} address"


def outside(ips: Sequence[str], subnets: Iterable[object]) -> str:
    verb = "is" if len(ips) == 1 else "are"
    inside = ", ".join(str(subnet) for subnet in subnets) or "none"
    return f"Requested {_format_ips(ips)} {verb} outside the subnets of the network ({inside})"


def _format_ips(ips: Sequence[str]) -> str:
    shown = ", ".join(str(ip_interface(text).ip) for text in ips)
    return f"IP {shown}" if len(ips) == 1 else f"IPs {shown}"


def condition(outcome: ClaimOutcome, message: str, words: Dialect) -> Condition:
    """Our condition, in the words of a dialect and without the time of its transition."""
    return {
        "type": words.condition,
        "status": "True" if outcome is ClaimOutcome.ALLOCATED else "False",
        "reason": words.reasons[outcome],
        "message": message[:_LONGEST_MESSAGE],
    }


def merge_conditions(
    before: Iterable[Condition], ours: Condition, *, now: datetime
) -> list[Condition]:
    """All conditions of a claim, with ours as it is now.

    The list is one value to server-side apply, so that other types are kept as they are; what the
    other dialect says goes. The time of the transition moves only when the status does.
    """
    other_conditions: list[Condition] = []
    moved = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for condition in before:
        if condition.get("type") not in TYPES:
            other_conditions.append(dict(condition))
        elif condition["type"] == ours["type"] and condition.get("status") == ours["status"]:
            moved = str(condition.get("lastTransitionTime") or moved)
    condition_fields = {key: ours[key] for key in ("type", "status", "reason", "message")}
    return [*other_conditions, condition_fields | {"lastTransitionTime": moved}]


def matches(condition: Condition | None, ours: Condition) -> bool:
    """Whether a condition says what ours says, whenever that began."""
    keys = ("type", "status", "reason", "message")
    return condition is not None and all(condition.get(key) == ours[key] for key in keys)


def render_status(
    ips: Sequence[str], owner_pod: str, conditions: Sequence[Condition], words: Dialect
) -> dict[str, Any]:
    """The status of a claim, as the CRD of this dialect has it."""
    status: dict[str, Any] = {"ips": list(ips)}
    if words.has_owner_pod and owner_pod:
        status["ownerPod"] = {"name": owner_pod} if words.pod_is_object else owner_pod
    if words.has_conditions and conditions:
        status["conditions"] = list(conditions)
    return status
