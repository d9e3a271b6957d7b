"""Summaries of the connected clusters for lists, pages, the API and commands.

Beside it: one line on the kinds that a cluster serves, and the data that is shown because of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Model, Q

from pools.clusters import connections, other_writers
from pools.core.kubernetes.connection_status import ConnectionStatus
from pools.models import Connection, Drift, Finding, ObservedObject
from pools.platform import database

_NOT_KNOWN = "The served kinds are known after the first full sync."
_NOTHING = (
    "The cluster serves none of the kinds that Cadastre reads. Only data of the register is shown."
)


def served_versions(connection: Connection) -> dict[str, str] | None:
    """Return the apiVersion of each kind that the cluster serves; None before the first full sync."""
    if connection.served is None:
        return None
    return {
        kind: read["api_version"] for kind, read in connection.served.items() if read["api_version"]
    }


def describe(connection: Connection) -> str:
    """Return the line for the pages of the cluster."""
    if connection.served is None:
        return _NOT_KNOWN
    shown: dict[str, list[str]] = {}
    absent: dict[str, None] = {}
    for kind, read in connection.served.items():
        if read["api_version"]:
            version = read["api_version"].rpartition("/")[2]
            shown.setdefault(read["shows"], []).append(f"{kind} {version}")
        else:
            absent[read["shows"]] = None
    if not shown:
        return _NOTHING
    listed = "; ".join(f"{subject} ({', '.join(kinds)})" for subject, kinds in shown.items())
    missing = ", ".join(subject for subject in absent if subject not in shown)
    return f"Shown: {listed}." + (f" Not served, so not shown: {missing}." if missing else "")


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
        return describe(self.connection)

    @property
    def served(self) -> dict[str, str] | None:
        """The apiVersion of each kind that the cluster serves; None before the first full sync."""
        return served_versions(self.connection)

    @property
    def writers(self) -> list[other_writers.ResourceWriters]:
        """Who writes each resource that Cadastre could write, as last observed."""
        return other_writers.writers_of(self.connection)

    @property
    def error(self) -> dict[str, str] | None:
        """The code and the message of the last error; None after a success."""
        row = self.connection
        return {"code": row.error_code, "message": row.error} if row.error_code else None


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
