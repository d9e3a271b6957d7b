"""Idempotency-Key: the answer to a request, stored in the transaction of its work.

After draft-ietf-httpapi-idempotency-key-header-07. A key belongs to one user, method, path and body, and
expires after 24 hours. Refusals are not stored: the same request may succeed later.
"""

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
    """The key of a request; `user_id` separates the keys of different clients."""

    user_id: int
    text: str
    fingerprint: str


@dataclass(frozen=True)
class StoredAnswer:
    """A stored answer: `answer` is JSON, `status` its HTTP status."""

    status: int
    answer: Any


def parse_key(
    header: str | None, *, user_id: int, method: str, path: str, body: bytes
) -> Key | None:
    """Return the key of a request, None without a header. Raises InvalidInput `idempotency_key`."""
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


def load_answer(key: Key) -> StoredAnswer | None:
    """Return the stored answer, None if there is none. Raises IdempotencyMismatch for another body."""
    row = IdempotencyKey.objects.filter(
        user_id=key.user_id, key=key.text, created_at__gt=database.now() - LIFETIME
    ).first()
    if row is None:
        return None
    if row.fingerprint != key.fingerprint:
        raise errors.IdempotencyMismatch
    return StoredAnswer(row.status, row.answer)


def store_answer(key: Key, answer: StoredAnswer) -> None:
    """Store the answer; call it last in the transaction of the work."""
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


def run_once(key: Key | None, work: Callable[[], StoredAnswer]) -> StoredAnswer:
    """Do the work, or return the answer that is stored under the key; call it inside a transaction."""
    if key is None:
        return work()
    stored_answer = load_answer(key)
    if stored_answer is not None:
        return stored_answer
    answer = work()
    store_answer(key, answer)
    return answer


def tidy() -> int:
    """Delete expired keys; return their number."""
    return IdempotencyKey.objects.filter(created_at__lte=database.now() - LIFETIME).delete()[0]
