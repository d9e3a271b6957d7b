"""Template filters and tags of the admin pages (library `cadastre`), and the banner of recovery mode."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import template
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from pools.admin import documentation, events, find, journal
from pools.admin.clusters import drift, observed
from pools.admin.pools import usage_bars
from pools.clusters import recovery_mode
from pools.models import Block, Event
from pools.platform.admin import (
    attributes,
    display,
    lists,
    live as live_parts,
    menu,
    pages,
    preferences,
)
from pools.register import usage

SHOWN_CLUSTERS = 5


@dataclass(frozen=True)
class Banner:
    """The banner. `clusters` are the first clusters that are not synced yet.

    None if the user may not view clusters; `more` counts the others.
    """

    since: datetime
    reason: str
    clusters: list[str] | None
    more: int = 0


def banner(request: HttpRequest | None) -> Banner | None:
    """Return the banner for this user; None outside recovery mode or without a login."""
    if request is None or not getattr(request, "user", None) or not request.user.is_authenticated:
        return None
    row = recovery_mode.current_recovery()
    if row is None:
        return None
    if not request.user.has_perm("pools.view_cluster"):
        return Banner(row.since, "", None)
    waiting = recovery_mode.clusters_to_list()
    return Banner(
        row.since, row.reason, waiting[:SHOWN_CLUSTERS], max(0, len(waiting) - SHOWN_CLUSTERS)
    )


register = template.Library()

register.filter("num", display.number)
register.filter("digits", display.digits)
register.filter("size", display.size)
register.filter("mono", display.address)
register.filter("plain", display.plain_cidr)
register.filter("find_link", display.address_link)
register.filter("search_link", display.search_link)
register.filter("timestamp", display.timestamp)
register.filter("exact_time", display.exact_time)
register.filter("next_time", display.next_time)
register.filter("state", display.state)
register.filter("row_link", display.row_link)
register.filter("bar", usage_bars.bar)
register.filter("bars", usage_bars.bars)
register.filter("share_bar", display.share_bar)
register.filter("highest_utilization", usage_bars.highest_utilization)
register.filter("connection_status", display.connection_status)
register.filter("outcome", observed.outcome)
register.filter("duration", observed.duration)
register.filter("counts", observed.counts)
register.filter("manifest_value", drift.value)
register.filter("drift_state", drift.state)
register.filter("event_type", events.type_label)
register.filter("capitalized", pages.capitalize)
register.filter("sentence", pages.sentence)
register.filter("menu_title", menu.menu_title)
register.filter("journal_kind", journal.kind_label)
register.filter("tags", attributes.show_tags)


@register.simple_tag(takes_context=True)
def recovery(context: template.Context) -> Banner | None:
    """Return the recovery-mode banner; None outside recovery mode."""
    return banner(context.get("request"))


@register.simple_tag(takes_context=True)
def page_path(context: template.Context) -> menu.PagePath:
    """Return the path to this page from the menu, and its heading."""
    return menu.path_to(context.flatten(), context["request"])


@register.inclusion_tag("cadastre/list_tools.html", takes_context=True)
def list_tools(context: template.Context) -> dict[str, Any]:
    """Return the menus of a list: its columns and its saved filters; other lists of Django have none."""
    changelist = context["cl"]
    if not isinstance(changelist.model_admin, lists.ListAdmin):
        return {}
    request = context["request"]
    tools = preferences.tools(request, changelist)
    return {**tools, "cl": changelist, "parameters": request.GET.urlencode()}


@register.inclusion_tag("cadastre/list_rows.html", takes_context=True)
def list_table(context: template.Context, cl: Any) -> dict[str, Any]:
    """Show the rows of a list."""
    return lists.table(cl, context["request"])


@register.simple_tag(takes_context=True)
def chapter(context: template.Context) -> str:
    """Return the URL of the chapter of the documentation about this page."""
    return documentation.chapter_url(context["request"])


@register.simple_tag(takes_context=True)
def back(context: template.Context, name: str) -> str:
    """Return the URL of the list that an action was started from, with its filters."""
    return lists.list_url(context["request"], name)


@register.inclusion_tag("cadastre/search_field.html", takes_context=True)
def search_field(context: template.Context) -> dict[str, Any]:
    """Show the button that opens the palette, except on the Find page, which has a search field."""
    request = context["request"]
    here = request.path == reverse("admin:find")
    return {"shown": not here and find.may_search(request)}


@register.inclusion_tag("cadastre/journal.html", takes_context=True, name="journal")
def journal_of(context: template.Context, row: Any) -> dict[str, Any]:
    """Show the newest notes about an object, and a form to add one."""
    return journal.context(context["request"], row)


@register.inclusion_tag("cadastre/attributes.html", takes_context=True, name="attributes")
def attributes_of(
    context: template.Context, row: Any, may_change: bool | None = None
) -> dict[str, Any]:
    """Show the description, owner, tags and custom fields of an object, and a pencil that opens them in place.

    Without `may_change` the permission of the model decides about the pencil.
    """
    meta = row._meta
    if may_change is None:
        may_change = context["user"].has_perm(f"{meta.app_label}.change_{meta.model_name}")
    facts, empty = attributes.facts(row)
    edit = reverse(f"admin:{meta.app_label}_{meta.model_name}_edit", args=[row.pk])
    return {"facts": facts, "empty": ", ".join(empty), "edit": edit if may_change else ""}


@register.simple_block_tag(takes_context=True)
def tab(context: template.Context, content: str, name: str, title: str) -> SafeString | str:
    """Show a part of an object's page as a tab of unfold's kind, which `#name` opens; an empty part is left out.

    Without scripts all parts are shown, one below the other.
    """
    if not content.strip():
        return ""
    context["object_tabs"].append({"title": title, "inline": name, "has_permission": True})
    return format_html(
        '<div class="cad-tab" id="{0}" x-show="activeTab == \'{0}\'">{1}</div>', name, content
    )


@register.simple_block_tag(takes_context=True)
def live(context: template.Context, content: str, name: object, reload: bool = False) -> SafeString:
    """Mark a part of a page that renews itself; with `reload` the page is loaded anew once it is gone."""
    return live_parts.part(context["request"], str(name), content, reload=reload)


@register.filter
def usage_number(counts: usage.Usage, name: str) -> SafeString:
    """Return one count of a usage, for example `free`; estimates are marked with ≈."""
    return display.number(getattr(counts, name), about=counts.approximate and name != "capacity")


@register.filter
def holder(row: Block | Event) -> SafeString:
    """Return the holder of a block or of an event as a link."""
    return display.holder(row.holder_kind, row.holder_id)


@register.filter
def family_value(by_family: dict[int, Any], family: int) -> Any:
    """Return the value of one IP family."""
    return by_family.get(family, "")


@register.filter
def tenant(row: Any) -> SafeString:
    """Return `organization/environment` of a block or tenure as a link to its search results."""
    return display.search_link("/".join(part for part in (row.org, row.env) if part))


@register.filter
def block_link(block: Block) -> SafeString:
    return display.address(block.cidr, display.url_of(block))


@register.filter
def has_invalid_fields(form: Any) -> bool:
    """Return True if a field of a form, or of one of a set of forms, has an error."""
    forms = getattr(form, "forms", [form])
    return any(set(getattr(part, "errors", ())) - {"__all__"} for part in forms)


@register.filter
def url(row: Any) -> str:
    return display.url_of(row)


@register.filter
def can(user: Any, permission: str) -> bool:
    """Return True if the user has the permission: `user|can:"pools.allocate"`."""
    return bool(user.has_perm(permission))


@register.filter
def holder_named(holder: dict[str, str]) -> SafeString:
    """Return a holder of the history API (`kind`, `id`) as a link."""
    return display.holder(holder["kind"], holder["id"])


@register.filter
def by_family(numbers: dict[int, int]) -> SafeString:
    """Return the numbers of both families that are not 0: `v4 12`; otherwise 0."""
    shown = [(f"v{family}", display.digits(count)) for family, count in numbers.items() if count]
    if not shown:
        return SafeString('<span class="cad-num">0</span>')
    return format_html_join(
        "", '<span class="cad-num"><span class="cad-kind">{}</span> {}</span>', shown
    )
