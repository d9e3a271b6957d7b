"""Who changes the register: every change is made inside `recorded(author)`.

The rows themselves are written by database triggers (pools/models/history.py); this module tells
them the author, in the same transaction, through django-pghistory's context variable.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.db import connection, transaction

from pools.models import Pool


@dataclass(frozen=True)
class Author:
    """Who asked, through which door, and (where one is demanded) why.

    `source` is `api`, `admin`, `command`, `worker` or `cluster`. `forced` tells a release that has a
    reason from a reclaim.
    """

    actor: str
    source: str
    request_id: str = ""
    reason: str = ""
    forced: bool | None = None

    def as_context(self) -> str:
        """The JSON text that the triggers store with each event."""
        return _context(self)


@lru_cache(maxsize=64)  # workers and commands make thousands of changes in one name
def _context(author: Author) -> str:
    return json.dumps(
        {key: value for key, value in vars(author).items() if value not in {"", None}}
    )


WORKER = Author(actor="worker", source="worker")


@contextmanager
def recorded(author: Author) -> Iterator[None]:
    """A transaction whose events carry the author."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('pghistory.context_metadata', %s, true)", [author.as_context()]
            )
        yield


EVENT_TABLES: list[Any] = []  # filled by pools.extension


def logs() -> dict[str, Any]:
    """Every event table by its name in `Event.table`."""
    return {model._meta.model_name: model for model in EVENT_TABLES}


def append_only() -> list[str]:
    """The triggers that keep events from being changed or deleted; the retention passes them by."""
    return [f"{model._meta.app_label}.{model.__name__}:append_only" for model in EVENT_TABLES]


def allocation_failed(
    pool: Pool,
    *,
    holder: tuple[str, str],
    org: str,
    env: str,
    code: str,
    message: str,
    author: Author,
) -> None:
    """Record that an allocation was refused; `holder` is (kind, id)."""
    kind, holder_id = holder
    values: dict[str, Any] = {
        "pgh_obj_id": pool.pk,
        "pgh_label": "allocation_failed",
        "pgh_context": author.as_context(),
        "category": pool.category,
        "holder_kind": kind,
        "holder_id": holder_id,
        "org": org,
        "env": env,
        "code": code,
        "message": message[:500],
    }
    columns, places = ", ".join(values), ", ".join(["%s"] * len(values))
    with connection.cursor() as cursor:  # not by the model: Django would date it by its own clock
        cursor.execute(
            f"INSERT INTO pools_failureevent (pgh_created_at, {columns})"  # noqa: S608  # our names
            f" VALUES (ipam_now(), {places})",
            list(values.values()),
        )


def credentials_replaced(connection_id: int, *, author: Author) -> None:
    """Record that a connection has other credentials, of which the event holds nothing."""
    of_connection(connection_id, "credentials_replaced", author=author)


def of_connection(connection_id: int | None, label: str, *, author: Author) -> None:
    """Record what was done about a connected cluster, or all, that changes no row of its own."""
    columns = "cluster_id, server, mode, managed_resources, paused, in_cluster, identity"
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO pools_connectionevent (pgh_created_at, pgh_label, pgh_obj_id, pgh_context,"  # noqa: S608  # our names
            f" {columns}) SELECT ipam_now(), %s, id, %s, {columns}"
            " FROM pools_connection WHERE id = COALESCE(%s, id)",
            [label, author.as_context(), connection_id],
        )
