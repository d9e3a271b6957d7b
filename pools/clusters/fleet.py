"""Summaries of the connected clusters for lists, pages, the API and commands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Model, Q

from pools.clusters import connections, served_kinds_text
from pools.core.block_fields import time as shown_time
from pools.core.kubernetes.connection_status import ConnectionStatus
from pools.models import Connection, Drift, Finding, ObservedObject
from pools.platform import database


@dataclass(frozen=True)
class ConnectionSummary:
    """One connected cluster: its status, and its numbers of objects, problems, findings, differences."""

    connection: Connection
    status: ConnectionStatus
    objects: int
    problems: int  # objects that are invalid or could not be ingested
    findings: int
    drift: int  # fields that differ and are not ignored

    @property
    def shows(self) -> str:
        """One line on the kinds that the cluster serves, and the data that is shown."""
        return served_kinds_text.describe(self.connection)

    def as_json(self) -> dict[str, Any]:
        """Return the summary for REST, without credentials."""
        row = self.connection
        error = {"code": row.error_code, "message": row.error} if row.error_code else None
        return {
            "cluster": row.cluster.name,
            "cluster_id": row.cluster_id,
            "server": row.server,
            "in_cluster": row.in_cluster,
            "mode": row.mode,
            "managed_resources": list(row.managed_resources),
            "paused": row.paused,
            "state": self.status.state.key,
            "message": self.status.sentence,
            "identity": row.identity,
            "version": row.version,
            "served": served_kinds_text.served_versions(row),
            "shows": self.shows,
            "expires_at": shown_time(row.expires_at),
            "succeeded_at": shown_time(row.succeeded_at),
            "tried_at": shown_time(row.tried_at),
            "due_at": shown_time(row.due_at),
            "failures": row.failures,
            "failed_objects": row.failed_objects,
            "error": error,
            "objects": self.objects,
            "problems": self.problems,
            "findings": self.findings,
            "drift": self.drift,
        }


def summaries(rows: Iterable[Connection], now: datetime | None = None) -> list[ConnectionSummary]:
    """Return summaries in the order of the rows, whose clusters must be loaded; four queries in total."""
    connection_rows = list(rows)
    ids = [row.cluster_id for row in connection_rows]
    now = now or database.now()
    objects = _counts(ObservedObject, ids, Q())
    problems = _counts(ObservedObject, ids, ~Q(problem_code=""))
    findings = _counts(Finding, ids, Q())
    drift = _counts(Drift, ids, Q(ignored_at=None))
    return [
        ConnectionSummary(
            row,
            connections.status(row, now),
            objects.get(row.cluster_id, 0),
            problems.get(row.cluster_id, 0),
            findings.get(row.cluster_id, 0),
            drift.get(row.cluster_id, 0),
        )
        for row in connection_rows
    ]


def summary(connection: Connection) -> ConnectionSummary:
    return summaries([connection])[0]


def list_connections() -> list[Connection]:
    """Return all connections by name of the cluster, without credentials."""
    rows = Connection.objects.select_related("cluster").defer("sealed")
    return list(rows.order_by("cluster__name"))


def _counts(model: type[Model], ids: list[int], condition: Q) -> dict[int, int]:
    rows = model._default_manager.filter(condition, cluster_id__in=ids).values_list("cluster_id")
    return dict(rows.annotate(count=Count("pk")).values_list("cluster_id", "count"))
