"""A cluster of the register with its API server: full syncs, events of a watch, and what the register made of them."""

from collections.abc import Callable
from typing import Any

from pools.clusters.client.api_client import ClusterClient
from pools.models import Cluster, Connection, Drift, Finding, Now, ObservedObject, SyncRun, Trigger
from pools.models.clusters import ManagedResource, Mode
from tests import factories
from tests.kube import gateways
from tests.kube.api import Cluster as Server
from tests.reconcile import small

Open = Callable[[Connection], ClusterClient]


class RegisteredCluster:
    """Subclasses say which handlers sync it, and what is in the cluster and in the register."""

    def __init__(self, server: Server, cluster: Cluster | None = None, **fields: Any) -> None:
        self.server = server
        self.cluster = cluster or factories.cluster()
        self.connection = Connection.objects.create(
            cluster=self.cluster, server=server.url, due_at=Now(), **fields
        )

    def manage(self, *managed_resources: ManagedResource) -> None:
        """From now on these managed resources; none: observed."""
        mode = Mode.MANAGED if managed_resources else Mode.OBSERVED
        Connection.objects.filter(pk=self.connection.pk).update(
            mode=mode, managed_resources=list(managed_resources)
        )

    def sync(
        self, *handlers: Any, trigger: Trigger = Trigger.SCHEDULE, open_client: Open | None = None
    ) -> SyncRun:
        """A full sync, as a worker makes it."""
        return small.reconcile(
            self.connection, *handlers, trigger=trigger, open_client=open_client or self._open
        )

    def ingest(self, kind: str, handlers: Any, *events: tuple[str, Any], **options: Any) -> SyncRun:
        """What a watch reported since the last list."""
        return small.ingest(
            self.connection, kind, handlers, *events, open_client=self._open, **options
        )

    def _open(self, _: Connection) -> ClusterClient:
        return gateways.to(self.server)

    def findings(self) -> list[tuple[str, str]]:
        """Code and subject of each."""
        rows = Finding.objects.filter(cluster=self.cluster).order_by("code", "subject")
        return list(rows.values_list("code", "subject"))

    def subjects_by_code(self) -> dict[str, list[str]]:
        """The subjects of the findings of each code."""
        result: dict[str, list[str]] = {}
        for code, subject in self.findings():
            result.setdefault(code, []).append(subject)
        return result

    def problems(self) -> dict[str, str]:
        """The code of each object that could not be taken in, by name."""
        rows = ObservedObject.objects.filter(cluster=self.cluster).exclude(problem_code="")
        return dict(rows.values_list("name", "problem_code"))

    def drift(self) -> list[tuple[str, str]]:
        """Name and path of each difference."""
        rows = Drift.objects.filter(cluster=self.cluster).order_by("name", "path")
        return list(rows.values_list("name", "path"))
