"""An alert as REST answers it and webhooks send it."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from pools.models.alerts import Level
from pools.platform.conditions import registry
from pools.platform.rest import fields
from pools.platform.rest.serializers import Representation


def link(path: str) -> str:
    """Return the URL of a page; without the host if IPAM_URL is not set."""
    return f"{settings.IPAM_URL.rstrip('/')}{path}" if path else ""


class LinkField(fields.TextField):
    """The URL of a page whose path is stored."""

    def to_representation(self, value: Any) -> str:
        return link(value)


class RunbookField(fields.TextField):
    """The URL of the runbook of a code; "" without one."""

    def to_representation(self, value: Any) -> str:
        name = registry.runbook(value)
        return link(f"/admin/runbooks/{name}/") if name else ""


class AlertSerializer(Representation):
    """An alert about a condition, from its first detection to its end."""

    id = fields.IntegerField()
    code = fields.TextField()
    subject = fields.TextField()
    level = fields.ChoiceField(Level.values)
    title = fields.TextField()
    detail = fields.TextField()
    open = fields.FlagField(source="is_open")
    since = fields.TimeField()
    seen_at = fields.TimeField()
    ended_at = fields.TimeField(allow_null=True)
    cause = fields.TextField()
    link = LinkField(source="url")
    runbook = RunbookField(source="code")
    acknowledged = fields.FlagField(source="is_acknowledged")
    acknowledged_at = fields.TimeField(allow_null=True)
    acknowledged_by = fields.TextField()
    acknowledged_until = fields.TimeField(allow_null=True)
    acknowledged_reason = fields.TextField()
