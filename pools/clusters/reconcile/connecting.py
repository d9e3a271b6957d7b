"""Reaching a registered cluster: its credentials, and whether it is still the same one."""

from __future__ import annotations

import os
from collections.abc import Callable

from django.conf import settings
from django.db import IntegrityError, transaction

from pools.clusters.client import kubeconfig
from pools.clusters.client.api_client import ClusterClient
from pools.core import errors
from pools.models import Connection
from pools.platform.outbound import faults, secrets
from pools.platform.outbound.access import Access

Open = Callable[[Connection], ClusterClient]


class IdentityChanged(faults.ClusterFault):
    """Behind the address is another cluster than the one that was registered; nothing was done."""

    code = "identity_changed"
    reason = "IdentityChanged"
    permanent = True


def owner(cluster_id: int) -> str:
    """What a cluster's credentials are bound to."""
    return f"cluster:{cluster_id}"


def access(connection: Connection) -> Access:
    """Where and with what credentials the cluster is reached. Raises SecretUnreadable."""
    if connection.in_cluster:
        return kubeconfig.in_cluster(os.environ)
    ring = secrets.key_ring()
    return Access.load(ring.open(connection.sealed, owner=owner(connection.cluster_id)))


def client_for(connection: Connection) -> ClusterClient:
    """The cluster's API server."""
    return ClusterClient(
        access(connection),
        cluster=connection.cluster.name,
        allow_loopback=settings.IPAM_ALLOW_LOOPBACK_CLUSTERS,
    )


def recognise(connection: Connection, client: ClusterClient) -> str:
    """The uid of kube-system. Raises IdentityChanged when it is not the one that was registered."""
    identity = client.identity()
    if connection.identity and identity != connection.identity:
        raise IdentityChanged(
            f"The cluster behind {connection.server} is another one than was registered."
        )
    return identity


def pin(connection: Connection, identity: str) -> None:
    """Remember who the cluster is, at the first contact. Raises SameCluster."""
    try:
        with transaction.atomic():
            Connection.objects.filter(pk=connection.pk, identity="").update(identity=identity)
    except IntegrityError as error:
        other = Connection.objects.select_related("cluster").get(identity=identity)
        raise errors.SameCluster(
            f"This cluster is registered already, as {other.cluster}."
        ) from error
    connection.identity = identity
