"""Pools: list, filters, export, changes of several at once, and which pages a pool has."""

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.postgres.fields import ArrayField
from django.db.models import BigIntegerField, F, Func, IntegerField, QuerySet, Value
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from pools.admin.clusters import field as cluster_fields
from pools.admin.pools import (
    actions as pool_actions,
    blocks as block_list,
    cidr_migrations,
    form as pool_form,
    page,
    topology,
    usage_bars,
)
from pools.core import errors
from pools.models import AllocationRequest, Block, Category, Cluster, Environment, Pool
from pools.platform import events
from pools.platform.admin import (
    attributes,
    bulk_edit,
    columns,
    display,
    export,
    filters,
    forms as fields,
    large_tables,
    lists,
    objects,
    pages as admin_pages,
)
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.register import environments, pool_cidrs, pools, usage
from pools.register.utilization import forecasts


class EnvironmentBulkForm(bulk_edit.BulkForm):
    clearable = frozenset({"description"})
    description = fields.description_field()


def _change_pool(pool: Pool, values: Mapping[str, Any], author: events.Author) -> Pool:
    return pools.change(pool.pk, pools.PoolChange(**values), author=author)


def _show_pool(pool: Pool, name: str) -> str:
    if name == "cooldown_seconds":
        return pool_form.cooldown_text(pool.cooldown_seconds)
    return attributes.show_value(pool, name)


def _change_environment(
    environment: Environment, values: Mapping[str, Any], author: events.Author
) -> Environment:
    return environments.change(environment.pk, author=author, **values)


POOL_CHANGES = attributes.bulk_changes(
    Pool,
    _change_pool,
    rows=lambda _request: Pool.objects.select_related("cluster"),
    show=_show_pool,
    cooldown_seconds=fields.DurationField(
        label=_("Cooldown"),
        help_text=_("Time before a released block can be allocated to another holder."),
    ),
)
ENVIRONMENT_CHANGES = bulk_edit.BulkEdit(
    model=Environment,
    permissions=("pools.change_environment",),
    rows=lambda _request: Environment.objects.select_related("cluster"),
    form=EnvironmentBulkForm,
    change=_change_environment,
)


CIDRS_SHOWN = 3
BLOCKS_SHOWN = 12  # of a pool that cannot be deleted


class PoolList(large_tables.BoundedList):
    def get_queryset(self, *arguments: Any, **options: Any) -> QuerySet[Pool]:
        rows = super().get_queryset(*arguments, **options)
        return rows.prefetch_related("cidrs")

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Pool]) -> list[Any]:
        """Order by what is computed of a pool: its utilization, free blocks, forecast and state."""
        order = super().get_ordering(request, queryset)
        return [_computed_order(queryset, name) or name for name in order]


def _computed_order(rows: QuerySet[Pool], name: Any) -> Any:
    """Return the order of the pools by a computed column; None for another one."""
    column = str(name).removeprefix("-")
    if column not in _SORT_KEYS:
        return None
    shown = list(rows.select_related(None).only(*usage.FIELDS))
    _prepare(shown)
    shown.sort(key=lambda pool: (_SORT_KEYS[column](pool), pool.pk), reverse=str(name) != column)
    ids = Value([pool.pk for pool in shown], output_field=ArrayField(BigIntegerField()))
    return Func(ids, F("pk"), function="array_position", output_field=IntegerField())


def _prepare(rows: list[Any]) -> None:
    """Add to pools what their columns show."""
    stored = forecasts.stored_forecasts(pool.pk for pool in rows)
    for pool, families, state in page.measure(rows):
        shown: Any = pool
        shown.shown_forecasts = stored.get(pool.pk, {})
        shown.shown_usage, shown.shown_state = families, state


def _forecast_day(pool: Any) -> date:
    days = [forecast.day for forecast in pool.shown_forecasts.values() if forecast.day]
    return min(days, default=date.max)


_SORT_KEYS: dict[str, Callable[[Any], Any]] = {
    "utilization": lambda pool: max(
        (counts.ratio for counts in pool.shown_usage.values()), default=0
    ),
    "free": lambda pool: min((counts.free for counts in pool.shown_usage.values()), default=0),
    "forecast": _forecast_day,
    "state": lambda pool: pool.shown_state,
}


