"""Authenticate API servers, by the cluster's key in the path or by a client certificate.

Beside it: the secret key in the webhook paths of a cluster; the register stores only its digest.

The web server verifies certificates (`up --tls-client-ca`). IPAM_WEBHOOK_CLIENTS tells which
certificate is valid for which cluster.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from pools.core import errors
from pools.models import AddressSpace, Cluster
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


SOCKET = "gunicorn.socket"  # key in request.META; headers only set keys that begin with HTTP_


def authorized_space(request: HttpRequest, cluster: str, key: str) -> AddressSpace:
    """Return the address space of the cluster if the caller may send reviews of it.

    Raises NotAllowed for an unknown caller, NotFound if a known caller names an unknown cluster.
    """
    spaces = AddressSpace.objects.select_related("cluster")
    space = spaces.filter(cluster__name=cluster, name=AddressSpace.OWN).first()
    by_key = matches(key, space.cluster) if space and key else bool(key) and is_known(key)
    if space and by_key:
        return space
    if not by_key and not _speaks_for(cluster, certificate_names(request)):
        raise errors.NotAllowed("The cluster's key or a client certificate of it is required.")
    if space is None:
        raise errors.NotFound("There is no such cluster.")
    return space


def certificate_names(request: HttpRequest) -> set[str]:
    """Return the common name and alternative names of the verified client certificate."""
    read: Any = getattr(request.META.get(SOCKET), "getpeercert", None)
    return set(_names(read() or {})) if read else set()


def _names(certificate: dict[str, Any]) -> Iterator[str]:
    for part in certificate.get("subject", ()):
        yield from (value for name, value in part if name == "commonName")
    yield from (value for _, value in certificate.get("subjectAltName", ()))


def _speaks_for(cluster: str, names: set[str]) -> bool:
    """Return True if IPAM_WEBHOOK_CLIENTS has one of the names, or `cluster=name` with it."""
    for word in settings.IPAM_WEBHOOK_CLIENTS:
        only, _, name = word.rpartition("=")
        if name in names and only in {"", cluster}:
            return True
    return False
