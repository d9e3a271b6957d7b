"""observed-cidrs/: the addresses that objects of clusters use besides pools; read-only."""

from __future__ import annotations

from typing import Any

from pools.api import lookups
from pools.core.observed.uses import Role
from pools.models import ObservedCIDR
from pools.platform.rest import fields, filters, generics
from pools.platform.rest.serializers import Representation

_ROLES = tuple(role.value for role in Role)


class ObservedCIDRSerializer(Representation):
    """A CIDR that an object of a cluster uses; a range is several CIDRs, and `detail` has it."""

    id = fields.IntegerField()
    cidr = fields.CIDRField()
    cluster = fields.TextField(source="space.cluster.name")
    role = fields.ChoiceField(_ROLES)
    kind = fields.TextField()
    namespace = fields.TextField()
    name = fields.TextField()
    uid = fields.TextField()
    detail = fields.TextField()


class ObservedCIDRFilter(filters.FilterSet):
    cluster = filters.Filter(
        lookups.cluster,
        select=lambda rows, cluster: rows.filter(
            space__in=list(cluster.spaces.values_list("pk", flat=True))
        ),
        help_text="Name or id.",
    )
    role = filters.choice(*_ROLES)
    kind = filters.Filter(help_text="Such as ServiceCIDR.")
    namespace = filters.Filter()
    name = filters.Filter()
    within = filters.cidr(
        field_name="cidr",
        lookup_expr="net_contained_or_equal",
        help_text="CIDRs inside of this one, or equal to it.",
    )
    overlapping = filters.cidr(
        field_name="cidr", lookup_expr="net_overlaps", help_text="CIDRs that have addresses of it."
    )


class _ObservedCIDRView(generics.GenericView):
    queryset = ObservedCIDR.objects.select_related("space__cluster")
    serializer_class: Any = ObservedCIDRSerializer
    lookup_url_kwarg = "observed_cidr_id"
    absent = "There is no such observed CIDR."


class ObservedCIDRs(_ObservedCIDRView, generics.ListView):
    """CIDRs that objects of clusters use: Services, nodes, load balancers, egress, secondary networks."""

    filterset_class = ObservedCIDRFilter
    orderings = {"id": ("id",), "cidr": ("cidr", "id")}


class ObservedCIDRView(_ObservedCIDRView, generics.DetailView):
    """A CIDR that an object of a cluster uses."""
