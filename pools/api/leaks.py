"""leaks/ and references/: leaked blocks and their reclaim, and the reports of tooling on who still uses blocks."""

from typing import Any, TypeGuard

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api import lookups
from pools.api.blocks import BlockSerializer
from pools.core import block_fields, errors, holders, object_reader
from pools.models import Leak, ReferenceFeed
from pools.platform.rest import fields, filters, generics, parsing, schema
from pools.platform.rest.serializers import HolderSerializer, Representation, Serializer
from pools.register.leaks import detection, reclaim, references, reports
from pools.register.leaks.references import MOST_HOLDERS, ReferencedHolder

MOST = 1000  # blocks in one request
_STATES = ("leaked", "suspected")
_OUTCOMES = ("reclaimed", "repeated", "refused")


class LeakHolderSerializer(Representation):
    """The holder of the block when it was missed."""

    kind = fields.TextField(source="holder_kind")
    id = fields.TextField(source="holder_id")
    uid = fields.TextField(source="holder_uid")


class LeakSerializer(Representation):
    """A block whose holder nobody refers to any more; also the rows of `ipam leaks`."""

    id = fields.IntegerField()
    block_id = fields.IntegerField()
    cidr = fields.CIDRField(source="block.cidr")
    address = serializers.SerializerMethodField()
    pool = fields.TextField(source="block.pool.name")
    pool_id = fields.IntegerField(source="block.pool_id")
    cluster = fields.TextField(source="block.pool.cluster.name")
    holder = LeakHolderSerializer(source="*")
    org = fields.TextField()
    env = fields.TextField()
    state = fields.ChoiceField(_STATES)
    source = fields.TextField()
    why = serializers.SerializerMethodField()
    allocated_at = fields.TimeField()
    missed_at = fields.TimeField()
    observed_at = fields.TimeField()
    observations = fields.IntegerField()
    confirmed_at = fields.TimeField(allow_null=True)

    def get_address(self, leak: Leak) -> str | None:
        return block_fields.host_address(str(leak.block.cidr))

    def get_why(self, leak: Leak) -> str:
        return reports.describe_observation(leak)


class ReclaimSerializer(Serializer):
    """The holder of a leaked block as it was observed; what is left out is not compared."""

    holder = HolderSerializer()
    org = fields.IdentifierField(required=False)
    allocated_at = fields.TimeField(required=False)
    reason = fields.ReasonField()


class ReclaimTargetSerializer(Serializer):
    """A leaked block with its holder as it was observed; what is left out is not compared."""

    id = fields.IntegerField(min_value=1, max_value=(1 << 63) - 1)
    holder = HolderSerializer()
    org = fields.IdentifierField(required=False)
    allocated_at = fields.TimeField(required=False)

    def validate(self, attrs: dict[str, Any]) -> Any:
        return _target(attrs.pop("id"), attrs)


class ReclaimAllSerializer(Serializer):
    blocks = fields.ListField(child=ReclaimTargetSerializer(), min_length=1, max_length=MOST)
    reason = fields.ReasonField()


class ReclaimResultSerializer(Representation):
    """The result for one block; `code` and `message` say why it was refused."""

    id = fields.IntegerField(source="target.block_id")
    outcome = fields.ChoiceField(_OUTCOMES)
    block = BlockSerializer(allow_null=True)
    code = serializers.SerializerMethodField()
    message = serializers.SerializerMethodField()

    def get_code(self, result: reclaim.ReclaimResult) -> str:
        return result.error.code if result.error else ""

    def get_message(self, result: reclaim.ReclaimResult) -> str:
        return result.error.message if result.error else ""


class ReclaimResultListSerializer(Representation):
    results = fields.ListField(child=ReclaimResultSerializer())


class LeakFilter(filters.FilterSet):
    state = filters.choice(
        *_STATES,
        select=lambda rows, state: detection.suspected_leaks() if state == "suspected" else rows,
        help_text="Without it, leaked.",
    )
    cluster = filters.Filter(lookups.cluster, help_text="Name or id.")
    pool = filters.Filter(
        lookups.pools, field_name="block__pool", lookup_expr="in", help_text="Name or id."
    )
    holder_kind = filters.Filter()
    holder_id = filters.Filter()
    source = filters.Filter(help_text="The source of the observation, such as tooling or nodes.")
    org = filters.Filter(field_name="block__org")
    env = filters.Filter(field_name="block__env")
    since = filters.time(
        field_name="missed_at", lookup_expr="gte", help_text="Missed at or after this time."
    )
    until = filters.time(
        field_name="missed_at", lookup_expr="lt", help_text="Missed before this time."
    )


