"""Changes of several clusters at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pools.models import Cluster
from pools.platform import events
from pools.platform.admin import attributes, bulk_edit
from pools.platform.admin import forms as fields
from pools.register import clusters


class ClusterBulkForm(bulk_edit.BulkForm, attributes.BulkAttributeFields):
    attributed = Cluster
    clearable = frozenset({"description"})
    description = fields.description_field()


def _change(cluster: Cluster, values: Mapping[str, Any], author: events.Author) -> Cluster:
    attribute_values, others = attributes.bulk_values(cluster, values)
    return clusters.change(cluster, {**others, **attribute_values}, author=author)


CLUSTERS = bulk_edit.BulkEdit(
    model=Cluster,
    permissions=("pools.change_cluster",),
    rows=lambda _request: Cluster.objects.all(),
    form=ClusterBulkForm,
    change=_change,
    show=attributes.show_value,
)
