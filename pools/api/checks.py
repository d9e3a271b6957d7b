"""checks/: runs of the integrity checks, and requests for a new run."""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from pools import tasks
from pools.models import CheckRun
from pools.platform import database
from pools.platform.checks import registry, reports, runs
from pools.platform.rest import fields, filters, generics, views
from pools.platform.rest.serializers import Representation, Serializer

_EXAMPLES = [
    OpenApiExample("all of them", {"repair": False}, request_only=True),
    OpenApiExample(
        "two, with repair",
        {"repair": True, "only": ["free_space", "reserved_blocks"]},
        request_only=True,
    ),
]


class CheckExampleSerializer(Representation):
    """A violation in words, and the pool that it concerns."""

    text = fields.TextField()
    pool_id = fields.IntegerField(allow_null=True)


class CheckResultSerializer(Representation):
    """The result of one check; `violations` are those that remain after repairs."""

    code = fields.TextField()
    invariants = fields.TextField()
    proves = serializers.SerializerMethodField()
    state = fields.ChoiceField(reports.STATES)
    complete = fields.FlagField()
    violations = fields.IntegerField(source="count")
    repaired = fields.IntegerField()
    seconds = fields.ParsedField(schema={"type": "number"})
    examples = fields.ListField(child=CheckExampleSerializer())

    def get_proves(self, entry: reports.Entry) -> str:
        return registry.sentence(entry["code"])


class CheckRunSerializer(Serializer):
    """A run of the checks; `only` names some of them, and without it all of them run."""

    id = fields.IntegerField(read_only=True)
    state = fields.ChoiceField(runs.STATES, read_only=True)
    requested_at = fields.TimeField(read_only=True)
    started_at = fields.TimeField(read_only=True, allow_null=True)
    ended_at = fields.TimeField(read_only=True, allow_null=True)
    repair = fields.FlagField(required=False, default=False)
    only = fields.ListField(child=fields.TextField(), required=False, default=list)
    seconds = fields.IntegerField(
        required=False, default=runs.SECONDS, min_value=1, max_value=runs.LONGEST
    )
    actor = fields.TextField(read_only=True)
    complete = fields.FlagField(read_only=True)
    violations = fields.IntegerField(read_only=True)
    repaired = fields.IntegerField(read_only=True)


class CheckRunDetailSerializer(CheckRunSerializer):
    """A run of the checks with the result of each check."""

    checks = fields.ListField(child=CheckResultSerializer(), source="report", read_only=True)


class CheckRunFilter(filters.FilterSet):
    violated = filters.condition(
        Q(violations__gt=0), help_text="true: only runs that found violations."
    )


class _CheckView(generics.GenericView):
    queryset = CheckRun.objects.all()
    serializer_class: Any = CheckRunDetailSerializer
    lookup_url_kwarg = "check_id"
    absent = "There is no such check."

    def load(self, rows: list[Any]) -> None:
        now = database.now()
        for run in rows:
            run.state = runs.state(run, now)


class Checks(_CheckView, generics.ListView):
    """Runs of the checks, the newest first."""

    needs = {"GET": ("pools.view_checkrun",), "POST": ("pools.run_checks",)}
    idempotent = ("POST",)
    queryset = CheckRun.objects.defer("report")
    serializer_class = CheckRunSerializer
    filterset_class = CheckRunFilter
    ordering = "-id"

    @extend_schema(responses={202: CheckRunDetailSerializer}, examples=_EXAMPLES)
    def post(self, request: Request) -> Response:
        """Request a run of the checks; a repair needs the permission `pools.repair`."""
        values = self.read(request)
        if values["repair"]:
            views.require(request, "pools.repair")

        def request_run() -> Any:
            run = runs.request_run(author=self.author(), **values)
            tasks.nudge_checks()
            return self.represent(run, CheckRunDetailSerializer)

        return self.once(request, request_run, status=202)


class CheckView(_CheckView, generics.DetailView):
    """A run of the checks with the result of each check."""
