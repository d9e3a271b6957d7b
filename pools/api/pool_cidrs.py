"""The CIDRs and reserved ranges of a pool, as fields of the pool and as resources, and what calls say of overlaps."""

from collections.abc import Iterable
from functools import cached_property
from ipaddress import ip_network
from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.fields import empty
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api import lookups
from pools.core import addresses, blocks, errors, object_reader
from pools.core.cilium.podippool import CidrEntry, Family
from pools.models import ATTRIBUTES, Pending, Pool, PoolCIDR, ReservedRange
from pools.platform.rest import attributes, fields, filters, generics, keyset, token_scopes
from pools.platform.rest.serializers import Representation, Serializer
from pools.register import overlaps, overlaps as owners, pools

_NAMED_OVERLAPS = 5  # in the header
_CHOICE = filters.choice(
    "warn", "refuse",
    help_text="refuse: 409 `overlaps` if the CIDRs overlap those of other address spaces, and nothing is saved;"
    " else the header Warning of the answer names what they overlap.",
)  # fmt: skip
OVERLAPS = filters.parameters(overlaps=_CHOICE)


class Overlaps(errors.Conflict):
    """The CIDRs overlap others. Nothing was saved."""

    code = "overlaps"


def overlaps_are_refused(view: generics.GenericView) -> bool:
    """Return True for `?overlaps=refuse`. Raises InvalidInput, also for other parameters."""
    choice = _CHOICE.read(view.parameters, "overlaps")
    view.parameters.raise_problems()
    return bool(choice == "refuse")


def warn_of_overlaps(
    view: generics.GenericView, cidrs: Iterable[Any], owner: overlaps.NetworkOwner
) -> None:
    """Name in the answer what new CIDRs overlap, or with `?overlaps=refuse` raise Overlaps.

    Whoever may not see the pools of others is told nothing of them.
    """
    is_refused = overlaps_are_refused(view)
    texts = [
        f"{cidr} overlaps {other} of {present} in {present.cluster}"
        for cidr in map(ip_network, map(str, cidrs))
        for other, present in overlaps.find_new_overlaps(cidr, owner)
        if _may_know(view.request, present)
    ]
    if texts and is_refused:
        problems = [errors.FieldProblem("", Overlaps.code, text) for text in texts]
        raise Overlaps(problems=tuple(problems))
    if texts:
        shown = [
            *texts[:_NAMED_OVERLAPS],
            *([f"and {len(texts) - _NAMED_OVERLAPS} more"] if texts[_NAMED_OVERLAPS:] else []),
        ]
        view.headers["Warning"] = ", ".join(f'299 - "{text}"' for text in shown)


def _may_know(request: Any, owner: overlaps.NetworkOwner) -> bool:
    limits = token_scopes.limits_of(request.auth)
    if limits is not None and limits.hides("cluster") and owner.cluster_id != limits.cluster_id:
        return False
    return bool(request.user.has_perm("pools.view_pool"))


class CIDREntrySerializer(Serializer):
    """A CIDR of a family with its reserved ranges; a bare string is a CIDR without ranges."""

    cidr = fields.CIDRField()
    reserved_ranges = fields.ListField(child=fields.RangeField(), source="reserved", required=False)

    def run_validation(self, data: Any = empty) -> CidrEntry:
        entry: CidrEntry = super().run_validation({"cidr": data} if isinstance(data, str) else data)
        return entry

    def validate(self, attrs: dict[str, Any]) -> Any:
        cidr, reserved = attrs["cidr"], attrs.get("reserved", ())
        report = object_reader.ProblemReport()
        for index, span in enumerate(reserved):
            with report.collect():
                addresses.require_within(span, cidr, f"reserved_ranges.{index}")
        report.raise_any()
        return CidrEntry(cidr, tuple(reserved))


class FamilySerializer(Serializer):
    """The CIDRs of one IP family of a pool, and the size of its blocks as a prefix length."""

    mask_size = fields.ParsedField(schema={"type": "integer"})
    cidrs = fields.ListField(child=CIDREntrySerializer())

    def __init__(self, version: int = 4, **options: Any) -> None:
        super().__init__(**options)
        self.version = version

    def to_internal_value(self, data: Any) -> Any:
        if not data.get("cidrs"):
            data = {**data, "cidrs": None}
        return super().to_internal_value(data)

    def validate_mask_size(self, value: object) -> int:
        return blocks.check_mask_size(value, self.version)

    def validate_cidrs(self, entries: list[CidrEntry]) -> list[CidrEntry]:
        report = object_reader.ProblemReport()
        for index, entry in enumerate(entries):
            if entry.cidr.version != self.version:
                message = f"an IPv{self.version} CIDR is expected"
                report.add(f"{index}.cidr", "mixed_family", message, entry.cidr)
        report.raise_any()
        return entries

    def validate(self, attrs: dict[str, Any]) -> Any:
        return Family(tuple(attrs["cidrs"]), attrs["mask_size"])


