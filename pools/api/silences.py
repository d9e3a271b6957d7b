"""silences/: alerts of a kind or a cluster that nobody is told of for a time."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pools.models import Cluster, Silence
from pools.platform.alerts import event_feed, silences, targets
from pools.platform.rest import fields, generics
from pools.platform.rest.serializers import Serializer


class SilenceSerializer(Serializer):
    """A silence of the alerts with a code, of a cluster, or both."""

    id = fields.IntegerField(read_only=True)
    code = fields.TextField(targets.parse_code, required=False, help_text="Empty: every condition.")
    cluster = fields.ParsedField(
        event_feed.parse_cluster,
        source="cluster_id",
        schema={"type": "integer"},
        required=False,
        allow_null=True,
        help_text="The id of a cluster; null: of every cluster, and of none.",
    )
    until = fields.TimeField()
    reason = fields.ReasonField()
    made_by = fields.TextField(read_only=True)
    created_at = fields.TimeField(read_only=True)


class _SilenceView(generics.GenericView):
    queryset = Silence.objects.all()
    serializer_class = SilenceSerializer
    lookup_url_kwarg = "silence_id"


class Silences(_SilenceView, generics.ListView):
    @extend_schema(
        responses={201: SilenceSerializer},
        examples=[
            OpenApiExample(
                "one cluster until Monday",
                {"cluster": 1, "until": "2026-12-07T08:00:00Z", "reason": "it is moved"},
                request_only=True,
            )
        ],
    )
    def post(self, request: Request) -> Response:
        """Silence alerts."""
        values = self.read(request)
        cluster_id = values.pop("cluster_id", None)
        return self.create(
            lambda: silences.create(
                code=values.pop("code", ""),
                cluster=cluster_id and Cluster.objects.get(pk=cluster_id),
                by=self.author().actor,
                **values,
            )
        )


class SilenceView(_SilenceView, generics.DetailView):
    def delete(self, request: Request, silence_id: int) -> Response:
        """End a silence."""
        silences.end(self.get_object())
        return Response(status=204)
