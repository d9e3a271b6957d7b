"""Endpoints of migration waves: VMs that are migrated together, and their readiness."""

from typing import Any

from django.db.models import Count, QuerySet
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.fields import empty
from rest_framework.request import Request
from rest_framework.response import Response

from claims.access import namespaces
from claims.api import scoped
from claims.imports import drafts
from claims.models import Wave, WaveVM
from claims.waves import readiness, waves
from pools.core import errors
from pools.models.imports import RowStatus
from pools.platform.rest import fields, filters, generics
from pools.platform.rest.serializers import Representation, Serializer

_ALL = namespaces.EVERY_NAMESPACE
_VIEW = ("claims.view_wave", _ALL)
_CHANGE = ("claims.change_wave", _ALL)


class WaveSerializer(Serializer):
    """VMs of a cluster that are migrated together."""

    id = fields.IntegerField(read_only=True)
    cluster: Any = scoped.ClusterField(source="cluster.name")
    name = fields.TextField()
    planned_at = fields.TimeField(required=False, allow_null=True)
    note = fields.TextField(required=False)
    vms = fields.IntegerField(source="vm_count", read_only=True)
    created_at = fields.TimeField(read_only=True)


class WaveChangeSerializer(WaveSerializer):
    """A change of a wave; its cluster never changes."""

    cluster = None


class WaveVMSerializer(Representation):
    """A VM of a wave; `source_vm` is its name in the file of an import."""

    id = fields.IntegerField()
    namespace = fields.TextField()
    vm = fields.TextField()
    source_vm = fields.TextField()


class WaveVMNameSerializer(Serializer):
    """A VM by namespace and name."""

    namespace = fields.TextField(required=False, default="")
    vm = fields.TextField()

    def validate(self, attrs: dict[str, Any]) -> Any:
        return attrs["namespace"], attrs["vm"]


class _VMListField(fields.ListField):
    """VMs by name; wrong_type also for too many."""

    def run_validation(self, data: Any = empty) -> Any:
        if not (isinstance(data, list) and 0 < len(data) <= waves.MOST_VMS):
            message = f"a list of 1 to {waves.MOST_VMS} VMs is expected"
            raise errors.InvalidInput.for_field("", "wrong_type", message, data)
        return super().run_validation(data)


class WaveVMsSerializer(Serializer):
    """The VMs to add: `vms` by name, or those of an import, all to migrate or those of a `status`."""

    example = {"vms": [{"namespace": "shop", "vm": "web-9"}]}

    vms = _VMListField(
        child=WaveVMNameSerializer(), required=False, min_length=1, max_length=waves.MOST_VMS
    )
    status = fields.ChoiceField(RowStatus.values, required=False)

    def get_fields(self) -> dict[str, Any]:
        import_id = fields.IntegerField(min_value=1, source="import_id", required=False)
        declared = super().get_fields()  # `import` is a keyword of Python
        return {"vms": declared["vms"], "import": import_id, "status": declared["status"]}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        present = {name for name, value in data.items() if value is not None}
        if ("vms" in present) == ("import" in present) or {"vms", "status"} <= present:
            message = "name either vms, or an import with an optional status"
            raise errors.InvalidInput.for_field("vms", "required", message)
        return super().to_internal_value(data)


class WaveVMsAddedSerializer(Representation):
    """How many VMs were new, and how many the wave has."""

    added = fields.IntegerField()
    vms = fields.IntegerField()


class WaveReasonSerializer(Representation):
    """Why something is not ready, or a note about it."""

    code = fields.TextField()
    message = fields.TextField()

    def to_representation(self, instance: readiness.Reason) -> dict[str, Any]:
        code, message = instance
        return {"code": code, "message": message}


class _FreeField(fields.ParsedField):
    """The count of free addresses by family, as `ipv4` and `ipv6`."""

    def to_representation(self, value: dict[int, int]) -> dict[str, str]:
        return {f"ipv{family}": str(free) for family, free in value.items()}


class WaveNetworkSerializer(Representation):
    """A target network of a wave; `vms` is the number of VMs on it."""

    id = fields.IntegerField(source="network.pk")
    name = fields.TextField(source="network.name")
    fit = fields.FlagField()
    reasons = fields.ListField(child=WaveReasonSerializer())
    notes = fields.ListField(child=WaveReasonSerializer())
    free = _FreeField(schema={"type": "object", "additionalProperties": {"type": "string"}})
    vms = fields.IntegerField()


class WaveSettingSerializer(Representation):
    """A setting that the migration needs."""

    code = fields.TextField()
    where = fields.TextField()
    setting = fields.TextField()
    why = fields.TextField()


class WaveInterfaceSerializer(Representation):
    """The registration of a VM on one network."""

    network = fields.IntegerField(source="network_id")
    network_name = fields.TextField(source="network")
    source = fields.TextField()
    mac = fields.TextField(allow_null=True)
    ips = fields.ListField(child=fields.TextField())
    vm_status = fields.TextField()


