"""Log of webhook decisions, which explains why a VM has its address."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, connection, transaction

from claims.models import Decision
from pools.core import redaction
from pools.models.fields import Now

log = logging.getLogger(__name__)

WAIT_MS = 300  # timeout of the insert; the API server waits for the response meanwhile
_LONGEST = {field.name: field.max_length for field in Decision._meta.fields if field.max_length}
_AT_ONCE = 10_000


def record(cluster_id: int, **values: Any) -> None:
    """Record one decision; `values` are the fields of a Decision. A failure is only logged."""
    shown_values = redaction.redact_values(values)
    truncated_values = {
        key: _truncate(value, _LONGEST.get(key)) for key, value in shown_values.items()
    }
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT set_config('statement_timeout', %(ms)s, true),"
                    " set_config('lock_timeout', %(ms)s, true)",
                    {"ms": str(WAIT_MS)},
                )
            Decision.objects.create(cluster_id=cluster_id, at=Now(), **truncated_values)
    except DatabaseError as error:
        log.warning("a webhook decision was not recorded: %s", error)


def _truncate(value: Any, longest: int | None) -> Any:
    return value[:longest] if isinstance(value, str) else value


def delete_old(days: int) -> int:
    """Delete decisions older than `days`, and return their number; 0 keeps all decisions."""
    if days <= 0:
        return 0
    deleted = 0
    while True:
        old = Decision.objects.filter(at__lt=Now() - timedelta(days=days)).order_by("at")
        ids = list(old.values_list("pk", flat=True)[:_AT_ONCE])
        deleted += Decision.objects.filter(pk__in=ids).delete()[0]
        if len(ids) < _AT_ONCE:
            return deleted
