"""audit/: the digests of the audit chain by day, to be stored outside of the register."""

from __future__ import annotations

from datetime import date

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pools.core import errors
from pools.models import AuditSegment
from pools.platform.audit import days as audit_days
from pools.platform.audit import verification
from pools.platform.rest import fields, generics, query
from pools.platform.rest.serializers import Representation

DEFAULT, MOST = 31, 366  # days
_LINK = {"type": "string", "format": "uri"}


class AuditDaySerializer(Representation):
    """A day of the audit chain; `digest` is that of its last segment, the anchor of the day."""

    day = fields.DateField()
    state = fields.ChoiceField(audit_days.STATES)
    segments = fields.IntegerField()
    events = fields.IntegerField()
    retained = fields.IntegerField()
    first_number = fields.IntegerField()
    last_number = fields.IntegerField()
    last_segment = fields.IntegerField()
    digest = fields.TextField()
    sealed_at = fields.TimeField()


class AuditFaultSerializer(Representation):
    """A difference between the chain and the events; `numbers` are the first events that it concerns."""

    code = fields.TextField()
    message = fields.TextField()
    segment = fields.IntegerField(allow_null=True)
    day = fields.DateField(allow_null=True)
    numbers = fields.ListField(child=fields.IntegerField())
    count = fields.IntegerField()


class AuditVerificationSerializer(Representation):
    """The last verification of the chain, from the beginning or since a day."""

    started_at = fields.TimeField()
    finished_at = fields.TimeField()
    since = fields.DateField(allow_null=True)
    ok = fields.FlagField()
    segments = fields.IntegerField()
    events = fields.IntegerField()
    fault_count = fields.IntegerField()
    faults = fields.ListField(child=AuditFaultSerializer())


class AuditSerializer(Representation):
    """A page of days, and the last verification of the chain."""

    next = fields.ParsedField(schema=_LINK, allow_null=True)
    previous = fields.ParsedField(schema=_LINK, allow_null=True)
    results = fields.ListField(child=AuditDaySerializer())
    verification = AuditVerificationSerializer(allow_null=True)


class Audit(generics.GenericView):
    queryset = AuditSegment.objects.all()
    serializer_class = AuditSerializer

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "limit", {"type": "integer", "minimum": 1, "maximum": MOST, "default": DEFAULT},
                description="Days of a page.",
            ),
            OpenApiParameter("before", date, description="Days before this one."),
        ]
    )  # fmt: skip
    def get(self, request: Request) -> Response:
        """The days of the audit chain with their last digests."""
        before = self.parameters.parse("before", _day)
        limit = self.parameters.parse("limit", query.integer(1, MOST)) or DEFAULT
        self.parameters.raise_problems()
        days = audit_days.days(before=before, limit=limit + 1)
        next_url = None
        if len(days) > limit:
            next_parameters = request.query_params.copy()
            next_parameters["before"] = days[limit - 1].day.isoformat()
            next_url = request.build_absolute_uri(f"{request.path}?{next_parameters.urlencode()}")
        return self.respond(
            {
                "next": next_url,
                "previous": None,
                "results": days[:limit],
                "verification": verification.latest(),
            }
        )


def _day(value: str, name: str) -> date:
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise errors.InvalidInput.for_field(
            name, "day", "must be a day such as 2026-05-05", value
        ) from None
