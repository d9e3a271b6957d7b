"""Endpoints of workloads: registered and running addresses compared; adoption of running ones."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.fields import empty
from rest_framework.request import Request
from rest_framework.response import Response

from claims.api import scoped
from claims.models import Network, WorkloadComparison
from claims.models.workloads import ComparisonResult, WorkloadKind
from claims.workloads import adoption, results
from pools.core import errors, object_reader
from pools.platform.rest import fields, filters, generics
from pools.platform.rest.serializers import ReasonSerializer, Representation, Serializer


class WorkloadSerializer(Representation):
    """An interface of a running VM or pod."""

    id = fields.IntegerField()
    kind = fields.ChoiceField([WorkloadKind.VMI.value, WorkloadKind.POD.value])
    namespace = fields.TextField()
    name = fields.TextField()
    interface = fields.TextField()
    node = fields.TextField()
    phase = fields.TextField()
    pods = fields.ListField(child=fields.TextField())
    since = fields.TimeField(allow_null=True)


class RegisteredAddressesSerializer(Representation):
    """The entry of an IPPool, or the claim, that a workload is compared with."""

    source = fields.ChoiceField(("ippool", "ipamclaim"))
    id = fields.IntegerField()
    name = fields.TextField()
    mac = fields.TextField(allow_null=True)
    ips = fields.ListField(child=fields.TextField())
    vm = fields.TextField()
    namespace = fields.TextField()


class InterfaceAddressesSerializer(Representation):
    """The MAC address and the addresses of one interface."""

    mac = fields.TextField(allow_null=True)
    ips = fields.ListField(child=fields.TextField())


class WorkloadComparisonSerializer(Representation):
    """An entry or claim beside a running workload; a part is null if it does not exist."""

    result = fields.ChoiceField(ComparisonResult.values)
    workload = WorkloadSerializer(allow_null=True)
    registered = RegisteredAddressesSerializer(allow_null=True)
    running = InterfaceAddressesSerializer(source="workload", allow_null=True)
    reasons = fields.ListField(child=ReasonSerializer())


class WorkloadCountsSerializer(Representation):
    """The number of workloads by result."""

    matching = fields.IntegerField()
    missing = fields.IntegerField()
    different = fields.IntegerField()
    unknown = fields.IntegerField()


class StepCountField(fields.IntegerField):
    """The number of steps whose action is the name of the field."""

    def __init__(self, **options: Any) -> None:
        super().__init__(source="*", **options)

    def to_representation(self, value: Any) -> int:
        plan: adoption.Plan = value
        return plan.count(self.field_name or "")


class AdoptionStepSerializer(Representation):
    """What an adoption does for one workload; `code` and `message` are the reason of a refusal."""

    workload = fields.IntegerField(source="workload.pk")
    name = fields.TextField(source="workload")
    action = fields.ChoiceField(adoption.ACTIONS)
    entry = fields.IntegerField(source="entry.pk", allow_null=True)
    before = InterfaceAddressesSerializer(source="entry", allow_null=True)
    after = InterfaceAddressesSerializer(source="spec", allow_null=True)
    code = fields.TextField()
    message = fields.TextField()


class AdoptionPlanSerializer(Representation):
    """The steps of an adoption; `makes_ippool` if the network gets its IPPool by it."""

    ippool = fields.TextField()
    makes_ippool = fields.FlagField()
    create = StepCountField()
    change = StepCountField()
    unchanged = StepCountField()
    refuse = StepCountField()
    steps = fields.ListField(child=AdoptionStepSerializer())


class WorkloadIdsField(fields.ListField):
    """The ids of the workloads of one call."""

    def run_validation(self, data: Any = empty) -> Any:
        if not (isinstance(data, list) and 1 <= len(data) <= adoption.MOST):
            message = f"a list of 1 to {adoption.MOST} ids is expected"
            raise errors.InvalidInput.for_field("", "wrong_type", message, data)
        return super().run_validation(data)


class AdoptionSerializer(Serializer):
    """Either `workloads` by their ids, or all workloads with a `result`."""

    example = {"result": "unknown", "reason": "They ran before the register"}

    workloads = WorkloadIdsField(
        child=fields.IntegerField(min_value=1, max_value=(1 << 63) - 1), required=False
    )
    result = fields.ChoiceField(adoption.ADOPTABLE, required=False)
    reason = fields.ReasonField()

    def report_names(self, data: Mapping[str, Any], report: object_reader.ProblemReport) -> None:
        if (data.get("workloads") is None) is (data.get("result") is None):
            report.add("workloads", "one_of", "give either workloads or result")
        super().report_names(data, report)


class WorkloadFilter(filters.FilterSet):
    result = filters.choice(*ComparisonResult.values)


class Workloads(generics.ListViewSet):
    """The registered and running workloads of a network."""

    needs = {"GET": ("claims.view_workload",)}
    queryset = WorkloadComparison.objects.all()
    serializer_class = WorkloadComparisonSerializer
    filterset_class = WorkloadFilter
    orderings = {"id": results.ORDER}

    def get_queryset(self) -> QuerySet[Any]:
        network = scoped.get_row(self.request, Network, self.kwargs["network_id"])
        rows = results.visible_rows(scoped.request_scope(self.request))
        return rows.filter(network_id=network.pk)

    def paginate_queryset(self, queryset: Any) -> Any:
        rows = [vars(row) for row in super().paginate_queryset(queryset)]
        return results.render_rows(rows, scoped.request_scope(self.request))

    @extend_schema(responses=WorkloadCountsSerializer)
    @action(detail=False, url_name="network-workload-counts")
    def counts(self, request: Request, network_id: int) -> Response:
        """The number of workloads of a network by result."""
        network = scoped.get_row(request, Network, network_id)
        self.parameters.raise_problems()
        counts = results.result_counts(network.pk, scoped.request_scope(request))
        return Response(WorkloadCountsSerializer(counts).data)

    @extend_schema(request=AdoptionSerializer, responses=AdoptionPlanSerializer)
    @filters.parameters(dry_run=filters.flag(help_text="Return the plan and change nothing."))
    @generics.post_action(
        "claims.view_workload", "claims.add_entry", "claims.change_entry",
        detail=False, idempotent=True, url_name="network-workloads-adopt",
    )  # fmt: skip
    def adopt(self, request: Request, network_id: int) -> Response:
        """Adopt running workloads as entries of the network's IPPool."""
        networks = Network.objects.select_related("cluster")
        network = scoped.get_row(request, networks, network_id)
        dry_run = self.query_values()["dry_run"]
        values = self.read(request, AdoptionSerializer)
        author = self.author(values["reason"])
        criteria = {
            "ids": values.get("workloads"),
            "result": values.get("result", ""),
            "scope": scoped.request_scope(request),
        }
        if dry_run:
            return Response(AdoptionPlanSerializer(adoption.plan(network, **criteria)).data)
        if not hasattr(network, "ippool"):
            generics.require(request, "claims.add_ippool")
        return self.once(
            request,
            lambda: AdoptionPlanSerializer(adoption.adopt(network, author=author, **criteria)).data,
        )
