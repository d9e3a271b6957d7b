"""The quota of addresses in a namespace, for what VM owners request (IPAM_VM_OWNER_QUOTA).

All addresses of the namespace's entries and claims count, on all networks of the cluster, whoever registered them.
What comes from clusters is never refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from django.conf import settings

from pools.core import errors
from pools.platform import advisory_locks, database
from pools.sql import statements


@contextmanager
def enforce(cluster_id: int, namespaces: Iterable[str]) -> Iterator[None]:
    """Raise QuotaExceeded if the changes inside give a namespace more addresses than the quota.

    The caller opens the transaction and holds no other lock yet. The namespaces are locked until its end, so that
    concurrent requests do not exceed the quota together (rule `quota-is-never-exceeded`).
    """
    quota: int = settings.IPAM_VM_OWNER_QUOTA
    names = sorted(set(namespaces)) if quota else []
    for name in names:
        values = {"lock": advisory_locks.QUOTA, "namespace": f"{cluster_id}/{name}"}
        database.fetch(_LOCK, values)
    before = _count_addresses(cluster_id, names)
    yield
    for name, count in _count_addresses(cluster_id, names).items():
        if count > max(quota, before.get(name, 0)):
            raise errors.QuotaExceeded(
                f"The namespace {name} would have {count} addresses; its VM owners may take {quota}."
                " Release some, or ask an administrator for more."
            )


def _count_addresses(cluster_id: int, names: list[str]) -> dict[str, int]:
    if not names:
        return {}
    return dict(database.rows(_COUNT, {"cluster": cluster_id, "namespaces": names}))


_LOCK = "SELECT pg_advisory_xact_lock(%(lock)s, hashtext(%(namespace)s))"
_COUNT = statements.read("claims/addresses_of_namespaces")
