"""Authenticate API servers, by the cluster's key in the path or by a client certificate.

The web server verifies certificates (`up --tls-client-ca`). IPAM_WEBHOOK_CLIENTS tells which
certificate is valid for which cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from pools.core import errors
from pools.models import AddressSpace
from pools.webhooks import keys

SOCKET = "gunicorn.socket"  # key in request.META; headers only set keys that begin with HTTP_


def authorized_space(request: HttpRequest, cluster: str, key: str) -> AddressSpace:
    """Return the address space of the cluster if the caller may send reviews of it.

    Raises NotAllowed for an unknown caller, NotFound if a known caller names an unknown cluster.
    """
    spaces = AddressSpace.objects.select_related("cluster")
    space = spaces.filter(cluster__name=cluster, name=AddressSpace.OWN).first()
    by_key = keys.matches(key, space.cluster) if space and key else bool(key) and keys.is_known(key)
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