class Leaks(generics.ListViewSet):
    """Leaked blocks, which nobody refers to any more."""

    queryset = Leak.objects.all()
    serializer_class = LeakSerializer
    filterset_class = LeakFilter
    limited_by = ("cluster", "pool")

    def get_queryset(self) -> QuerySet[Leak]:
        return detection.confirmed_leaks()

    def load(self, rows: list[Any]) -> None:
        rows[:] = reports.load_blocks(rows)

    @extend_schema(request=ReclaimAllSerializer, responses=ReclaimResultListSerializer)
    @generics.post_action(
        "pools.reclaim", detail=False, idempotent=True, url_path="reclaim", url_name="reclaim-all"
    )
    def reclaim_all(self, request: Request) -> Response:
        """Reclaim leaked blocks, with a result for each of them."""
        values = self.read(request, ReclaimAllSerializer)
        author = self.author(values["reason"])

        def work() -> Any:
            results = reclaim.reclaim_all(values["blocks"], author=author)
            return ReclaimResultListSerializer({"results": list(results)}).data

        return self.once(request, work)


class Reclaim(generics.GenericView):
    needs = {"POST": ("pools.reclaim",)}
    idempotent = ("POST",)
    serializer_class = ReclaimSerializer

    @extend_schema(responses=BlockSerializer)
    def post(self, request: Request, block_id: int) -> Response:
        """Reclaim a leaked block; its holder is compared with that of the request."""
        values = self.read(request)
        author = self.author(values["reason"])
        target = _target(block_id, values)
        return self.once(request, lambda: reclaim.reclaim(target, author=author).block)


def _target(block_id: int, values: dict[str, Any]) -> reclaim.ReclaimTarget:
    holder = values["holder"]
    return reclaim.ReclaimTarget(
        block_id, holder["kind"], holder["id"], holder["uid"] or None,
        values.get("org"), values.get("allocated_at"),
    )  # fmt: skip


LARGEST = 32 * 1024 * 1024  # bytes: 200,000 holders with Kubernetes names and uids
_SEQUENCES = 1 << 63
_SHOWN = 100  # problems in one response


class ReferencedHolderSerializer(Serializer):
    """A holder that exists; without a uid or org, every holder of that id."""

    id = fields.IdentifierField()
    uid = fields.IdentifierField(required=False, default="")
    org = fields.IdentifierField(required=False, default="")

    def validate(self, attrs: dict[str, Any]) -> Any:
        return ReferencedHolder(**attrs)


def _parse_holders(values: object, _field: str) -> list[ReferencedHolder]:
    """Return the holders of a list; most of a hundred thousand are read without a serializer."""
    if not isinstance(values, list):
        raise errors.InvalidInput.for_field("", "wrong_type", "a list is expected", values)
    if len(values) > MOST_HOLDERS:
        message = f"at most {MOST_HOLDERS} holders in one report"
        raise errors.InvalidInput.for_field("", "out_of_range", message)
    report = object_reader.ProblemReport()
    parsed = []
    serializer = fields.ListField(child=ReferencedHolderSerializer()).child  # part of a list
    for index, value in enumerate(values):
        holder = _plain_holder(value)
        if holder is None:
            with report.collect(str(index)):
                holder = serializer.run_validation(value)
        if holder is not None:
            parsed.append(holder)
        elif len(report.problems) >= _SHOWN:
            break
    report.raise_any()
    return parsed


def _plain_holder(value: Any) -> ReferencedHolder | None:
    """Return a valid holder of printable ASCII, else None."""
    if not (isinstance(value, dict) and _HOLDER_FIELDS.issuperset(value)):
        return None
    name, uid, org = value.get("id"), value.get("uid", ""), value.get("org", "")
    if not (_is_plain(name) and ("uid" not in value or _is_plain(uid))):
        return None
    return ReferencedHolder(name, uid, org) if "org" not in value or _is_plain(org) else None


