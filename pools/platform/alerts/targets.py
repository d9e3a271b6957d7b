"""Webhook targets: create, change and delete them; generate their secrets, which are shown only once."""

from __future__ import annotations

import secrets as randomness
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from django.db import IntegrityError, transaction

from pools.core import errors, holders
from pools.models import Delivery, WebhookTarget
from pools.models.alerts import DeliveryState
from pools.models.fields import Now
from pools.platform import database, events
from pools.platform.alerts import event_feed, outbox
from pools.platform.conditions import registry
from pools.platform.outbound import secrets, webhook_post

LONGEST_NAME = 100
MOST = 100  # targets
_PREFIX = "cadwh_"  # lets secret scanners recognize a secret that was committed to a repository


def parse_name(value: object, field: str = "name") -> str:
    """Parse one line of text. Raises as parse_reason."""
    return holders.parse_reason(value, field=field, max_length=LONGEST_NAME)


def parse_url(value: object, field: str = "url") -> str:
    """Parse the URL of a target. Raises InvalidInput wrong_type, url_not_allowed, too_long."""
    if not isinstance(value, str):
        raise errors.InvalidInput.for_field(field, "wrong_type", "a text is expected", value)
    return webhook_post.parse_url(value.strip(), field=field)


def parse_ca(value: object, field: str = "ca") -> str:
    """Parse certificates in PEM. Raises InvalidInput wrong_type, bad_pem, private_key_in_ca."""
    if not isinstance(value, str):
        raise errors.InvalidInput.for_field(field, "wrong_type", "a text is expected")
    return webhook_post.parse_ca(value, field=field)


def parse_codes(value: object, field: str = "codes") -> list[str]:
    """Parse codes of alerts; the result is distinct and sorted, and empty for all. Raises InvalidInput."""
    if not isinstance(value, list) or not all(isinstance(code, str) for code in value):
        raise errors.InvalidInput.for_field(
            field, "wrong_type", "a list of texts is expected", value
        )
    known_codes = codes()
    for code in value:
        if code not in known_codes:
            message = f"must be one of {', '.join(known_codes)}"
            raise errors.InvalidInput.for_field(field, "invalid_choice", message, code)
    return sorted(set(value))


def codes() -> list[str]:
    """Return every code that a target can select: those of alerts, and that of anchors."""
    return sorted({*registry.codes(), outbox.ANCHOR})


def create(
    name: str,
    url: str,
    *,
    author: events.Author,
    codes: Iterable[str] = (),
    ca: str = "",
    enabled: bool = True,
    **events_of_target: Any,
) -> tuple[WebhookTarget, str]:
    """Create a target; return it and its secret, which is not shown again. Raises AlreadyExists, Conflict.

    `events_of_target` are `alerts` and the fields of its subscription to events.
    """
    with events.recorded_by(author):
        if WebhookTarget.objects.count() >= MOST:
            raise errors.Conflict(f"The limit of {MOST} targets is reached.")
        now = database.now()
        target = WebhookTarget(
            name=name,
            url=url,
            ca=ca,
            codes=list(codes),
            enabled=enabled,
            created_at=now,
            secret_made_at=now,
            **events_of_target,
        )
        event_feed.start(target)
        _save(target)
        return target, rotate(target, author=author)


def change(
    target: WebhookTarget, values: Mapping[str, Any], *, author: events.Author
) -> WebhookTarget:
    """Change name, url, ca, codes, enabled, alerts or the events. Raises AlreadyExists.

    A target that gets its first events begins with the next one; any other goes on where it is.
    """
    with events.recorded_by(author):
        row = _locked(target)
        if values.get("event_types") and not row.event_types:
            event_feed.start(row)
        for name in values:
            setattr(row, name, values[name])
        # The change may have removed the cause of failures: messages are tried again at once.
        row.failures, row.wait_until = 0, None
        _save(row)
        if not row.enabled:
            outbox.cancel_pending(row)
    return row


def delete(target: WebhookTarget, *, author: events.Author) -> None:
    """Delete a target and its messages."""
    with events.recorded_by(author):
        _locked(target).delete()


def rotate(target: WebhookTarget, *, author: events.Author) -> str:
    """Generate and return a new secret; messages are signed with it from now on."""
    secret_text = f"{_PREFIX}{randomness.token_urlsafe(32)}"
    sealed = secrets.key_ring().seal(secret_text.encode(), owner=owner(target.pk))
    with events.recorded_by(author):
        changed = WebhookTarget.objects.filter(pk=target.pk)
        if not changed.update(sealed=sealed, secret_made_at=Now()):
            raise errors.NotFound("There is no such target.")
    target.refresh_from_db()
    return secret_text


def secret(target: WebhookTarget) -> str:
    """Return the secret of a target. Raises SecretUnreadable."""
    return secrets.key_ring().open(target.sealed, owner=owner(target.pk)).decode()


def owner(target_id: int) -> str:
    """Return the owner that the sealed secret of a target is bound to."""
    return f"webhook:{target_id}"


def reseal() -> secrets.ResealResult:
    """Seal all secrets with the newest key of the ring. Raises KeyRingInvalid."""
    rows = WebhookTarget.objects.all()
    return secrets.reseal(rows, lambda row: owner(row.pk), lambda row: row.name)


def counts(target: WebhookTarget) -> dict[str, int]:
    """Return the numbers of pending and of failed messages of a target."""
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