class WaveMachineSerializer(Representation):
    """A VM of a wave, and why it is not ready."""

    id = fields.IntegerField()
    namespace = fields.TextField()
    vm = fields.TextField()
    source_vm = fields.TextField()
    status = fields.ChoiceField((readiness.READY, readiness.WARNING, readiness.NOT_READY))
    reasons = fields.ListField(child=WaveReasonSerializer())
    interfaces = fields.ListField(child=WaveInterfaceSerializer())


class WaveReadinessSerializer(Representation):
    """The readiness report of a wave; `counts` has its VMs by status."""

    wave = WaveSerializer()
    ready = fields.FlagField()
    counts = fields.ParsedField(
        schema={"type": "object", "additionalProperties": {"type": "integer"}}
    )
    networks = fields.ListField(child=WaveNetworkSerializer())
    settings = fields.ListField(child=WaveSettingSerializer())
    vms = fields.ListField(child=WaveMachineSerializer(), source="machines")


class Waves(generics.ModelViewSet):
    """Migration waves."""

    needs = {
        "GET": _VIEW,
        "POST": ("claims.add_wave", _ALL),
        "PATCH": _CHANGE,
        "DELETE": ("claims.delete_wave", _ALL),
    }
    queryset = Wave.objects.select_related("cluster")
    serializer_class = WaveSerializer
    change_serializer_class = WaveChangeSerializer
    filterset_class = scoped.ScopedFilterSet
    lookup_url_kwarg = "wave_id"
    row_text = "A wave."

    def load(self, rows: list[Any]) -> None:
        counts = WaveVM.objects.filter(wave__in=rows).values_list("wave").annotate(Count("pk"))
        count_by_wave = dict(counts.order_by())
        for wave in rows:
            wave.vm_count = count_by_wave.get(wave.pk, 0)

    def perform_create(self, values: dict[str, Any]) -> Wave:
        """Create a wave."""
        return waves.create(values.pop("cluster.name"), author=self.author(), **values)

    def perform_update(self, wave: Wave, values: dict[str, Any]) -> Wave:
        """Change the name, planned time or note of a wave."""
        return waves.change(wave.pk, values, author=self.author())

    def perform_destroy(self, wave: Wave) -> None:
        """Delete a wave; its VMs are kept."""
        waves.delete(wave.pk, author=self.author())

    @extend_schema(responses=WaveReadinessSerializer)
    @filters.parameters(
        format=filters.choice(
            "json", "csv", help_text="json (default), or csv with one line per interface."
        )
    )
    @action(detail=True, url_name="wave-readiness")
    def readiness(self, request: Request, wave_id: int) -> Any:
        """The readiness of a wave."""
        output_format = self.query_values()["format"]
        report = readiness.wave_readiness(waves.get(wave_id))
        if output_format == "csv":
            headers = {"Content-Disposition": f'attachment; filename="wave-{wave_id}.csv"'}
            text = readiness.as_csv(report)
            return HttpResponse(text, content_type="text/csv; charset=utf-8", headers=headers)
        self.load([report.wave])
        return Response(WaveReadinessSerializer(report).data)


class WaveVMs(generics.ListViewSet):
    """The VMs of a wave."""

    needs = {"GET": _VIEW, "POST": _CHANGE, "DELETE": _CHANGE}
    idempotent = ("POST",)
    queryset = WaveVM.objects.all()
    serializer_class = WaveVMSerializer
    lookup_url_kwarg = "vm_id"

    def get_queryset(self) -> QuerySet[WaveVM]:
        rows: QuerySet[WaveVM] = super().get_queryset()
        return rows.filter(wave=waves.get(self.kwargs["wave_id"]))

    @extend_schema(request=WaveVMsSerializer, responses={200: WaveVMsAddedSerializer})
    def create(self, request: Request, wave_id: int) -> Response:
        """Add VMs to a wave, by name or all of an import."""
        wave = waves.get(wave_id)
        values, author = self.read(request, WaveVMsSerializer), self.author()

        def add() -> dict[str, Any]:
            if "vms" in values:
                added = waves.add(wave.pk, values["vms"], author=author)
            else:
                criteria = {"statuses": [values["status"]]} if "status" in values else {}
                vm_import = _get_import(request, wave, values["import_id"])
                added = waves.add_import(wave.pk, vm_import, author=author, **criteria)
            return {"added": added, "vms": wave.vms.count()}

        return self.once(request, add)

    def perform_destroy(self, row: WaveVM) -> None:
        """Remove a VM from a wave."""
        waves.remove(row.wave_id, [row.pk], author=self.author())


def _get_import(request: Request, wave: Wave, import_id: int) -> Any:
    """Return an import of the wave's cluster that the user may see. Raises InvalidInput."""
    vm_import = drafts.IMPORTS.visible(request.user).filter(pk=import_id).first()
    if vm_import is None or vm_import.cluster_id != wave.cluster_id:
        message = f"the cluster {wave.cluster} has no such import"
        raise errors.InvalidInput.for_field("import", "unknown_import", message, import_id)
    return vm_import
