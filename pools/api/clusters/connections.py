"""clusters/{}/connection/: the connection of a cluster and its managed resources.

No response contains the kubeconfig.
"""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pools.api.clusters import clusters, observed
from pools.api.schemas import clusters as cluster_schema
from pools.clusters import connection_test, connections, fleet
from pools.clusters.reconcile import registry
from pools.core import errors, object_reader
from pools.models import Connection, Run
from pools.models.connections import Mode
from pools.platform.rest import parsing, views

_SOURCE = ("kubeconfig", "context", "in_cluster", "mode", "managed_resources")
_LATEST = 10  # sync runs in a response


class ConnectionView(views.View):
    needs = {
        "GET": ("pools.view_connection",),
        "PUT": ("pools.add_connection", "pools.change_connection"),
        "PATCH": ("pools.change_connection",),
        "DELETE": ("pools.delete_connection",),
    }

    @extend_schema(**cluster_schema.CONNECTION)
    def get(self, request: Request, cluster: str) -> views.Answer:
        return views.answer(fleet.summary(_get_connection(cluster)).as_json())

    @extend_schema(**cluster_schema.CONNECTION_PUT)
    def put(self, request: Request, cluster: str) -> views.Answer:
        body = parsing.fields(request, *_SOURCE, "offline")
        offline = body.flag("offline")
        cluster_row = clusters.get(cluster)
        source = _source(body)
        connection = (
            Connection.objects.filter(cluster=cluster_row).select_related("cluster").first()
        )
        terms = _terms(body, connection)
        body.report.raise_any()
        author = views.author(request)
        if connection is None:
            row = connections.connect(cluster_row, source, terms, author=author, offline=offline)
        else:
            row = connections.replace(connection, source, author=author, offline=offline)
            row = connections.change(row, author=author, terms=terms)
        document = fleet.summary(row).as_json() | {"warnings": list(source.warnings)}
        return views.answer(document, status=200 if connection else 201)

    @extend_schema(**cluster_schema.CONNECTION_PATCH)
    def patch(self, request: Request, cluster: str) -> views.Answer:
        body = parsing.changes(request, "mode", "managed_resources", "paused")
        row = _get_connection(cluster)
        paused = body.flag("paused") if body.has("paused") else None
        terms = _terms(body, row)
        body.report.raise_any()
        row = connections.change(row, author=views.author(request), terms=terms, paused=paused)
        return views.answer(fleet.summary(row).as_json())

    @extend_schema(**cluster_schema.CONNECTION_DELETE)
    def delete(self, request: Request, cluster: str) -> views.Answer:
        connections.disconnect(_get_connection(cluster), author=views.author(request))
        return views.no_content()


class ConnectionTest(views.View):
    needs = {"POST": ("pools.reconcile",)}

    @extend_schema(**cluster_schema.CONNECTION_TEST)
    def post(self, request: Request, cluster: str) -> views.Answer:
        """Test the stored connection if the body is empty or `{}`, else the connection of the body."""
        if parsing.body(request).strip() in {b"", b"{}"}:
            examination = connection_test.test_connection(
                _get_connection(cluster), registry.resources()
            )
            return views.answer(examination.as_json())
        views.require(request, "pools.add_connection")
        clusters.get(cluster)
        body = parsing.fields(request, *_SOURCE)
        source, terms = _source(body), _terms(body, None)
        body.report.raise_any()
        return views.answer(
            connection_test.test_source(source, terms, registry.resources()).as_json()
        )


class Reconcile(views.View):
    needs = {"POST": ("pools.reconcile",)}

    @extend_schema(**cluster_schema.RECONCILE)
    def post(self, request: Request, cluster: str) -> views.Answer:
        row = _get_connection(cluster)
        connections.make_due(row)
        row.refresh_from_db()
        latest = Run.objects.filter(cluster_id=row.cluster_id).order_by("-id")[:_LATEST]
        summary = fleet.summary(row).as_json()
        runs = observed.RunSerializer(latest, many=True).data
        return views.answer({"due_at": summary["due_at"], "runs": runs}, status=202)


def _get_connection(cluster: str) -> Connection:
    return connections.get_connection(clusters.get(cluster))


def _source(body: object_reader.Fields) -> connections.ConnectionSource:
    """Return the source of the connection.

    Raises InvalidInput at once: without a source, no other problem matters.
    """
    if body.flag("in_cluster"):
        if body.has("kubeconfig"):
            message = "either a kubeconfig or in_cluster"
            raise errors.InvalidInput.for_field("kubeconfig", "conflicting_fields", message)
        return connections.from_pod()
    text = body.parse("kubeconfig", _text)
    context = body.parse("context", _text) if body.has("context") else ""
    body.report.raise_any()
    try:
        return connections.from_kubeconfig(text or "", context=context or "")
    except errors.InvalidInput as error:
        raise error.under("kubeconfig") from None


def _terms(body: object_reader.Fields, connection: Connection | None) -> connections.Terms:
    """Return the mode and the managed resources of the body; a missing field keeps its value.

    The mode `observed` removes all managed resources.
    """
    present_mode, present_resources = (
        (connection.mode, connection.managed_resources) if connection else (Mode.OBSERVED, [])
    )
    mode = body.parse("mode", _text) if body.has("mode") else present_mode
    managed_resources: list[str] = []
    for path, value in body.items("managed_resources"):
        with body.report.collecting():
            managed_resources.append(_text(value, path))
    if not body.has("managed_resources") and mode != Mode.OBSERVED:
        managed_resources = list(present_resources)
    with body.report.collecting():
        return connections.parse_terms(Mode.OBSERVED if mode is None else mode, managed_resources)
    return connections.Terms()


def _text(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise errors.InvalidInput.for_field(field, "wrong_type", "must be a text")
    return value
