"""netbox-sources/: NetBox over its REST API, imports of it and mirrors; netbox-export/: CSV for NetBox's own import."""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pools import tasks
from pools.api import imports, lookups
from pools.core import errors, holders
from pools.models import NetBoxSource
from pools.platform.rest import fields, filters, generics, schema
from pools.platform.rest.serializers import Serializer
from pools.register.imports import exports, sources


class NetBoxSourceSerializer(Serializer):
    """A NetBox that is read; its token is written and never shown."""

    id = fields.IntegerField(read_only=True)
    name = fields.TextField(holders.parse_label)
    url = fields.TextField(sources.parse_url)
    token = fields.TextField(sources.parse_token, write_only=True)
    ca = fields.TextField(sources.parse_ca, required=False)
    cluster = fields.TextField(lookups.cluster_by_name)
    mapping = imports.MappingField(required=False)
    holder_kind = fields.TextField(holders.parse_label, required=False)
    cooldown_seconds = fields.ParsedField(
        imports.parse_cooldown, required=False, schema={"type": "integer"}
    )
    every_minutes = fields.ParsedField(
        sources.parse_minutes, required=False, allow_null=True, schema={"type": "integer"}
    )
    next_run_at = fields.TimeField(read_only=True, allow_null=True)
    created_at = fields.TimeField(read_only=True)


class NetBoxImportSerializer(Serializer):
    """An import of a NetBox: a draft, or with `mirror` a run of the mirror."""

    empty_allowed = True

    mirror = imports.FormFlagField(required=False)


class NetBoxSources(generics.ModelViewSet):
    """NetBox sources."""

    queryset = NetBoxSource.objects.select_related("cluster")
    serializer_class = NetBoxSourceSerializer
    lookup_url_kwarg = "netbox_source_id"
    absent = "There is no such NetBox source."
    row_text = "A NetBox source."
    orderings = {"name": ("name",)}
    ordering = "name"

    @schema.example(
        {
            "name": "dc",
            "url": "https://netbox.example.org",
            "token": "0123456789",
            "cluster": "prod",
            "every_minutes": 60,
        }
    )
    def perform_create(self, values: dict[str, Any]) -> NetBoxSource:
        """Create a NetBox source; with `every_minutes` it is a mirror, one way."""
        token = values.pop("token")
        return sources.create(values, token=token, author=self.author())

    @schema.example({"every_minutes": 60})
    def perform_update(self, row: NetBoxSource, values: dict[str, Any]) -> NetBoxSource:
        """Change a NetBox source; another URL needs the token again."""
        token = values.pop("token", None)
        return sources.change(row.pk, values, token=token, author=self.author())

    def perform_destroy(self, row: NetBoxSource) -> None:
        """Delete a NetBox source; what it brought stays in the register."""
        sources.delete(row.pk, author=self.author())

    @extend_schema(
        request=NetBoxImportSerializer, responses={202: imports.RegisterImportSerializer}
    )
    @generics.post_action("pools.add_registerimport", url_path="imports", url_name="netbox-imports")
    def start_import(self, request: Request, netbox_source_id: int) -> Response:
        """Read a NetBox by a worker, as a draft or as a run of the mirror."""
        pk = self.get_object().pk
        values = self.read(request, NetBoxImportSerializer)
        queued = sources.start(
            pk, mirror=values.get("mirror", False), author=self.author(), user=request.user
        )
        tasks.notify_import_worker(queued.pk)
        shown = self.represent(queued, imports.RegisterImportSerializer)
        return Response(shown, status=202)


class NetBoxExport(generics.GenericView):
    """CSV of one kind of object for NetBox's import form."""

    needs = {"GET": ("pools.view_pool", "pools.view_block", "pools.view_container")}

    @extend_schema(responses={(200, "text/csv"): OpenApiTypes.BINARY})
    @filters.parameters(cluster=filters.Filter(lookups.cluster, help_text="Its name or id."))
    def get(self, request: Request, kind: str) -> generics.Answer:
        """Aggregates, prefixes, IP ranges or IP addresses as NetBox's CSV import takes them."""
        cluster = self.query_values()["cluster"]
        if kind not in exports.COLUMNS:
            raise errors.NotFound(f"There are {', '.join(exports.COLUMNS)}.")
        headers = {"Content-Disposition": f'attachment; filename="netbox-{kind}.csv"'}
        content = exports.write(kind, cluster.pk if cluster else None)
        return HttpResponse(content, content_type="text/csv; charset=utf-8", headers=headers)
