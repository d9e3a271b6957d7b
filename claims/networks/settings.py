"""Settings of VM networks: how the VMs of a cluster receive their addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from claims.models import NetworkSettings
from pools.models import Cluster
from pools.platform import database, events


def for_cluster(cluster: Cluster) -> NetworkSettings:
    """Return the cluster's settings, or an unsaved row with the defaults."""
    row = NetworkSettings.objects.filter(cluster=cluster).first()
    return row or NetworkSettings(cluster=cluster)


def change(
    cluster: Cluster,
    values: Mapping[str, Any],
    *,
    author: events.Author,
    version: database.Version = None,
) -> NetworkSettings:
    """Change settings; keys of `values` are `annotation`, `default_nad_namespace`, `default_nad_name`.

    Raises VersionMismatch.
    """
    with events.recorded_by(author):
        NetworkSettings.objects.get_or_create(cluster=cluster)
        row = NetworkSettings.objects.select_for_update().get(cluster=cluster)
        database.require_version(row, version)
        for name, value in values.items():
            setattr(row, name, value)
        database.save(row)
    return row
