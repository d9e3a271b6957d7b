"""Webhook targets: create, change and delete them; generate their secrets, which are shown only once."""

import functools
import re
import secrets as randomness
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.db import IntegrityError, transaction

from pools.core import errors, holders
from pools.models import Cluster, Delivery, DeliveryState, Now, Pool, WebhookTarget
from pools.platform import database, events
from pools.platform.alerts import notifications, outbox
from pools.platform.conditions import registry
from pools.platform.history import event_numbers
from pools.platform.outbound import credentials, secrets
from pools.platform.rest import parsing

LONGEST_NAME = 100
MOST = 100  # targets
KINDS = {"block", "node", "instance", "env", "released", "reclaimed", "cooldown_ended", "changed"}
MOST_TYPES = 50
MOST_OBJECTS = 100  # clusters or pools of a subscription
# What is stored and shown instead of the query of a URL: with some receivers the query is the secret.
_HIDDEN = "***"
HIDDEN_QUERY = f"?{_HIDDEN}"
_QUERY = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})+")
_LONGEST_QUERY = 1500
_SETS = ("codes", "event_types", "clusters", "event_pools")
_PREFIX = "cadwh_"  # lets secret scanners recognize a secret that was committed to a repository


parse_name = functools.partial(holders.parse_reason, max_length=LONGEST_NAME)


def parse_url(value: object, field: str = "url") -> str:
    """Parse the URL of a target, with its query. Raises InvalidInput wrong_type, url_not_allowed, too_long.

    `https` is a webhook, `mailto` e-mail; others are those of Apprise.
    """
    text = parsing.text(value, field).strip()
    scheme = notifications.scheme(text)
    if scheme == notifications.EMAIL:
        return notifications.parse_email_url(text, field)
    if scheme in notifications.SERVICES:
        # The URL as it is shown keeps the stored one.
        is_shown = text == _hidden_service(scheme)
        return text if is_shown else notifications.parse_service_url(text, field)
    address, mark, query = text.partition("?")
    address = credentials.parse_url(address, field=field)
    if not mark:
        return address
    if len(query) > _LONGEST_QUERY:
        message = f"the query may have at most {_LONGEST_QUERY} characters"
        raise errors.InvalidInput.for_field(field, "too_long", message)
    if not _QUERY.fullmatch(query):
        message = (
            "the URL must not have an empty query, a fragment, or characters that need %-encoding"
        )
        raise errors.InvalidInput.for_field(field, "url_not_allowed", message)
    return f"{address}?{query}"


def parse_type(value: object, field: str = "") -> str:
    """Parse a type of events, its first word or `*`. Raises InvalidInput wrong_type, invalid_choice."""
    text = parsing.text(value, field).strip()
    kind, dot, action = text.partition(".")
    is_type = kind in KINDS and (not dot or action.replace("_", "").isalnum()) and len(text) < 64
    if text != outbox.EVERYTHING and not is_type:
        message = f"a type such as pool.created, * or one of {', '.join(sorted(KINDS))} is expected"
        raise errors.InvalidInput.for_field(field, "invalid_choice", message, text)
    return text


def parse_cluster(value: object, field: str = "") -> int:
    """Parse the id of a cluster. Raises InvalidInput wrong_type, unknown_cluster."""
    return _parse_id(value, field, Cluster, "unknown_cluster")


def parse_pool(value: object, field: str = "") -> int:
    """Parse the id of a pool. Raises InvalidInput wrong_type, unknown_pool."""
    return _parse_id(value, field, Pool, "unknown_pool")