def _by_state(_request: HttpRequest, rows: QuerySet[Pool], state: str) -> QuerySet[Pool]:
    matching = [
        pool.pk
        for pool, families, pool_state in page.measure(
            rows.select_related(None).only(*usage.FIELDS)
        )
        if state == pool_state
        or (state == "high" and any(counts.is_nearly_full for counts in families.values()))
    ]
    return rows.filter(pk__in=matching)


def _state_choices(_request: HttpRequest) -> list[tuple[str, str]]:
    percent = {"percent": settings.IPAM_ALERT_WARNING_PERCENT}
    return [
        ("high", gettext("over %(percent)s %%") % percent),
        ("full", gettext("full")),
        ("pending", gettext("not in the cluster yet")),
        ("draining", gettext("draining")),
        ("active", gettext("active")),
    ]


def _free(pool: Any) -> SafeString:
    return display.stack(
        [
            display.number(counts.free, about=counts.approximate)
            for counts in pool.shown_usage.values()
        ]
    )


@admin.register(Pool)
class PoolAdmin(attributes.AttributedList[Pool], objects.ObjectAdmin[Pool]):
    form = pool_form.PoolForm
    form_template = "pool_form.html"
    list_display = (
        columns.link("name", _("name"), ordering="name"),
        columns.related("cluster", _("cluster"), ordering="cluster__name"),
        columns.label("category", _("category"), ordering="category"),
        Column(
            "cidrs",
            _("CIDRs"),
            lambda pool: display.stack(
                [display.address(row.cidr) for row in pool.cidrs.all()], most=CIDRS_SHOWN
            ),
        ),
        usage_bars.column(ordering="utilization"),
        Column("free", _("free"), _free, ordering="free"),
        Column(
            "forecast",
            _("forecast"),
            lambda pool: usage_bars.forecast_lines(pool.shown_forecasts),
            ordering="forecast",
        ),
        Column("state", _("state"), lambda pool: display.state(pool.shown_state), ordering="state"),
    )
    more_columns = (
        columns.text("description", _("description"), ordering="description"),
        Column("space", _("address space"), lambda pool: str(pool.space)),
        Column("cooldown", _("cooldown"), lambda pool: display.duration(pool.cooldown_seconds)),
        columns.timestamp("created_at", _("created"), ordering="created_at"),
    )
    list_per_page = 50
    list_filter = (
        cluster_fields.cluster_filter(),
        filters.by_value(_("category"), "category", Category),
        filters.custom(_("state"), "state", _state_choices, _by_state),
    )
    exported = ("id", "cluster.name", "name", "category", "cooldown_seconds", "description")
    search_help_text = _("Name, address or CIDR")
    ordering = ("cluster__name", "name")
    list_before_template = "cadastre/pools_intro.html"
    list_select_related = ("cluster", "space")
    changelist = PoolList
    list_pages = (POOL_CHANGES.page(),)
    row_pages = (
        Page("change", page.view),
        Page("topology", topology.of_pool),
        Page("allocate", pool_actions.allocate),
        Page("free", cluster_fields.next_free),
        Page("reserve", pool_actions.reserve),
        Page("unreserve", pool_actions.unreserve, path="unreserve/<int:range_id>"),
        Page("add_cidr", pool_actions.add_cidr, path="add-cidr"),
        Page("migrations", cidr_migrations.begin),
        Page("migration", cidr_migrations.view, path="migrations/<int:migration_id>"),
        lists.history(lambda pool: {"pool": pool.pk}, "pools.view_event"),
    )
    actions = (POOL_CHANGES.action(),)

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        return {
            "nothing_yet": not Pool.objects.exists(),
            "clusters_exist": Cluster.objects.exists(),
        }

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        _prepare(rows)

    def name_of(self, row: Pool) -> str:
        return row.name

    def form_context(self, request: HttpRequest, row: Pool | None) -> dict[str, Any]:
        return {} if row else {"button": gettext("Add the pool")}

    def add_errors(self, form: Any, error: errors.IpamError) -> None:
        form.add_errors(error)

    def show_form(self, request: HttpRequest, form: Any) -> HttpResponse:
        """Return the page of the form, or ask before a change that withholds or removes addresses."""
        if form.preview is None:
            return super().show_form(request, form)
        return admin_pages.confirmation(
            request,
            form.instance,
            title=gettext("Change pool %(pool)s?") % {"pool": form.instance.name},
            button=gettext("Save"),
            details="cadastre/preview.html",
            preview=form.preview,
        )

    def save_row(self, row: Pool | None, form: Any, author: events.Author) -> Pool:
        if row is None:
            return pools.create(**form.fixed_values(), **form.settings(), author=author)
        change = pools.PoolChange(**form.settings())
        return pools.change(row.pk, change, author=author, version=form.check_version)

    def response_add(
        self, request: HttpRequest, obj: Pool, post_url_continue: str | None = None
    ) -> HttpResponse:
        message = gettext("Pool %(pool)s was added. Free blocks: %(free)s.")
        values = {"pool": obj.name, "free": usage_bars.free_blocks(obj)}
        return self.show_saved(request, obj, message % values)

    def delete_model(self, request: HttpRequest, obj: Pool) -> None:
        pools.delete(obj.pk, author=admin_pages.author(request))

    def deletion_context(self, request: HttpRequest, row: Pool) -> dict[str, Any]:
        counts = usage.usage_by_pool([row])[row.pk].values()
        held, cooling = (sum(getattr(c, name) for c in counts) for name in ("held", "cooling"))
        cidrs = row.cidrs.select_related("pool__cluster")
        blocks = [
            block for cidr in cidrs for block in pool_cidrs.blocks_in_use(cidr)[:BLOCKS_SHOWN]
        ]
        end_cooldown = "" if held else block_list.end_cooldown_url(request, row)
        return {
            "refusal": bool(held or cooling),
            "effects": _blocking_uses(row, held, cooling) or _deletion_effects(row),
            "details": "cadastre/block_rows.html" if blocks else "",
            "blocks": blocks[:BLOCKS_SHOWN],
            "links": [(end_cooldown, gettext("End cooldown"))] if end_cooldown else [],
        }

    def export_view(self, request: HttpRequest, form: str = "csv") -> HttpResponseBase:
        """Export one row per pool and IP family, with its counts."""
        admin_pages.require(request, "pools.view_pool")
        pools = list(self.get_changelist_instance(request).queryset[: export.MOST])
        families = usage.usage_by_pool(pools)
        names = [*self.exported_names()]
        exported_values = export.attribute_reader(*names)
        head = ["cluster" if name == "cluster.name" else name.replace(".", "_") for name in names]
        head += ["family", "cidrs", "capacity", "held", "cooling", "reserved", "free"]
        rows = (
            (*exported_values(pool), family, _cidrs(pool, family), *_numbers(counts))
            for pool in pools
            for family, counts in families[pool.pk].items()
        )
        return export.download(form, "pools", head, rows)


