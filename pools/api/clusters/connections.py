"""clusters/{}/connection/: the connection of a cluster and its managed resources.

No response contains the kubeconfig.
"""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api.clusters import clusters
from pools.clusters import connection_test, connections, fleet
from pools.clusters.reconcile import registry
from pools.core import errors
from pools.core.kubernetes.connection_status import ConnectionState
from pools.models import Connection, ManagedResource, Mode, SyncRun
from pools.platform.rest import fields, generics, parsing, schema, token_scopes
from pools.platform.rest.serializers import ReasonSerializer, Representation, Serializer

_LATEST = 10  # sync runs in a response


def _parse_text(value: object, field: str) -> str:
    """Return a text. Raises InvalidInput without the value, which may be a secret."""
    if not isinstance(value, str):
        raise errors.InvalidInput.for_field(field, "wrong_type", "must be a text")
    return value


def _mode_field(**options: Any) -> fields.TextField:
    schema = {"type": "string", "enum": Mode.values}
    return fields.TextField(_parse_text, schema=schema, required=False, **options)


def _managed_resources_field() -> fields.ListField:
    schema = {"type": "string", "enum": ManagedResource.values}
    return fields.ListField(child=fields.TextField(_parse_text, schema=schema), required=False)


class ResourceWritersSerializer(Representation):
    """Who writes what a managed resource is about; `note` is the evidence, or what is not known."""

    managed_resource = fields.ChoiceField(ManagedResource.values)
    writers = fields.ListField(child=fields.TextField())
    note = fields.TextField()


class ConnectionSerializer(Representation):
    """The connection of a cluster, its status, and its numbers of objects, problems and findings."""

    cluster = fields.TextField(source="connection.cluster.name")
    cluster_id = fields.IntegerField(source="connection.cluster_id")
    server = fields.TextField(source="connection.server")
    in_cluster = fields.FlagField(source="connection.in_cluster")
    mode = fields.ChoiceField(Mode.values, source="connection.mode")
    managed_resources = fields.ListField(
        child=fields.ChoiceField(ManagedResource.values), source="connection.managed_resources"
    )
    writers = fields.ListField(child=ResourceWritersSerializer())
    paused = fields.FlagField(source="connection.paused")
    state = fields.ChoiceField([state.key for state in ConnectionState], source="status.state.key")
    message = fields.TextField(source="status.sentence")
    identity = fields.TextField(source="connection.identity")
    version = fields.TextField(source="connection.version")
    served = fields.StringMapField(allow_null=True)
    shows = fields.TextField()
    expires_at = fields.TimeField(source="connection.expires_at", allow_null=True)
    succeeded_at = fields.TimeField(source="connection.succeeded_at", allow_null=True)
    tried_at = fields.TimeField(source="connection.tried_at", allow_null=True)
    due_at = fields.TimeField(source="connection.due_at")
    failures = fields.IntegerField(source="connection.failures")
    failed_objects = fields.IntegerField(source="connection.failed_objects")
    error = ReasonSerializer(allow_null=True)
    objects = fields.IntegerField()
    problems = fields.IntegerField()
    findings = fields.IntegerField()
    drift = fields.IntegerField()


class StoredConnectionSerializer(ConnectionSerializer):
    """A connection, and warnings about its credentials."""

    warnings = fields.ListField(child=fields.TextField())


class ConnectionSourceSerializer(Serializer):
    """A kubeconfig, or `in_cluster` for the service account of this pod."""

    kubeconfig = fields.TextField(_parse_text, required=False, write_only=True)
    # The name of a property of serializers, which DRF's metaclass keeps.
    context = fields.TextField(_parse_text, required=False, default="")  # type: ignore[assignment]
    in_cluster = fields.FlagField(required=False, default=False)
    mode = _mode_field()
    managed_resources = _managed_resources_field()

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        self.fields["kubeconfig"].required = data.get("in_cluster") is not True
        return super().to_internal_value(data)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        in_cluster, context = attrs.pop("in_cluster"), attrs.pop("context")
        text = attrs.pop("kubeconfig", None)
        if in_cluster and text is not None:
            message = "either a kubeconfig or in_cluster"
            raise errors.InvalidInput.for_field("kubeconfig", "conflicting_fields", message)
        try:
            attrs["source"] = (
                connections.from_pod()
                if in_cluster
                else connections.from_kubeconfig(text or "", context=context)
            )
        except errors.InvalidInput as error:
            raise (error if in_cluster else error.under("kubeconfig")) from None
        return attrs


class ConnectionStoreSerializer(ConnectionSourceSerializer):
    """A connection to store; `offline` stores it without contact to the cluster.

    `confirm_other_writer`: switch on a managed resource although another controller writes it, too.
    """

    offline = fields.FlagField(required=False, default=False)
    confirm_other_writer = fields.FlagField(required=False, default=False)


class ConnectionChangeSerializer(Serializer):
    """`confirm_other_writer`: switch on a managed resource although another controller writes it, too."""

    example = {"paused": True}

    confirm_other_writer = fields.FlagField(required=False, default=False)
    mode = _mode_field()
    managed_resources = _managed_resources_field()
    paused = fields.FlagField(required=False)


class KindResultSerializer(Representation):
    """The versions of a kind that the cluster serves."""

    kind = fields.TextField()
    served = fields.ListField(child=fields.TextField())
    shape = fields.TextField()
    note = fields.TextField()


class RightResultSerializer(Representation):
    """A right, and whether the credentials have it."""

    right = fields.TextField()
    needed_for = fields.TextField(source="right.needed_for")
    granted = fields.FlagField()

    def to_representation(self, instance: Any) -> dict[str, Any]:
        right, granted = instance
        return super().to_representation({"right": right, "granted": granted})


