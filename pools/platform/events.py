"""The author of changes: every change of the register is made inside `recorded_by(author)`.

Database triggers write the events (pools/models/history.py); this module passes the author to them in the
same transaction, through django-pghistory's context variable.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import pghistory.models
from django.apps import apps
from django.db import connection, transaction

from pools.core import holders
from pools.models import Pool


@dataclass(frozen=True)
class Author:
    """Who changed something, through which interface, and why, if a reason is required.

    `source` is `api`, `admin`, `command`, `worker`, `cluster` or `sign-on`. `forced` distinguishes a reclaim from a
    release that has a reason.
    """

    actor: str
    source: str
    request_id: str = ""
    reason: str = ""
    forced: bool | None = None

    def as_context(self) -> str:
        """Return the JSON text that the triggers store with each event."""
        return _context(self)


@lru_cache(maxsize=64)  # workers and commands make thousands of changes as one author
def _context(author: Author) -> str:
    return json.dumps(
        {key: value for key, value in vars(author).items() if value not in {"", None}}
    )


WORKER = Author(actor="worker", source="worker")


@contextmanager
def recorded_by(author: Author) -> Iterator[None]:
    """Open a transaction whose events have this author."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('pghistory.context_metadata', %s, true)", [author.as_context()]
            )
        yield


@cache
def event_models() -> dict[str, Any]:
    """Return the model of every event table by its name in `Event.table`."""
    return {
        str(model._meta.model_name): model
        for model in apps.get_models()
        if issubclass(model, pghistory.models.Event)
    }


def append_only_triggers() -> list[str]:
    """Return the triggers that refuse changes and deletions of events; the retention disables them."""
    return [
        f"{model._meta.app_label}.{model.__name__}:append_only" for model in event_models().values()
    ]


def record_allocation_failure(
    pool: Pool,
    *,
    holder: tuple[str, str],
    org: str,
    env: str,
    code: str,
    message: str,
    author: Author,
) -> None:
    """Record that an allocation was refused; `holder` is (kind, id), of any length."""
    kind, holder_id = holder
    values: dict[str, Any] = {
        "pgh_obj_id": pool.pk,
        "pgh_label": "allocation_failed",
        "pgh_context": author.as_context(),
        "category": pool.category,
        "holder_kind": kind,
        "holder_id": holders.shorten_identifier(holder_id),
        "org": org,
        "env": env,
        "code": code,
        "message": message[:500],
    }
    columns, places = ", ".join(values), ", ".join(["%s"] * len(values))
    with connection.cursor() as cursor:  # not by the model: Django would use its own clock
        cursor.execute(
            f"INSERT INTO pools_failureevent (pgh_created_at, {columns})"  # noqa: S608  # our own names
            f" VALUES (ipam_now(), {places})",
            list(values.values()),
        )


def record_connection_event(connection_id: int | None, label: str, *, author: Author) -> None:
    """Record an event of a connection, or of all if None, for an action that changes no row of it.

    It contains no credential.
    """
    columns = "cluster_id, server, mode, managed_resources, paused, in_cluster, identity"
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO pools_connectionevent (pgh_created_at, pgh_label, pgh_obj_id, pgh_context,"  # noqa: S608  # our own names
            f" {columns}) SELECT ipam_now(), %s, id, %s, {columns}"
            " FROM pools_connection WHERE id = COALESCE(%s, id)",
            [label, author.as_context(), connection_id],
        )