def _cidrs(pool: Pool, family: int) -> str:
    return " ".join(str(row.cidr) for row in pool.cidrs.all() if row.cidr.version == family)


def _numbers(counts: usage.Usage) -> tuple[int, ...]:
    return counts.capacity, counts.held, counts.cooling, counts.reserved, counts.free


def _blocking_uses(pool: Pool, held: int, cooling: int) -> list[str]:
    """Return why a pool cannot be deleted; [] if nothing is in the way."""
    texts = []
    if held:
        text = ngettext(
            "%(number)s block is held. Release it, or reserve all CIDRs of the pool: it drains.",
            "%(number)s blocks are held. Release them, or reserve all CIDRs of the pool: it drains.",
            held,
        )
        texts.append(text % {"number": display.digits(held)})
    if cooling:
        text = ngettext(
            "%(number)s block is in cooldown, until %(until)s. Wait until it ends, or end it.",
            "%(number)s blocks are in cooldown, the last one until %(until)s. Wait until then, or end it.",
            cooling,
        )
        _count, until = pool_cidrs.cooldown_left(Block.objects.filter(pool=pool))
        shown = date_format(timezone.localtime(until), "Y-m-d H:i") if until else ""
        texts.append(text % {"number": display.digits(cooling), "until": shown})
    return texts


def _deletion_effects(pool: Pool) -> list[str]:
    cidrs = [str(cidr.cidr) for cidr in pool.cidrs.all()]
    effects = []
    if cidrs:
        text = gettext("CIDRs that are removed, with their reserved ranges: %(cidrs)s.")
        effects.append(text % {"cidrs": ", ".join(cidrs)})
    waiting = AllocationRequest.objects.filter(pool=pool, state="pending").count()
    if waiting:
        text = ngettext(
            "%(number)s pending request is removed.",
            "%(number)s pending requests are removed.",
            waiting,
        )
        effects.append(text % {"number": display.digits(waiting)})
    return [*effects, gettext("No block is in use. The history is kept.")]