class CredentialExpirySerializer(Representation):
    """When a token or a certificate expires; `days` are negative after that."""

    what = fields.TextField(source="credential")
    at = fields.TimeField(source="expires_at")
    days = fields.IntegerField()


class ConnectionTestSerializer(Representation):
    """The result of a connection test."""

    succeeded = fields.FlagField()
    server = fields.TextField()
    code = fields.TextField()
    message = fields.TextField()
    version = fields.TextField()
    identity = fields.TextField()
    doubts = fields.ListField(child=fields.TextField())
    kinds = fields.ListField(child=KindResultSerializer())
    rights = fields.ListField(child=RightResultSerializer())
    endings = fields.ListField(child=CredentialExpirySerializer())


class ReconcileSerializer(Representation):
    """When the next sync run is due, and the last ones."""

    due_at = fields.TimeField()
    runs = fields.ListField(child=clusters.RunSerializer())


class ConnectionView(generics.GenericView):
    needs = {
        "GET": ("pools.view_connection",),
        "PUT": ("pools.add_connection", "pools.change_connection"),
        "PATCH": ("pools.change_connection",),
        "DELETE": ("pools.delete_connection",),
    }
    problem_statuses = (502,)
    serializer_class = ConnectionSerializer

    def get(self, request: Request, cluster: str) -> Response:
        """The connection of a cluster and its status."""
        return self.respond(fleet.summary(_get_connection(cluster)))

    @extend_schema(
        request=ConnectionStoreSerializer,
        responses={200: StoredConnectionSerializer, 201: StoredConnectionSerializer},
    )
    @schema.example(
        {"kubeconfig": "apiVersion: v1\nkind: Config\n…", "context": "prod", "offline": True},
        "observed, not contacted now",
    )
    def put(self, request: Request, cluster: str) -> Response:
        """Connect a cluster, or replace its credentials."""
        cluster_row = clusters.get(cluster)
        values = self.read(request, ConnectionStoreSerializer)
        source, offline = values["source"], values["offline"]
        connection = (
            Connection.objects.filter(cluster=cluster_row).select_related("cluster").first()
        )
        terms = _terms(values, connection)
        author, confirmed = self.author(), values["confirm_other_writer"]
        if connection is None:
            row = connections.connect(
                cluster_row, source, terms, author=author, offline=offline, confirmed=confirmed
            )
        else:
            if not offline:
                connections.check_other_writers(
                    terms,
                    lambda: source.access,
                    before=connection.managed_resources,
                    confirmed=confirmed,
                )
            row = connections.replace(connection, source, author=author, offline=offline)
            row = connections.change(row, author=author, terms=terms, confirmed=True)
        document = self.represent(fleet.summary(row)) | {"warnings": list(source.warnings)}
        return Response(document, status=200 if connection else 201)

    @extend_schema(request=ConnectionChangeSerializer)
    def patch(self, request: Request, cluster: str) -> Response:
        """Change the mode and the managed resources, pause or resume."""
        row = _get_connection(cluster)
        values = self.read(request, ConnectionChangeSerializer, partial=True)
        terms, author = _terms(values, row), self.author()
        row = connections.change(
            row,
            author=author,
            terms=terms,
            paused=values.get("paused"),
            confirmed=values.get("confirm_other_writer", False),
        )
        return self.respond(fleet.summary(row))

    def delete(self, request: Request, cluster: str) -> Response:
        """Delete the credentials of a cluster; its blocks stay."""
        connections.disconnect(_get_connection(cluster), author=self.author())
        return Response(status=204)


class ConnectionTest(generics.GenericView):
    needs = {"POST": ("pools.reconcile",)}
    serializer_class = ConnectionTestSerializer

    @extend_schema(request=ConnectionSourceSerializer, responses=ConnectionTestSerializer)
    def post(self, request: Request, cluster: str) -> Response:
        """Test a connection; nothing is changed.

        Without a body, or with `{}`, the stored connection is tested.
        """
        if parsing.body(request).strip() in {b"", b"{}"}:
            connection = _get_connection(cluster)
            result = connection_test.test_connection(connection, registry.resources())
        else:
            generics.require(request, "pools.add_connection")
            clusters.get(cluster)
            values = self.read(request, ConnectionSourceSerializer)
            terms = _terms(values, None)
            result = connection_test.test_source(values["source"], terms, registry.resources())
        limits = token_scopes.limits_of(request.auth)
        if result.code == errors.SameCluster.code and limits and limits.is_confined:
            result.message = errors.SameCluster().message  # without the name of the other
        return self.respond(result)


class Reconcile(generics.GenericView):
    needs = {"POST": ("pools.reconcile",)}
    serializer_class = ReconcileSerializer

    @extend_schema(request=None, responses={202: ReconcileSerializer})
    def post(self, request: Request, cluster: str) -> Response:
        """Start a sync run of a cluster at once."""
        row = _get_connection(cluster)
        connections.make_due(row)
        row.refresh_from_db()
        runs = SyncRun.objects.filter(cluster_id=row.cluster_id).order_by("-id")[:_LATEST]
        return self.respond({"due_at": row.due_at, "runs": runs}, status=202)


def _get_connection(cluster: str) -> Connection:
    return connections.get_connection(clusters.get(cluster))


def _terms(values: dict[str, Any], connection: Connection | None) -> connections.Terms:
    """Return the mode and the managed resources of the body; a missing field keeps its value.

    The mode `observed` removes all managed resources.
    """
    mode = values.get("mode", connection.mode if connection else Mode.OBSERVED)
    present = connection.managed_resources if connection and mode != Mode.OBSERVED else []
    return connections.parse_terms(mode, values.get("managed_resources", present))
