"""Events of launcher pods (core/v1) with the reason why a VM does not get its address."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from pools.core.kubernetes.resources import Manifest

COMPONENT = "cadastre"
_LONGEST_NAME = 253
_LONGEST_MESSAGE = 1024
# Outcomes of mutate-pods in which no request was refused.
NOTHING_REFUSED = (
    "patched", "completed", "unchanged", "running", "not_a_vm", "not_asked", "no_entry", "no_interface",
    "no_primary_network", "left_to_ipam_extensions",
)  # fmt: skip


@dataclass(frozen=True)
class Refusal:
    """The reason why a pod does not get an address, since `moment` (RFC 3339 with seconds, UTC)."""

    namespace: str
    pod: str
    pod_uid: str
    reason: str
    message: str
    moment: str

    @property
    def name(self) -> str:
        """The event's name, unique for pod, reason and message."""
        identity = "\0".join((self.pod_uid, self.reason, self.message)).encode()
        digest = hashlib.sha256(identity).hexdigest()[:16]
        return f"{self.pod[: _LONGEST_NAME - 17].rstrip('.-')}.{digest}"


def reason(code: str) -> str:
    """Return a code in the spelling of event reasons: `outside_subnet` becomes `OutsideSubnet`."""
    return "".join(part.capitalize() for part in code.split("_"))


def render(refusal: Refusal, before: Manifest | None) -> Manifest | None:
    """Return the event, counted on from `before`; None if `before` already reports the refusal."""
    previous = before or {}
    last = str(previous.get("lastTimestamp") or "")
    if before is not None and last >= refusal.moment:
        return None
    count = previous.get("count")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": refusal.name, "namespace": refusal.namespace},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": refusal.namespace,
            "name": refusal.pod,
            "uid": refusal.pod_uid,
        },
        "type": "Warning",
        "reason": refusal.reason,
        "message": refusal.message[:_LONGEST_MESSAGE],
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": COMPONENT,
        "firstTimestamp": previous.get("firstTimestamp") or refusal.moment,
        "lastTimestamp": refusal.moment,
        "count": (count if isinstance(count, int) else 0) + 1,
    }
