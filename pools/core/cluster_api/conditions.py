"""The Ready condition of IPAddressClaims and pools, in the forms of the contracts v1beta1 and v1beta2.

v1beta2 has conditions of Kubernetes' own form in `status.conditions`, and those of v1beta1 in
`status.deprecated.v1beta1`. v1beta1 has its own form there, with a severity, and from Cluster API 1.9 on
those of v1beta2 in `status.v1beta2`. A part that the cluster's definition does not have is not written.
"""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

READY = "Ready"
_LONGEST_MESSAGE = 2000


class Reason(enum.StrEnum):
    """The reasons of Ready; those of an IPAddressClaim are Cluster API's."""

    READY = "Ready"
    ALLOCATION_FAILED = "AllocationFailed"
    POOL_NOT_READY = "PoolNotReady"
    POOL_EXHAUSTED = "PoolExhausted"


@dataclass(frozen=True)
class Outcome:
    """The result for one object: the reason of its condition, with a message if it is not ready."""

    reason: Reason = Reason.READY
    message: str = ""

    @property
    def is_ready(self) -> bool:
        return self.reason is Reason.READY

    @property
    def status(self) -> str:
        return "True" if self.is_ready else "False"


@dataclass(frozen=True)
class StatusForm:
    """Which conditions the cluster's definition of a version has: paths below `status`."""

    standard: tuple[str, ...] | None  # of metav1.Condition
    severity: tuple[str, ...] | None  # of v1beta1, with a severity


_V1BETA2 = (("conditions",), ("deprecated", "v1beta1", "conditions"))
_V1BETA1 = (("v1beta2", "conditions"), ("conditions",))


def status_form(version: str, schema: Mapping[str, Any] | None) -> StatusForm:
    """Return the form of a version; without its schema, that of the first release of the version."""
    standard, severity = _V1BETA1 if version == "v1beta1" else _V1BETA2
    if schema is None:
        return StatusForm(None, severity) if version == "v1beta1" else StatusForm(standard, None)
    return StatusForm(
        standard if _has_field(schema, standard) else None,
        severity if _has_field(schema, severity) else None,
    )


def _has_field(schema: Mapping[str, Any], path: Iterable[str]) -> bool:
    part: Any = schema
    for name in ("status", *path):
        properties = part.get("properties") if isinstance(part, Mapping) else None
        if not isinstance(properties, Mapping) or name not in properties:
            return False
        part = properties[name]
    return True


def claim_status(
    outcome: Outcome, address: str, form: StatusForm, current: Mapping[str, Any], now: datetime
) -> dict[str, Any]:
    """Return the status of a claim: its address ("" for none), and its condition in the given form.

    `current` is the object as it is: its generation, and the transition time that stays while the
    condition keeps its status.
    """
    status: dict[str, Any] = {"addressRef": {"name": address}} if address else {}
    if form.standard:
        _set(status, form.standard, [standard_condition(outcome, form.standard, current, now)])
    if form.severity:
        _set(status, form.severity, [_severity_condition(outcome, form.severity, current, now)])
    return status


def standard_condition(
    outcome: Outcome, path: tuple[str, ...], current: Mapping[str, Any], now: datetime
) -> dict[str, Any]:
    """Return the condition Ready as a metav1.Condition; `path` is where the object has its conditions."""
    metadata = current.get("metadata") or {}
    condition: dict[str, Any] = {
        "type": READY,
        "status": outcome.status,
        "reason": outcome.reason.value,
        "message": outcome.message[:_LONGEST_MESSAGE],
        "lastTransitionTime": _transition_time(outcome, path, current, now),
    }
    if isinstance(metadata.get("generation"), int):
        condition["observedGeneration"] = metadata["generation"]
    return condition


def _severity_condition(
    outcome: Outcome, path: tuple[str, ...], current: Mapping[str, Any], now: datetime
) -> dict[str, Any]:
    condition = {
        "type": READY,
        "status": outcome.status,
        "lastTransitionTime": _transition_time(outcome, path, current, now),
    }
    if not outcome.is_ready:
        severity = "Error" if outcome.reason is Reason.ALLOCATION_FAILED else "Warning"
        condition |= {"severity": severity, "reason": outcome.reason.value}
        condition["message"] = outcome.message[:_LONGEST_MESSAGE] or outcome.reason.value
    return condition


def _transition_time(
    outcome: Outcome, path: tuple[str, ...], current: Mapping[str, Any], now: datetime
) -> str:
    """Return the time of the current condition while its status is the same, else `now`."""
    formatted_now = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = ready_condition(current, path)
    if condition and condition.get("status") == outcome.status:
        return str(condition.get("lastTransitionTime") or formatted_now)
    return formatted_now


def ready_condition(current: Mapping[str, Any], path: tuple[str, ...]) -> Mapping[str, Any] | None:
    """Return the condition Ready of an object, or None."""
    part: Any = current.get("status")
    for name in path:
        part = part.get(name) if isinstance(part, Mapping) else None
    conditions = part if isinstance(part, list) else []
    return next(
        (
            condition
            for condition in conditions
            if isinstance(condition, Mapping) and condition.get("type") == READY
        ),
        None,
    )


def current_reason(current: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return (reason, message) of a claim's Ready condition in any form, "Ready" if it is true; or None."""
    for path in (("conditions",), ("v1beta2", "conditions")):
        condition = ready_condition(current, path)
        if condition is not None:
            is_ready = condition.get("status") == "True"
            reason = Reason.READY.value if is_ready else str(condition.get("reason") or "")
            return reason, str(condition.get("message") or "")
    return None


def _set(status: dict[str, Any], path: tuple[str, ...], conditions: list[dict[str, Any]]) -> None:
    *parents, last = path
    for name in parents:
        status = status.setdefault(name, {})
    status[last] = conditions
