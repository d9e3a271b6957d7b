"""A pool that opens an alert."""

from pools.models import Alert, Cluster
from pools.platform.conditions import evaluation
from tests import factories


def full_pool(cluster: Cluster | None = None, cidr: str = "10.0.0.0/30", env: str = "") -> Alert:
    """The alert of a pool without a free block."""
    pool = factories.pool(cidr, within=cluster)
    factories.drain(pool, env=env)
    evaluation.evaluate()
    return Alert.objects.get(code="pool_nearly_full", subject__startswith=f"pool/{pool.pk}/")
