"""Who may ask: an API server with the cluster's key in its path, or with a client certificate.

Certificates are verified by the web server (`up --tls-client-ca`); which of them speak for which
cluster says IPAM_WEBHOOK_CLIENTS.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from pools.core import errors
from pools.models import AddressSpace
from pools.webhooks import keys

SOCKET = "gunicorn.socket"  # key in request.META; no header can set one without HTTP_


def space_of(request: HttpRequest, cluster: str, key: str) -> AddressSpace:
    """The cluster's own address space, for a caller who may ask about it.

    Raises NotAllowed for anybody else, NotFound for a known caller when there is no such cluster.
    """
    spaces = AddressSpace.objects.select_related("cluster")
    space = spaces.filter(cluster__name=cluster, name=AddressSpace.OWN).first()
    by_key = keys.fits(key, space.cluster) if space and key else bool(key) and keys.is_known(key)
    if space and by_key:
        return space
    if not by_key and not _speaks_for(cluster, certificate_names(request)):
        raise errors.NotAllowed("Neither the cluster's key nor a client certificate of its own.")
    if space is None:
        raise errors.NotFound("There is no such cluster.")
    return space


def certificate_names(request: HttpRequest) -> set[str]:
    """Common name and alternative names of the verified client certificate."""
    read: Any = getattr(request.META.get(SOCKET), "getpeercert", None)
    return set(_names(read() or {})) if read else set()


def _names(certificate: dict[str, Any]) -> Iterator[str]:
    for part in certificate.get("subject", ()):
        yield from (value for name, value in part if name == "commonName")
    yield from (value for _, value in certificate.get("subjectAltName", ()))


def _speaks_for(cluster: str, names: set[str]) -> bool:
    """IPAM_WEBHOOK_CLIENTS has names of certificates, `cluster=name` for one cluster only."""
    for word in settings.IPAM_WEBHOOK_CLIENTS:
        only, _, name = word.rpartition("=")
        if name in names and only in {"", cluster}:
            return True
    return False
