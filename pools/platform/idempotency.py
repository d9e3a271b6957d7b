"""Idempotency-Key: the answer to a request, stored in the transaction that did the work.

After draft-ietf-httpapi-idempotency-key-header-07. A key is the user's own, lives 24 hours, and
belongs to one method, path and body. Refusals are not stored: the same request may succeed later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pools.core import errors
from pools.models import IdempotencyKey
from pools.platform import database

LIFETIME = timedelta(hours=24)
LONGEST = 255


@dataclass(frozen=True)
class Key:
    """A key as a request brings it; `user_id` keeps the keys of different clients apart."""

    user_id: int
    text: str
    fingerprint: str


@dataclass(frozen=True)
class Stored:
    """`answer` is JSON; `status` is the HTTP status it was first said with."""

    status: int
    answer: Any


def key_of(header: str | None, *, user_id: int, method: str, path: str, body: bytes) -> Key | None:
    """The key of a request; InvalidInput `idempotency_key` for an unusable one."""
    if header is None:
        return None
    text = header.strip().strip('"')
    if not text or len(text) > LONGEST or not text.isascii() or not text.isprintable():
        raise errors.InvalidInput.for_field(
            "Idempotency-Key",
            "idempotency_key",
            f"An Idempotency-Key has 1 to {LONGEST} printable ASCII characters.",
            header,
        )
    content = b"\0".join([method.encode(), path.encode(), body])
    return Key(user_id, text, hashlib.sha256(content).hexdigest())


def stored(key: Key) -> Stored | None:
    """The answer under the key, None while there is none; IdempotencyMismatch for another body."""
    row = IdempotencyKey.objects.filter(
        user_id=key.user_id, key=key.text, created_at__gt=database.now() - LIFETIME
    ).first()
    if row is None:
        return None
    if row.fingerprint != key.fingerprint:
        raise errors.IdempotencyMismatch
    return Stored(row.status, row.answer)


def store(key: Key, answer: Stored) -> None:
    """Keep the answer; call it last in the transaction that did the work."""
    IdempotencyKey.objects.filter(
        user_id=key.user_id, key=key.text, created_at__lte=database.now() - LIFETIME
    ).delete()
    IdempotencyKey.objects.create(
        user_id=key.user_id,
        key=key.text,
        fingerprint=key.fingerprint,
        status=answer.status,
        answer=answer.answer,
        created_at=database.now(),
    )


def run_once(key: Key | None, work: Callable[[], Stored]) -> Stored:
    """Do the work unless it was done under this key; call it inside a transaction."""
    if key is None:
        return work()
    known = stored(key)
    if known is not None:
        return known
    answer = work()
    store(key, answer)
    return answer


def tidy() -> int:
    """Delete keys that are past their lifetime; how many."""
    return IdempotencyKey.objects.filter(created_at__lte=database.now() - LIFETIME).delete()[0]
