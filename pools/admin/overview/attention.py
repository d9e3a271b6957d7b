"""Lines of the needs-attention list of the overview, and the lines about clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Min
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext, ngettext

from pools.clusters import connections, fleet
from pools.core.kubernetes.connection_status import ConnectionState
from pools.models import Cluster, Drift, Finding
from pools.platform import database
from pools.platform.admin import display
from pools.platform.outbound.faults import FieldConflict

SHOWN = 5  # clusters in one state that get a line each
EXPIRES_SOON = timedelta(days=14)


@dataclass(frozen=True)
class Attention:
    """One line of the list. `level` is bad, warn or info."""

    level: str
    text: str
    detail: str
    url: str
    action: str
    action_url: str
    since: datetime | None = None
    needs: str = ""  # the permission that the page of the action requires


Source = Callable[[HttpRequest], Iterable[Attention]]
SOURCES: list[Source] = []  # filled by pools.extension


def cluster_lines() -> Iterator[Attention]:
    """Yield stale or failing connections, expiring credentials, findings and drift of clusters."""
    now = database.now()
    rows = fleet.list_connections()
    by_state: dict[ConnectionState, list[Attention]] = {}
    for row in rows:
        status = connections.status(row, now)
        if status.state.level in {"bad", "warn"}:
            text = gettext("Cluster %(cluster)s: %(state)s") % {
                "cluster": row.cluster,
                "state": gettext(status.state.word),
            }
            by_state.setdefault(status.state, []).append(
                _cluster_line(
                    row.cluster,
                    status.state.level,
                    text,
                    display.connection_sentence(status),
                    row.succeeded_at,
                )
            )
    for state, lines in sorted(by_state.items(), key=lambda item: item[0].level):
        yield from lines[:SHOWN]
        if len(lines) > SHOWN:
            url = reverse("admin:pools_cluster_changelist", query={"state": state.key})
            text = ngettext(
                "%(number)s cluster: %(state)s", "%(number)s clusters: %(state)s", len(lines)
            ) % {"number": display.digits(len(lines)), "state": gettext(state.word)}
            yield Attention(state.level, text, "", url, gettext("All"), url)
    for row in rows:
        if row.expires_at is not None and row.expires_at - now < EXPIRES_SOON:
            is_expired = row.expires_at <= now
            text = (
                gettext("The credentials of cluster %(cluster)s have expired")
                if is_expired
                else gettext("The credentials of cluster %(cluster)s expire %(when)s")
            ) % {
                "cluster": row.cluster,
                "when": display.relative((now - row.expires_at).total_seconds()),
            }
            yield _cluster_line(row.cluster, "bad" if is_expired else "warn", text, "", None)
    yield from _finding_lines()
    yield from _drift_lines()


def _cluster_line(
    cluster: Cluster, level: str, text: str, detail: str, since: datetime | None
) -> Attention:
    url = f"{display.url_of(cluster)}#connection"
    return Attention(level, text, detail, url, gettext("Connection"), url, since)


def _finding_lines() -> Iterator[Attention]:
    rows = Finding.objects.values("cluster_id", "cluster__name", "severity").order_by()
    counted = rows.annotate(count=Count("pk"), since=Min("since"))
    for row in counted.order_by("severity", "cluster__name")[: 2 * SHOWN]:
        url = reverse(
            "admin:pools_finding_changelist",
            query={"cluster": row["cluster_id"], "severity": row["severity"]},
        )
        level = "bad" if row["severity"] == "error" else "warn"
        text = ngettext(
            "%(number)s finding in cluster %(cluster)s",
            "%(number)s findings in cluster %(cluster)s",
            row["count"],
        ) % {"number": display.digits(row["count"]), "cluster": row["cluster__name"]}
        detail = gettext("Severity: %(severity)s.") % {"severity": row["severity"]}
        yield Attention(level, text, detail, url, gettext("Findings"), url, row["since"])


def _drift_lines() -> Iterator[Attention]:
    yield from _conflict_lines()
    differences = Drift.objects.filter(ignored_at=None).exclude(conflict_code=FieldConflict.code)
    rows = differences.values("cluster_id", "cluster__name").order_by()
    counted = rows.annotate(count=Count("pk"), since=Min("since"))
    for row in counted.order_by("cluster__name")[:SHOWN]:
        url = reverse("admin:pools_drift_changelist", query={"cluster": row["cluster_id"]})
        text = ngettext(
            "%(number)s field differs between the register and cluster %(cluster)s",
            "%(number)s fields differ between the register and cluster %(cluster)s",
            row["count"],
        ) % {"number": display.digits(row["count"]), "cluster": row["cluster__name"]}
        yield Attention("warn", text, "", url, gettext("Drift"), url, row["since"])


def _conflict_lines() -> Iterator[Attention]:
    """Yield the differences that cannot be written because another manager owns the field."""
    rows = Drift.objects.filter(ignored_at=None, conflict_code=FieldConflict.code)
    for row in rows.select_related("cluster").order_by("since", "pk")[:SHOWN]:
        text = gettext(
            "%(field)s of %(kind)s %(name)s in cluster %(cluster)s is owned by another manager"
        ) % {"field": row.path, "kind": row.kind, "name": row.name, "cluster": row.cluster}
        detail = gettext("Owner: %(managers)s. Change the value there, or take the field over.") % {
            "managers": ", ".join(map(str, row.managers)) or gettext("unknown")
        }
        url = display.url_of(row)
        takeover_url = reverse("admin:pools_drift_takeover", args=[row.pk])
        yield Attention("warn", text, detail, url, gettext("Take over"), takeover_url, row.since)
    more = rows.count() - SHOWN
    if more > 0:
        url = reverse("admin:pools_drift_changelist", query={"state": "conflict"})
        text = ngettext(
            "%(number)s more field is owned by another manager",
            "%(number)s more fields are owned by other managers",
            more,
        ) % {"number": display.digits(more)}
        yield Attention("warn", text, "", url, gettext("Drift"), url)
