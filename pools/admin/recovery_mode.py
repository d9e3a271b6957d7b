"""The recovery-mode banner of all pages, and the first line of the overview."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.http import HttpRequest

from pools.clusters import recovery_mode

SHOWN = 5


@dataclass(frozen=True)
class Banner:
    """The banner. `clusters` are the first clusters that are not synced yet.

    None if the user may not view clusters; `more` counts the others.
    """

    since: datetime
    reason: str
    clusters: list[str] | None
    more: int = 0


def banner(request: HttpRequest | None) -> Banner | None:
    """Return the banner for this user; None outside recovery mode or without a login."""
    if request is None or not getattr(request, "user", None) or not request.user.is_authenticated:
        return None
    row = recovery_mode.current_recovery()
    if row is None:
        return None
    if not request.user.has_perm("pools.view_cluster"):
        return Banner(row.since, "", None)
    waiting = recovery_mode.clusters_to_list()
    return Banner(row.since, row.reason, waiting[:SHOWN], max(0, len(waiting) - SHOWN))