def _parse_id(value: object, field: str, model: Any, code: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 1 << 63:
        raise errors.InvalidInput.for_field(field, "wrong_type", "an id is expected", value)
    if not model.objects.filter(pk=value).exists():
        raise errors.InvalidInput.for_field(field, code, "there is no such object", value)
    return value


def parse_code(value: object, field: str = "") -> str:
    """Parse the code of an alert. Raises InvalidInput wrong_type, invalid_choice."""
    return parsing.choice(value, field, codes())


def codes() -> tuple[str, ...]:
    """Return every code of alerts that a target can select."""
    return tuple(sorted(registry.codes()))


def create(
    name: str, url: str, *, author: events.Author, **values: Any
) -> tuple[WebhookTarget, str]:
    """Create a target; return it and its secret, which is not shown again. Raises AlreadyExists, Conflict.

    `values` are others that `change` takes.
    """
    with events.recorded_by(author):
        if WebhookTarget.objects.count() >= MOST:
            raise errors.Conflict(f"The limit of {MOST} targets is reached.")
        now = database.now()
        target = WebhookTarget(
            created_at=now, secret_made_at=now, event_position=event_numbers.newest_number()
        )
        query = _save(target, {**values, "name": name, "url": url}) or ""
        secret = _generate()
        _seal(target, secret, query)
        return target, secret


def change(
    target: WebhookTarget,
    values: Mapping[str, Any],
    *,
    author: events.Author,
    version: database.Version = None,
) -> WebhookTarget:
    """Change name, url, ca, codes, enabled, alerts, what it selects or the events. Raises VersionMismatch, AlreadyExists.

    A target that gets its first events begins with the next one; any other goes on where it is.
    """
    with events.recorded_by(author):
        row = _locked(target)
        database.require_version(row, version)
        if values.get("event_types") and not row.event_types:
            row.event_position = event_numbers.newest_number()
        # The change may have removed the cause of failures.
        row.failures, row.wait_until, row.switched_off_at = 0, None, None
        query = _save(row, values)
        if query is not None:
            secret, former = secrets_of(row)
            if query != former:
                _seal(row, secret, query)
        if row.enabled:
            outbox.retry_pending(row)
        else:
            outbox.cancel_pending(row)
    return row


def _set_url(target: WebhookTarget, url: str) -> str | None:
    """Set the URL without its query, and return the query; None if the URL as it is shown keeps the stored one.

    Raises InvalidInput url_not_allowed.
    """
    if url == target.url and url.endswith(_HIDDEN):
        return None
    if url.endswith(("://" + _HIDDEN, HIDDEN_QUERY)):
        message = "the secret part of this URL is not stored: the whole URL is expected"
        raise errors.InvalidInput.for_field("url", "url_not_allowed", message)
    scheme = notifications.scheme(url)
    if scheme in notifications.SERVICES:
        target.url = _hidden_service(scheme)
        return url
    address, mark, query = url.partition("?")
    target.url = address + (HIDDEN_QUERY if mark else "")
    return query


def _hidden_service(scheme: str) -> str:
    """Return what is stored and shown instead of the URL of a service, all of which is a secret."""
    return f"{scheme}://{_HIDDEN}"


def delete(target: WebhookTarget, *, author: events.Author) -> None:
    """Delete a target and its messages."""
    with events.recorded_by(author):
        _locked(target).delete()


def rotate(target: WebhookTarget, *, author: events.Author) -> str:
    """Generate and return a new secret; messages are signed with it from now on."""
    secret = _generate()
    with events.recorded_by(author):
        row = _locked(target)
        _seal(row, secret, secrets_of(row)[1])
    target.refresh_from_db()
    return secret


def _generate() -> str:
    return f"{_PREFIX}{randomness.token_urlsafe(32)}"


def _seal(target: WebhookTarget, secret: str, query: str) -> None:
    """Store the secret and the query of the URL, or the URL of a service, as two lines of one sealed text."""
    text = f"{secret}\n{query}" if query else secret
    target.sealed = secrets.key_ring().seal(text.encode(), owner=owner(target.pk))
    rows = WebhookTarget.objects.filter(pk=target.pk)
    rows.update(sealed=target.sealed, secret_made_at=Now())
    target.refresh_from_db()


def secrets_of(target: WebhookTarget) -> tuple[str, str]:
    """Return the secret of a target and the query of its URL, or "", or the URL of a service. Raises SecretUnreadable."""
    text = secrets.key_ring().open(target.sealed, owner=owner(target.pk)).decode()
    secret, _, query = text.partition("\n")
    return secret, query


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


def _save(target: WebhookTarget, values: Mapping[str, Any]) -> str | None:
    """Set the values and save the row; return the query of a new URL."""
    query = _set_url(target, values["url"]) if "url" in values else None
    for name in values.keys() - {"url"}:
        setattr(target, name, values[name])
    for name in _SETS:
        setattr(target, name, sorted({*getattr(target, name)}))
    parts = urlsplit(target.url)
    target.host = parts.netloc.rpartition("@")[2] if parts.scheme == "https" else target.url
    try:
        with transaction.atomic():
            target.save()
    except IntegrityError as error:
        if database.constraint(error) != "pools_webhooktarget_name_key":
            raise
        raise errors.AlreadyExists(f"There is a target {target.name}.") from None
    return query
