"""The secret part of the address at which a cluster's API server asks; only its digest is kept."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from pools.models import Cluster
from pools.platform import database, events

PREFIX = "cadw_"  # by which logs and secret scanners know it


def make(cluster: Cluster, *, author: events.Author) -> str:
    """A new key in the place of the one before; nobody can read it again."""
    key = PREFIX + secrets.token_urlsafe(32)
    with events.recorded(author):
        Cluster.objects.filter(pk=cluster.pk).update(
            webhook_digest=_digest(key), webhook_key_made_at=database.now()
        )
    return key


def fits(key: str, cluster: Cluster) -> bool:
    """Whether this is the cluster's key."""
    return bool(cluster.webhook_digest) and hmac.compare_digest(
        cluster.webhook_digest, _digest(key)
    )


def is_known(key: str) -> bool:
    """Whether it is the key of any cluster."""
    return Cluster.objects.filter(webhook_digest=_digest(key)).exists()


def _digest(key: str) -> str:
    # 256 random bits: nothing is gained by a slow hash.
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
