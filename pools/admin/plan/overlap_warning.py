"""The warning of the forms that take a CIDR: what it would overlap is named before it is saved."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms

from pools.core import addresses
from pools.models import Cluster, Pool
from pools.register import overlaps

_TICK = "accept_overlaps"
_MOST = 20  # lines of the warning


def accepted(
    form: forms.Form, networks: Iterable[addresses.Network], owner: overlaps.NetworkOwner
) -> bool:
    """Return True if the networks overlap nothing, or if the user has ticked that they may.

    If not, nothing is saved, and the page of the form shows what they overlap (overlap_warning.html).
    """
    found = [
        (network, other, present)
        for network in networks
        for other, present in overlaps.find_new_overlaps(network, owner)
    ]
    shown: Any = form
    shown.overlaps, shown.overlaps_accepted = found[:_MOST], _TICK in form.data
    return not found or shown.overlaps_accepted


def owner_of_pool(pool: Pool) -> overlaps.NetworkOwner:
    """Return the owner that CIDRs have which a pool would get."""
    cluster, space = pool.cluster, pool.space
    return overlaps.NetworkOwner(cluster.pk, cluster.name, space.name, pool.category, pool.pk)


def owner_of_new_pool(cluster: Cluster, category: str) -> overlaps.NetworkOwner:
    return overlaps.NetworkOwner(cluster.pk, cluster.name, "", category)


def owner_of_prefix(cluster: Cluster | None) -> overlaps.NetworkOwner:
    """Return the owner that the prefix of a cluster has; None is a cluster that is not added yet."""
    number, name = (cluster.pk, cluster.name) if cluster else (0, "")
    return overlaps.NetworkOwner(number, name, "", overlaps.PREFIX)
