"""requests/: allocation requests that wait for free blocks."""

from __future__ import annotations

from typing import Any

from django.db.models import Prefetch
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api import lookups
from pools.models import AllocationRequest, Pool, RequestState
from pools.platform.rest import fields, filters, generics
from pools.platform.rest.serializers import Representation
from pools.register.allocator import requests

_POOLS = Prefetch("pool", Pool.objects.select_related("cluster"))
_REQUESTS = AllocationRequest.objects.prefetch_related(_POOLS)


class RequestHolderSerializer(Representation):
    """The first holder of the request."""

    kind = fields.TextField(source="holder_kind")
    id = fields.TextField(source="holder_id")


class AllocationRequestSerializer(Representation):
    """A request for blocks that waits, or has waited, for free blocks."""

    id = fields.IntegerField()
    state = fields.ChoiceField(RequestState.values)
    pool = fields.TextField(source="pool.name")
    pool_id = fields.IntegerField()
    cluster = fields.TextField(source="pool.cluster.name")
    holder = RequestHolderSerializer(source="*")
    org = fields.TextField()
    env = fields.TextField()
    attempts = fields.IntegerField()
    message = fields.TextField(source="last_error")
    block_ids = fields.ListField(child=fields.IntegerField())
    created_at = fields.TimeField()
    next_try_at = fields.TimeField()
    ended_at = fields.TimeField(allow_null=True)


class AllocationRequestFilter(filters.FilterSet):
    cluster = filters.Filter(lookups.cluster, field_name="pool__cluster", help_text="Name or id.")
    pool = filters.Filter(lookups.pools, lookup_expr="in", help_text="Name or id.")
    state = filters.choice(*RequestState.values)
    holder_kind = filters.Filter()
    holder_id = filters.Filter()
    org = filters.Filter()
    env = filters.Filter()


class _RequestView(generics.GenericView):
    queryset = _REQUESTS
    serializer_class = AllocationRequestSerializer
    lookup_url_kwarg = "request_id"
    absent = "There is no such request."


class Requests(_RequestView, generics.ListView):
    """Allocation requests that wait, or have waited, for free blocks."""

    filterset_class = AllocationRequestFilter
    limited_by = ("cluster", "pool")


class RequestView(_RequestView, generics.DetailView):
    """An allocation request."""

    needs = {"GET": ("pools.view_allocationrequest",), "DELETE": ("pools.allocate",)}

    @extend_schema(responses=AllocationRequestSerializer)
    def delete(self, request: Request, request_id: int) -> Response:
        """Cancel a pending request; a request that has ended is not changed."""
        requests.cancel(request_id, author=self.author())
        return Response(represent(request_id))


def represent(request_id: int) -> dict[str, Any]:
    """Return the answer for a request, read anew: its times come from the database."""
    answer: dict[str, Any] = AllocationRequestSerializer(_REQUESTS.get(pk=request_id)).data
    return answer
