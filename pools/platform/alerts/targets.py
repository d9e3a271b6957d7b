"""Targets of webhooks: made, changed, ended; their secrets made here, and shown once."""

from __future__ import annotations

import secrets as randomness
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from django.db import IntegrityError, transaction

from pools.core import errors, holders
from pools.models import Delivery, WebhookTarget
from pools.models.fields import Now
from pools.models.notices import DeliveryState
from pools.platform import database, events
from pools.platform.alerts import outbox
from pools.platform.conditions import registry
from pools.platform.outbound import faults, secrets, webhook_post

LONGEST_NAME = 100
MOST = 100  # targets
_PREFIX = "cadwh_"  # lets a secret scanner recognise one that was committed somewhere


@dataclass
class Resealed:
    """How many secrets are under the newest key; the codes of those that could not be opened."""

    resealed: int = 0
    already: int = 0
    failed: dict[str, str] = field(default_factory=dict)  # by the target's name


def parse_name(value: object, at: str = "name") -> str:
    """One line of text; errors of parse_reason."""
    return holders.parse_reason(value, field=at, max_length=LONGEST_NAME)


def parse_url(value: object, at: str = "url") -> str:
    """Raises InvalidInput wrong_type, url_not_allowed, too_long."""
    if not isinstance(value, str):
        raise errors.InvalidInput.for_field(at, "wrong_type", "a text is expected", value)
    return webhook_post.parse_url(value.strip(), field=at)


def parse_ca(value: object, at: str = "ca") -> str:
    """Raises InvalidInput wrong_type, bad_pem, private_key_in_ca."""
    if not isinstance(value, str):
        raise errors.InvalidInput.for_field(at, "wrong_type", "a text is expected")
    return webhook_post.parse_ca(value, field=at)


def parse_codes(value: object, at: str = "codes") -> list[str]:
    """Codes of notices, each once, in order; none means all. Raises InvalidInput."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise errors.InvalidInput.for_field(at, "wrong_type", "a list of texts is expected", value)
    known = codes()
    for one in value:
        if one not in known:
            message = f"must be of {', '.join(known)}"
            raise errors.InvalidInput.for_field(at, "invalid_choice", message, one)
    return sorted(set(value))


def codes() -> list[str]:
    """Every code that a target can name: those of notices, and that of the audit chain's anchors."""
    return sorted({*registry.codes(), outbox.ANCHOR})


def create(
    name: str,
    url: str,
    *,
    author: events.Author,
    codes: Iterable[str] = (),
    ca: str = "",
    enabled: bool = True,
) -> tuple[WebhookTarget, str]:
    """The target and its secret, which nobody is told again. Raises AlreadyExists, Conflict."""
    with events.recorded(author):
        if WebhookTarget.objects.count() >= MOST:
            raise errors.Conflict(f"There are {MOST} targets, which is the most there may be.")
        now = database.now()
        target = WebhookTarget(
            name=name,
            url=url,
            ca=ca,
            codes=list(codes),
            enabled=enabled,
            created_at=now,
            secret_made_at=now,
        )
        _save(target)
        return target, rotate(target, author=author)


def change(
    target: WebhookTarget, values: Mapping[str, Any], *, author: events.Author
) -> WebhookTarget:
    """`values` of name, url, ca, codes, enabled. Raises AlreadyExists."""
    with events.recorded(author):
        row = _locked(target)
        for name in values:
            setattr(row, name, values[name])
        # What was wrong may be right now: it is tried again at once.
        row.failures, row.wait_until = 0, None
        _save(row)
        if not row.enabled:
            outbox.switched_off(row)
    return row


def delete(target: WebhookTarget, *, author: events.Author) -> None:
    """With everything that was sent to it or waits."""
    with events.recorded(author):
        _locked(target).delete()


def rotate(target: WebhookTarget, *, author: events.Author) -> str:
    """Make a new secret and return it; whatever is sent from now on is signed with it."""
    made = f"{_PREFIX}{randomness.token_urlsafe(32)}"
    sealed = secrets.configured().seal(made.encode(), owner=owner(target.pk))
    with events.recorded(author):
        changed = WebhookTarget.objects.filter(pk=target.pk)
        if not changed.update(sealed=sealed, secret_made_at=Now()):
            raise errors.NotFound("There is no such target.")
    target.refresh_from_db()
    return made


def secret(target: WebhookTarget) -> str:
    """Raises SecretUnreadable."""
    return secrets.configured().open(target.sealed, owner=owner(target.pk)).decode()


def owner(target_id: int) -> str:
    """What a sealed secret is bound to."""
    return f"webhook:{target_id}"


def reseal() -> Resealed:
    """Put all secrets under the newest key of the ring. Raises KeyRingInvalid."""
    ring, done = secrets.configured(), Resealed()
    for row in WebhookTarget.objects.order_by("pk"):
        try:
            sealed = ring.reseal(row.sealed, owner=owner(row.pk))
        except faults.SecretUnreadable as error:
            done.failed[row.name] = error.code
            continue
        if sealed == row.sealed:
            done.already += 1
        else:
            # Somebody who rotated it meanwhile did so under the newest key.
            WebhookTarget.objects.filter(pk=row.pk, sealed=row.sealed).update(sealed=sealed)
            done.resealed += 1
    return done


def counts(target: WebhookTarget) -> dict[str, int]:
    """How many messages wait, and how many were given up."""
    rows = Delivery.objects.filter(target=target)
    return {
        "pending": rows.filter(state=DeliveryState.PENDING).count(),
        "failed": rows.filter(state=DeliveryState.FAILED).count(),
    }


def _locked(target: WebhookTarget) -> WebhookTarget:
    row = WebhookTarget.objects.select_for_update().filter(pk=target.pk).first()
    if row is None:
        raise errors.NotFound("There is no such target.")
    return row


def _save(target: WebhookTarget) -> None:
    target.host = urlsplit(target.url).netloc.rpartition("@")[2]
    try:
        with transaction.atomic():
            target.save()
    except IntegrityError as error:
        if database.constraint(error) != "pools_webhooktarget_name_key":
            raise
        raise errors.AlreadyExists(f"There is a target {target.name}.") from None
