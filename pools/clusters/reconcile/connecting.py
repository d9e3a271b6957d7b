"""Reaching a registered cluster: its credentials, and whether it is still the same one."""

from __future__ import annotations

import os
from collections.abc import Callable

from django.conf import settings
from django.db import IntegrityError, transaction

from pools.clusters.client import kubeconfig
from pools.clusters.client.api_client import Gateway
from pools.core import errors
from pools.models import Connection
from pools.platform.outbound import faults, secrets
from pools.platform.outbound.access import Access

Open = Callable[[Connection], Gateway]


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
    ring = secrets.configured()
    return Access.load(ring.open(connection.sealed, owner=owner(connection.cluster_id)))


def gateway(connection: Connection) -> Gateway:
    """The cluster's API server."""
    return Gateway(
        access(connection),
        cluster=connection.cluster.name,
        allow_loopback=settings.IPAM_ALLOW_LOOPBACK_CLUSTERS,
    )


def recognise(connection: Connection, reached: Gateway) -> str:
    """The uid of kube-system. Raises IdentityChanged when it is not the one that was registered."""
    found = reached.identity()
    if connection.identity and found != connection.identity:
        raise IdentityChanged(
            f"The cluster behind {connection.server} is another one than was registered."
        )
    return found


def pin(connection: Connection, found: str) -> None:
    """Remember who the cluster is, at the first contact. Raises SameCluster."""
    try:
        with transaction.atomic():
            Connection.objects.filter(pk=connection.pk, identity="").update(identity=found)
    except IntegrityError as error:
        other = Connection.objects.select_related("cluster").get(identity=found)
        raise errors.SameCluster(
            f"This cluster is registered already, as {other.cluster}."
        ) from error
    connection.identity = found
