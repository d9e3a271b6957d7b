"""Lines of the needs-attention list, and those that clusters cause."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Min
from django.http import HttpRequest
from django.urls import reverse

from pools.clusters import connections, fleet
from pools.core.kubernetes.connection_status import ConnectionState
from pools.models import Cluster, Drift, Finding
from pools.platform import database
from pools.platform.admin import display
from pools.platform.outbound.faults import FieldConflict

SHOWN = 5  # clusters of one trouble that get a line of their own
EXPIRES_SOON = timedelta(days=14)


@dataclass(frozen=True)
class Attention:
    """One line of the list: `level` is bad, warn or info."""

    level: str
    text: str
    detail: str
    url: str
    action: str
    action_url: str
    since: datetime | None = None
    needs: str = ""  # the permission for the action, if its page asks for one


Source = Callable[[HttpRequest], Iterable[Attention]]
SOURCES: list[Source] = []  # filled by pools.extension


def cluster_lines() -> Iterator[Attention]:
    """Clusters whose picture is not current, credentials that end, findings, differences."""
    now = database.now()
    rows = fleet.connected()
    by_state: dict[ConnectionState, list[Attention]] = {}
    for row in rows:
        status = connections.status(row, now)
        if status.state.level in {"bad", "warn"}:
            by_state.setdefault(status.state, []).append(
                _cluster_line(
                    row.cluster,
                    status.state.level,
                    f"Cluster {row.cluster}: {status.state.word}",
                    status.sentence,
                    row.succeeded_at,
                )
            )
    for state, lines in sorted(by_state.items(), key=lambda item: item[0].level):
        yield from lines[:SHOWN]
        if len(lines) > SHOWN:
            url = reverse("admin:pools_cluster_changelist", query={"state": state.key})
            text = f"{len(lines)} clusters: {state.word}"
            yield Attention(state.level, text, "", url, "All", url)
    for row in rows:
        if row.expires_at is not None and row.expires_at - now < EXPIRES_SOON:
            over = row.expires_at <= now
            words = "have ended" if over else f"end {display.relative((now - row.expires_at).total_seconds())}"  # fmt: skip
            text = f"The credentials for cluster {row.cluster} {words}"
            yield _cluster_line(row.cluster, "bad" if over else "warn", text, "", None)
    yield from _finding_lines()
    yield from _drift_lines()


def _cluster_line(
    cluster: Cluster, level: str, text: str, detail: str, since: datetime | None
) -> Attention:
    url = f"{display.url_of(cluster)}#connection"
    return Attention(level, text, detail, url, "Connection", url, since)


def _finding_lines() -> Iterator[Attention]:
    rows = Finding.objects.values("cluster_id", "cluster__name", "severity").order_by()
    counted = rows.annotate(count=Count("pk"), since=Min("since"))
    for row in counted.order_by("severity", "cluster__name")[: 2 * SHOWN]:
        url = reverse(
            "admin:pools_finding_changelist",
            query={"cluster": row["cluster_id"], "severity": row["severity"]},
        )
        level = "bad" if row["severity"] == "error" else "warn"
        text = f"{_count(row['count'], 'finding')} in cluster {row['cluster__name']}"
        yield Attention(level, text, f"Severity {row['severity']}.", url, "Findings", url, row["since"])  # fmt: skip


def _drift_lines() -> Iterator[Attention]:
    yield from _conflict_lines()
    rows_without_conflict = Drift.objects.filter(ignored_at=None).exclude(
        conflict_code=FieldConflict.code
    )
    rows = rows_without_conflict.values("cluster_id", "cluster__name").order_by()
    counted = rows.annotate(count=Count("pk"), since=Min("since"))
    for row in counted.order_by("cluster__name")[:SHOWN]:
        url = reverse("admin:pools_drift_changelist", query={"cluster": row["cluster_id"]})
        fields = "field differs" if row["count"] == 1 else "fields differ"
        text = f"{display.digits(row['count'])} {fields} between the register and cluster {row['cluster__name']}"
        yield Attention("warn", text, "", url, "Drift and plan", url, row["since"])


def _conflict_lines() -> Iterator[Attention]:
    """Changes that wait because another manager owns the field, object by object."""
    rows = Drift.objects.filter(ignored_at=None, conflict_code=FieldConflict.code)
    for row in rows.select_related("cluster").order_by("since", "pk")[:SHOWN]:
        owners = ", ".join(map(str, row.managers)) or "another manager"
        text = f"{row.path} of {row.kind} {row.name} in cluster {row.cluster} waits for its owner"
        detail = f"{owners} owns the field: change it there, or take it over."
        url = display.url_of(row)
        take = reverse("admin:pools_drift_takeover", args=[row.pk])
        yield Attention("warn", text, detail, url, "Take over", take, row.since)
    more = rows.count() - SHOWN
    if more > 0:
        url = reverse("admin:pools_drift_changelist", query={"state": "conflict"})
        text = f"{_count(more, 'further field')} wait for their owners"
        yield Attention("warn", text, "", url, "Drift and plan", url)


def _count(number: int, word: str) -> str:
    return f"{display.digits(number)} {word}{'' if number == 1 else 's'}"
