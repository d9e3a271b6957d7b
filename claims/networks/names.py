"""Networks by the name that IPPools and claims use."""

from __future__ import annotations

from claims.models import Network


def network(cluster_id: int, name: str) -> Network:
    """The cluster's logical network of that name; one that nobody has seen yet gets a row.

    Its kind is then UNKNOWN, until its object is seen. Stands in a transaction of the caller.
    """
    row, _ = Network.objects.get_or_create(cluster_id=cluster_id, name=name)
    return row
