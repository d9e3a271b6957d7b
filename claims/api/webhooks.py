"""Endpoints of the address delivery settings of clusters, and of webhook decisions."""

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from claims.api import scoped
from claims.models import Decision, NetworkSettings
from claims.models.networks import Annotation
from claims.workloads import vm_lookup
from pools.api.clusters import clusters
from pools.platform.rest import fields, filters, generics, schema
from pools.platform.rest.serializers import Representation, Serializer
from pools.webhooks import configuration


class NetworkSettingsSerializer(Serializer):
    """How the VMs of a cluster receive their addresses; `webhooks` are the paths of its webhooks."""

    cluster = fields.TextField(source="cluster.name", read_only=True)
    annotation = fields.ChoiceField(Annotation.values)
    default_nad_namespace = fields.NamespaceField()
    default_nad_name = fields.NameField()
    webhooks = fields.ListField(child=fields.TextField(), read_only=True)


class DecisionSerializer(Representation):
    """What the admission webhook decided about an object, and why."""

    id = fields.IntegerField()
    cluster = fields.TextField(source="cluster.name")
    at = fields.TimeField()
    path = fields.TextField()
    operation = fields.TextField()
    namespace = fields.TextField()
    name = fields.TextField()
    vm = fields.TextField()
    network = fields.TextField()
    code = fields.TextField()
    message = fields.TextField()
    allowed = fields.FlagField()
    patch = fields.ListField(child=fields.ObjectField(), allow_null=True)
    milliseconds = fields.ParsedField(schema={"type": "number"})


class DecisionFilter(scoped.ScopedFilterSet):
    namespace = filters.Filter(help_text="Of the VM.")
    vm = filters.Filter(help_text="The name of the VM.")
    network = filters.Filter(help_text="The name of the logical network.")
    code = filters.Filter(help_text="Such as patched, no_entry.")
    path = filters.Filter(help_text="Such as mutate-pods, mutate-vms.")


class Settings(generics.GenericView):
    queryset = NetworkSettings.objects.all()
    serializer_class = NetworkSettingsSerializer

    def load(self, rows: list[Any]) -> None:
        for row in rows:
            hooks = configuration.HOOKS
            row.webhooks = [configuration.path(hook, row.cluster.name) for hook in hooks]

    def get(self, request: Request, cluster: str) -> Response:
        """The address delivery settings of a cluster."""
        return self.respond(vm_lookup.settings_of_cluster(clusters.get(cluster).pk))

    @schema.example({"annotation": "addresses"}, "with kubevirt/ipam-extensions")
    def patch(self, request: Request, cluster: str) -> Response:
        """Change the address delivery settings of a cluster."""
        changes = self.read(request, partial=True)
        row = vm_lookup.change_settings(clusters.get(cluster), changes, author=self.author())
        return self.respond(row)


class Decisions(scoped.ScopedView, generics.ListViewSet):
    """Decisions of the admission webhook, the newest first."""

    queryset = Decision.objects.prefetch_related("cluster")
    serializer_class = DecisionSerializer
    filterset_class = DecisionFilter
    limited_by = ("cluster",)
    ordering = "-id"
