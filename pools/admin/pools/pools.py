"""Pools: list, filters, export, and the URLs of the pages of a pool."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pools.admin.pools import actions, bulk, cidr_migrations, page, usage_bars, yaml_page
from pools.admin.pools import forecasts as pool_forecasts
from pools.models import Cluster, Pool
from pools.models.pools import Category
from pools.platform.admin import display, export, lists, search_text
from pools.platform.admin import pages as admin_pages
from pools.register import usage
from pools.register.utilization import forecasts

CIDRS_SHOWN = 3


class PoolList(lists.BoundedList):
    """Adds usage, state and forecast to each pool, with one query each for the whole page."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        pools = list(self.result_list)
        families = usage.usage_by_pool(pools)
        stored = forecasts.stored_forecasts(pool.pk for pool in pools)
        for pool in pools:
            pool.shown_forecasts = stored.get(pool.pk, {})
            pool.shown_usage = families[pool.pk]
            pool.shown_state = page.pool_state(families[pool.pk], list(pool.cidrs.all()))
        self.result_list = pools


class PoolClusterFilter(lists.ChoiceFilter):
    title = _("cluster")
    parameter_name = "cluster"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [(str(pk), name) for pk, name in Cluster.objects.values_list("pk", "name")]

    def queryset(self, request: HttpRequest, rows: QuerySet[Pool]) -> QuerySet[Pool]:
        return rows.filter(cluster_id=self.selected_id()) if self.value() else rows


class PoolCategoryFilter(lists.ChoiceFilter):
    title = _("category")
    parameter_name = "category"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [(str(value), str(label)) for value, label in Category.choices]

    def queryset(self, request: HttpRequest, rows: QuerySet[Pool]) -> QuerySet[Pool]:
        return rows.filter(category=self.value()) if self.value() else rows


class PoolStateFilter(lists.ChoiceFilter):
    title = _("state")
    parameter_name = "state"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [
            (
                "high",
                gettext("over %(percent)s %%") % {"percent": settings.IPAM_ALERT_WARNING_PERCENT},
            ),
            ("full", gettext("full")),
            ("draining", gettext("draining")),
            ("active", gettext("active")),
        ]

    def queryset(self, request: HttpRequest, rows: QuerySet[Pool]) -> QuerySet[Pool]:
        if not self.value():
            return rows
        pools = list(rows.prefetch_related("cidrs__reserved_ranges", "cidrs__pool"))
        families = usage.usage_by_pool(pools)
        matching = [pool.pk for pool in pools if self.value() in _states(families[pool.pk], pool)]
        return rows.filter(pk__in=matching)


def _states(families: dict[int, usage.Usage], pool: Pool) -> set[str]:
    state = page.pool_state(families, list(pool.cidrs.all()))
    high = any(counts.is_nearly_full for counts in families.values())
    return {state, "high"} if high else {state}


