"""Access to a registered cluster: its credentials, its client, and the check of its identity."""

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
from pools.platform.outbound.credentials import Access

OpenClient = Callable[[Connection], ClusterClient]


class IdentityChanged(faults.ClusterFault):
    """Another cluster than the registered one answers at this address; nothing was changed."""

    code = "identity_changed"


def secret_owner(cluster_id: int) -> str:
    """Return the owner to which the sealed credentials of a cluster are bound."""
    return f"cluster:{cluster_id}"


def cluster_access(connection: Connection) -> Access:
    """Return the address and the credentials of a cluster. Raises SecretUnreadable."""
    if connection.in_cluster:
        return kubeconfig.service_account_access(os.environ)
    ring = secrets.key_ring()
    return Access.load(ring.open(connection.sealed, owner=secret_owner(connection.cluster_id)))


def client_for(connection: Connection) -> ClusterClient:
    """Return a client of the cluster's API server."""
    return ClusterClient(
        cluster_access(connection),
        cluster=connection.cluster.name,
        allow_loopback=settings.IPAM_ALLOW_LOOPBACK_CLUSTERS,
    )


def verify_identity(connection: Connection, client: ClusterClient) -> str:
    """Return the uid of kube-system. Raises IdentityChanged if it is not the registered one."""
    identity = client.identity()
    if connection.identity and identity != connection.identity:
        raise IdentityChanged(
            f"Another cluster than the registered one answers at {connection.server}."
        )
    return identity


def store_identity(connection: Connection, identity: str) -> None:
    """Store the identity of the cluster at the first contact. Raises SameCluster."""
    try:
        with transaction.atomic():
            Connection.objects.filter(pk=connection.pk, identity="").update(identity=identity)
    except IntegrityError as error:
        # Not under which name: the message is stored, and read by tokens that may not know the other cluster.
        raise errors.SameCluster(
            "This cluster is registered under another name, which a test of the connection shows."
        ) from error
    connection.identity = identity