class ReservedRangeSerializer(Serializer):
    """A range of a CIDR whose addresses are not allocated, and why."""

    id = fields.IntegerField(read_only=True)
    range = fields.RangeField(source="span")
    reason = fields.ReasonField(required=False, default="")


class PoolCIDRSerializer(Representation, attributes.AttributedSerializer):
    """A CIDR of a pool; `pending` until the object of the cluster has the change."""

    id = fields.IntegerField()
    cidr = fields.CIDRField()
    pending = fields.ChoiceField(Pending.values, allow_null=True)
    reserved_ranges = fields.ListField(child=ReservedRangeSerializer())


class PoolCIDRChangeSerializer(attributes.AttributedSerializer):
    """A change of the tags, the owner and the custom fields of a CIDR."""


class NewCIDRSerializer(CIDREntrySerializer, attributes.AttributedSerializer):
    """A CIDR with its reserved ranges, tags, owner and custom fields."""

    def validate(self, attrs: dict[str, Any]) -> Any:
        attribute_values = {name: attrs[name] for name in ATTRIBUTES if name in attrs}
        return super().validate(attrs), {"custom_fields": {}, **attribute_values}


class PoolCIDRFilter(attributes.AttributeFilterSet):
    pass


_CHANGE = ("pools.change_pool",)


class PoolCIDRs(generics.ModelViewSet):
    needs = {"GET": ("pools.view_pool",), "POST": _CHANGE, "PATCH": _CHANGE, "DELETE": _CHANGE}
    queryset = PoolCIDR.objects.prefetch_related("reserved_ranges")
    pagination_class = keyset.OnePage
    serializer_class = PoolCIDRSerializer
    create_serializer_class = NewCIDRSerializer
    change_serializer_class = PoolCIDRChangeSerializer
    filterset_class = PoolCIDRFilter
    lookup_url_kwarg = "cidr_id"
    absent = "The pool has no such CIDR."
    row_text = "A CIDR of a pool."

    def get_queryset(self) -> Any:
        return super().get_queryset().filter(pool_id=self.kwargs["pool_id"])

    @cached_property
    def pool(self) -> Pool:
        return lookups.get_pool(self.kwargs["pool_id"])

    def list(self, request: Request, **path: Any) -> Response:
        """The CIDRs of a pool, with their ids."""
        _ = self.pool  # an absent pool is reported before the parameters
        return super().list(request, **path)

    def check_values(self, values: Any, row: PoolCIDR | None = None) -> None:
        if row is None:
            warn_of_overlaps(self, [values[0].cidr], owners.owner_of_pool(self.pool))

    @OVERLAPS
    def perform_create(self, values: Any) -> PoolCIDR:
        """Add a CIDR to a pool."""
        entry, attribute_values = values
        return pools.add_cidr(
            self.kwargs["pool_id"], entry, author=self.author(), values=attribute_values
        )

    def perform_update(self, row: PoolCIDR, values: dict[str, Any]) -> PoolCIDR:
        """Change the tags, the owner or the custom fields of a CIDR."""
        return pools.change_cidr(row.pk, values, author=self.author())

    @extend_schema(
        responses={
            202: PoolCIDRSerializer,
            204: OpenApiResponse(description="The CIDR is removed."),
        }
    )
    def destroy(self, _request: Request, **_path: Any) -> Response:
        """Remove an unused CIDR; 202 while the object of the cluster still has it."""
        pending = pools.remove_cidr(self.get_object().pk, author=self.author())
        return self.respond(pending, status=202) if pending else Response(status=204)

    @extend_schema(request=ReservedRangeSerializer, responses={201: ReservedRangeSerializer})
    @generics.post_action(*_CHANGE, idempotent=True, url_path="reserved-ranges")
    def reserved_ranges(self, request: Request, pool_id: int, cidr_id: int) -> Response:
        """Reserve a range of a CIDR."""
        values = self.read(request, ReservedRangeSerializer)
        cidr, author = self.get_object(), self.author()

        def reserve() -> Any:
            row = pools.reserve(cidr.pk, values["span"], author=author, reason=values["reason"])
            return self.represent(row, ReservedRangeSerializer)

        return self.once(request, reserve, status=201)


class ReservedRanges(generics.ViewSet):
    needs = {"DELETE": _CHANGE}
    queryset = ReservedRange.objects.all()
    serializer_class = ReservedRangeSerializer
    lookup_url_kwarg = "range_id"
    absent = "The pool has no such reserved range."

    def get_queryset(self) -> Any:
        return super().get_queryset().filter(pool_id=self.kwargs["pool_id"])

    def perform_destroy(self, row: ReservedRange) -> None:
        """Remove a reserved range."""
        pools.unreserve(row.pk, author=self.author())