@admin.register(Pool)
class PoolAdmin(lists.ReadOnlyAdmin[Pool]):
    list_display = (
        "shown_name",
        "shown_cluster",
        "shown_category",
        "shown_cidrs",
        "shown_bars",
        "shown_free",
        "shown_forecast",
        "shown_state",
    )
    list_display_links = None
    list_per_page = 50
    list_filter = (PoolClusterFilter, PoolCategoryFilter, PoolStateFilter)
    exported = ("id", "cluster.name", "name", "category", "cooldown_seconds", "description")
    search_fields = ("name",)
    search_help_text = _("Name, address or CIDR")
    ordering = ("cluster__name", "name")
    list_before_template = "cadastre/pools_intro.html"
    actions = (bulk.POOLS.action(),)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Pool]:
        rows = super().get_queryset(request).select_related("cluster")
        return rows.prefetch_related("cidrs__reserved_ranges", "cidrs__pool")

    def get_changelist(self, request: HttpRequest, **_options: Any) -> type[ChangeList]:
        return PoolList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Pool], search_term: str
    ) -> tuple[QuerySet[Pool], bool]:
        searched = search_text.parse(search_term)
        if searched.network is None:
            return queryset.filter(
                Q(name__icontains=searched.text) | Q(description__icontains=searched.text)
            ), False
        return queryset.filter(cidrs__cidr__net_overlaps=str(searched.network)).distinct(), False

    @admin.display(description=_("name"), ordering="name")
    def shown_name(self, pool: Pool) -> SafeString:
        return display.row_link(pool, pool.name)

    @admin.display(description=_("cluster"), ordering="cluster__name")
    def shown_cluster(self, pool: Pool) -> SafeString:
        return display.row_link(pool.cluster)

    @admin.display(description=_("category"), ordering="category")
    def shown_category(self, pool: Pool) -> str:
        return pool.get_category_display()

    @admin.display(description=_("CIDRs"))
    def shown_cidrs(self, pool: Pool) -> SafeString:
        cidrs = [cidr.cidr for cidr in pool.cidrs.all()]
        listed = format_html_join(
            "", "<span>{}</span>", ((display.address(cidr),) for cidr in cidrs[:CIDRS_SHOWN])
        )
        more = len(cidrs) - CIDRS_SHOWN
        rest = (
            format_html("<span>{}</span>", gettext("and %(number)s more") % {"number": more})
            if more > 0
            else ""
        )
        return format_html('<span class="cad-stack">{}{}</span>', listed, rest)

    @admin.display(description=_("utilization"))
    def shown_bars(self, pool: Any) -> SafeString:
        return format_html('<span class="cad-stack">{}</span>', usage_bars.bars(pool.shown_usage))

    @admin.display(description=_("free"))
    def shown_free(self, pool: Any) -> SafeString:
        numbers = (
            (display.number(counts.free, about=counts.approximate),)
            for counts in pool.shown_usage.values()
        )
        return format_html(
            '<span class="cad-stack">{}</span>', format_html_join("", "<span>{}</span>", numbers)
        )

    @admin.display(description=_("forecast"))
    def shown_forecast(self, pool: Any) -> SafeString:
        return pool_forecasts.column(pool.shown_forecasts)

    @admin.display(description=_("state"))
    def shown_state(self, pool: Any) -> SafeString:
        return display.state(pool.shown_state)

    def export_view(self, request: HttpRequest, form: str = "csv") -> HttpResponseBase:
        """Export one row per pool and IP family, with its counts."""
        admin_pages.require(request, "pools.view_pool")
        pools = list(self.get_changelist_instance(request).queryset[: export.MOST])
        families = usage.usage_by_pool(pools)
        exported_values = export.attribute_reader(*self.exported)
        head = ["id", "cluster", "name", "category", "cooldown_seconds", "description"]
        head += ["family", "cidrs", "capacity", "held", "cooling", "reserved", "free"]
        rows = (
            (*exported_values(pool), family, _cidrs(pool, family), *_numbers(counts))
            for pool in pools
            for family, counts in families[pool.pk].items()
        )
        return export.download(form, "pools", head, rows)

    # --- pages ------------------------------------------------------------------------------------

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pools.add_pool")

    def has_change_permission(self, request: HttpRequest, obj: Pool | None = None) -> bool:
        return request.user.has_perm("pools.change_pool")

    def has_delete_permission(self, request: HttpRequest, obj: Pool | None = None) -> bool:
        return request.user.has_perm("pools.delete_pool")

    def get_urls(self) -> list[URLPattern]:
        pages = [
            ("edit", actions.edit),
            ("delete", actions.delete),
            ("allocate", actions.allocate),
            ("reserve", actions.reserve),
            ("add-cidr", actions.add_cidr),
            ("migrations", cidr_migrations.begin),
            ("yaml", yaml_page.view),
        ]
        urls = [
            path(
                f"<int:pool_id>/{name}/",
                admin_pages.in_admin(_with_pool(view)),
                name=f"pools_pool_{name.replace('-', '_')}",
            )
            for name, view in pages
        ]
        urls.append(
            path(
                "<int:pool_id>/unreserve/<int:range_id>/",
                admin_pages.in_admin(_with_pool(actions.unreserve)),
                name="pools_pool_unreserve",
            )
        )
        urls.append(
            path(
                "<int:pool_id>/migrations/<int:migration_id>/",
                admin_pages.in_admin(_with_pool(cidr_migrations.view)),
                name="pools_pool_migration",
            )
        )
        return [bulk.POOLS.url(), *urls, *super().get_urls()]

    def add_view(self, request: HttpRequest, *_args: Any, **_options: Any) -> HttpResponse:
        return actions.add(request)

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        admin_pages.require(request, "pools.view_pool")
        return page.view(request, _pool(lists.parse_id(object_id)))

    def history_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        admin_pages.require(request, "pools.view_event")
        url = reverse("admin:pools_event_changelist", query={"pool": object_id})
        return HttpResponseRedirect(url)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        none = not Pool.objects.exists()
        clusters = Cluster.objects.exists()
        more = {"nothing_yet": none, "clusters_exist": clusters, **(extra_context or {})}
        return super().changelist_view(request, more)


def _cidrs(pool: Pool, family: int) -> str:
    return " ".join(str(row.cidr) for row in pool.cidrs.all() if row.cidr.version == family)


def _numbers(counts: usage.Usage) -> tuple[int, ...]:
    return counts.capacity, counts.held, counts.cooling, counts.reserved, counts.free


def _with_pool(view: Any) -> Any:
    def view_pool(request: HttpRequest, pool_id: int, **more: Any) -> HttpResponse:
        # Before the lookup, so that a 404 does not reveal which pools exist.
        admin_pages.require(request, "pools.view_pool")
        answer: HttpResponse = view(request, _pool(pool_id), **more)
        return answer

    return view_pool


def _pool(pool_id: int) -> Pool:
    pool = Pool.objects.select_related("cluster", "space").filter(pk=pool_id).first()
    if pool is None:
        raise Http404(gettext("This pool does not exist."))
    return pool
