"""The secret key in the webhook paths of a cluster; the register stores only its digest."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from pools.models import Cluster
from pools.platform import database, events

PREFIX = "cadw_"  # logs and secret scanners recognize keys by it


def make(cluster: Cluster, *, author: events.Author) -> str:
    """Replace the cluster's key and return the new one, which cannot be read again."""
    key = PREFIX + secrets.token_urlsafe(32)
    with events.recorded_by(author):
        Cluster.objects.filter(pk=cluster.pk).update(
            webhook_digest=_digest(key), webhook_key_made_at=database.now()
        )
    return key


def matches(key: str, cluster: Cluster) -> bool:
    """Return True if this is the cluster's key."""
    return bool(cluster.webhook_digest) and hmac.compare_digest(
        cluster.webhook_digest, _digest(key)
    )


def is_known(key: str) -> bool:
    """Return True if this is the key of any cluster."""
    return Cluster.objects.filter(webhook_digest=_digest(key)).exists()


def _digest(key: str) -> str:
    # The key has 256 random bits: a slow hash would not make it safer.
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
