"""Lookup of networks by logical name, as IPPools and claims refer to them."""

from __future__ import annotations

from claims.models import Network


def get_or_create(cluster_id: int, name: str) -> Network:
    """Return the cluster's logical network; if it has no row, create one of kind UNKNOWN.

    The kind is set when the network's object is observed. Call it in a transaction.
    """
    row, _ = Network.objects.get_or_create(cluster_id=cluster_id, name=name)
    return row