_HOLDER_FIELDS = frozenset(ReferencedHolder._fields)


def _is_plain(text: object) -> TypeGuard[str]:
    return (
        isinstance(text, str)
        and text.isascii()
        and text.isprintable()
        and 0 < len(text) <= holders.LONGEST_IDENTIFIER
        and text[0] != " " != text[-1]
    )


class ReferenceReportSerializer(Serializer):
    """A report: a complete one lists all holders, another one those that were added or removed."""

    cluster = fields.TextField(
        lambda value, field: lookups.cluster(parsing.text(value, field), field)
    )
    holder_kind = fields.NamespaceField(source="kind")
    sequence = fields.IntegerField(min_value=0, max_value=_SEQUENCES - 1)
    complete = fields.FlagField(
        error_messages={"required": "set whether the report lists all holders"}
    )
    holders = fields.ListField(_parse_holders, child=ReferencedHolderSerializer())
    removed = fields.ListField(
        _parse_holders, child=ReferencedHolderSerializer(), required=False, default=list
    )
    observed_at = fields.TimeField(required=False)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        report = object_reader.ProblemReport()
        values: dict[str, Any] = {}
        with report.collect():
            values = super().to_internal_value(data)
        if data.get("complete") is True and data.get("removed") is not None:
            message = "a complete report lists all holders and removes those that it does not list"
            report.add("removed", "conflicting_fields", message)
        report.raise_any()
        return values

    def validate(self, attrs: dict[str, Any]) -> Any:
        if repeated_holders := {*attrs["holders"]} & {*attrs["removed"]}:
            message = f"{min(repeated_holders).id} is also listed in holders"
            raise errors.InvalidInput.for_field("removed", "conflicting_fields", message)
        return references.ReferenceReport(**attrs)


class ReferenceReportResultSerializer(Representation):
    """The state of the feed after a report, and how many blocks a complete report missed."""

    cluster = fields.TextField()
    holder_kind = fields.TextField()
    sequence = fields.IntegerField(max_value=_SEQUENCES - 1)
    complete = fields.FlagField()
    holders = fields.IntegerField()
    reported_at = fields.TimeField()
    complete_at = fields.TimeField(allow_null=True)
    missed = fields.IntegerField()
    leaked = fields.IntegerField()


class ReferenceFeedSerializer(Representation):
    """The last report about a kind of holder in a cluster."""

    id = fields.IntegerField()
    cluster = fields.TextField(source="cluster.name")
    holder_kind = fields.TextField()
    sequence = fields.IntegerField(max_value=_SEQUENCES - 1)
    holders = serializers.SerializerMethodField()
    reporter = fields.TextField()
    reported_at = fields.TimeField()
    complete_at = fields.TimeField(allow_null=True)

    def get_holders(self, feed: ReferenceFeed) -> int:
        count: int = feed.answer.get("holders", 0)
        return count


class ReferenceFeedFilter(filters.FilterSet):
    cluster = filters.Filter(lookups.cluster, help_text="Name or id.")
    holder_kind = filters.Filter()


class References(generics.ListViewSet):
    """Feeds of inventory reports, and how current they are."""

    needs = {"GET": ("pools.view_referencefeed",), "POST": ("pools.report_references",)}
    queryset = ReferenceFeed.objects.prefetch_related("cluster")
    serializer_class = ReferenceFeedSerializer
    filterset_class = ReferenceFeedFilter
    largest_body = LARGEST

    @extend_schema(
        request=ReferenceReportSerializer, responses={200: ReferenceReportResultSerializer}
    )
    @schema.example(
        {
            "cluster": "prod", "holder_kind": "instance", "sequence": 1, "complete": True,
            "holders": [{"id": "i-1", "uid": "7d2f8a54-6a0b-4a3c-9d5c-6c1a4b6f2f10"}],
        },
        "all instances of a cluster",
    )  # fmt: skip
    def create(self, request: Request) -> Response:
        """Report the holders that still use blocks."""
        report = self.read(request, ReferenceReportSerializer)
        return Response(references.ingest_report(report, author=self.author()))
