"""Changes of several pools or environments at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _

from pools.admin.pools import form as pool_form
from pools.models import Environment, Pool
from pools.platform import events
from pools.platform.admin import attributes, bulk_edit
from pools.platform.admin import forms as fields
from pools.platform.attributes import values as attribute_values
from pools.register import environments, pools


class PoolBulkForm(bulk_edit.BulkForm, attributes.BulkAttributeFields):
    attributed = Pool
    clearable = frozenset({"description"})
    description = fields.description_field()
    cooldown_seconds = fields.DurationField(
        label=_("Cooldown"),
        help_text=_("Time before a released block can be allocated to another holder."),
    )


class EnvironmentBulkForm(bulk_edit.BulkForm):
    clearable = frozenset({"description"})
    description = fields.description_field()


def _change_pool(pool: Pool, values: Mapping[str, Any], author: events.Author) -> Pool:
    of_pool, others = attribute_values.split(attributes.bulk_values(pool, values))
    change = pools.PoolChange(attributes=of_pool or None, **others)
    return pools.change(pool.pk, change, author=author)


def _show_pool(pool: Pool, name: str) -> str:
    if name == "cooldown_seconds":
        return pool_form.cooldown_text(pool.cooldown_seconds)
    return attributes.show_value(pool, name)


def _change_environment(
    environment: Environment, values: Mapping[str, Any], author: events.Author
) -> Environment:
    return environments.change(environment.pk, author=author, **values)


POOLS = bulk_edit.BulkEdit(
    model=Pool,
    permissions=("pools.change_pool",),
    rows=lambda _request: Pool.objects.select_related("cluster"),
    form=PoolBulkForm,
    change=_change_pool,
    show=_show_pool,
)
ENVIRONMENTS = bulk_edit.BulkEdit(
    model=Environment,
    permissions=("pools.change_environment",),
    rows=lambda _request: Environment.objects.select_related("cluster"),
    form=EnvironmentBulkForm,
    change=_change_environment,
)
