"""references/: inventory reports, in which tooling lists the holders that still use blocks."""

from __future__ import annotations

from typing import Any, TypeGuard

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api import lookups
from pools.core import errors, holders, object_reader
from pools.models import ReferenceFeed
from pools.platform.rest import fields, filters, generics, parsing, schema
from pools.platform.rest.serializers import Representation, Serializer
from pools.register.leaks import references
from pools.register.leaks.references import MOST_HOLDERS, ReferencedHolder

LARGEST = 32 * 1024 * 1024  # bytes: 200,000 holders with Kubernetes names and uids
_SEQUENCES = 1 << 63
_SHOWN = 100  # problems in one response
_EXAMPLE = schema.example(
    {
        "cluster": "prod", "holder_kind": "instance", "sequence": 1, "complete": True,
        "holders": [{"id": "i-1", "uid": "7d2f8a54-6a0b-4a3c-9d5c-6c1a4b6f2f10"}],
    },
    "all instances of a cluster",
)  # fmt: skip


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
        request=ReferenceReportSerializer,
        responses={200: ReferenceReportResultSerializer},
        examples=_EXAMPLE,
    )
    def create(self, request: Request) -> Response:
        """Report the holders that still use blocks."""
        report = self.read(request, ReferenceReportSerializer)
        return Response(references.ingest_report(report, author=self.author()))
