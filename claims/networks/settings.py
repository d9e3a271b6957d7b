"""How the VMs of a cluster are told of their addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from claims.models import NetworkSettings
from pools.core import holders
from pools.models import Cluster
from pools.platform import database, events


def for_cluster(cluster: Cluster) -> NetworkSettings:
    """The cluster's settings; what holds as long as nobody chose is not stored."""
    row = NetworkSettings.objects.filter(cluster=cluster).first()
    return row or NetworkSettings(cluster=cluster)


def change(
    cluster: Cluster, values: Mapping[str, Any], *, author: events.Author
) -> NetworkSettings:
    """Change those of `annotation`, `default_nad_namespace` and `default_nad_name` that are given."""
    with events.recorded(author):
        NetworkSettings.objects.get_or_create(cluster=cluster)
        row = NetworkSettings.objects.select_for_update().get(cluster=cluster)
        for name, value in values.items():
            setattr(row, name, value)
        database.save(row)
    return row


def parse_namespace(value: object, field: str = "") -> str:
    """The namespace of the default NAD; InvalidInput wrong_type, k8s_name."""
    return holders.parse_name(value, field=field, kind="label")


def parse_name(value: object, field: str = "") -> str:
    """The name of the default NAD; InvalidInput wrong_type, k8s_name."""
    return holders.parse_name(value, field=field)
