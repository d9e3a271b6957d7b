"""The looks of values (pools.platform.admin.display) for the templates."""

from __future__ import annotations

from typing import Any

from django import template
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from pools.admin import events, recovery_mode
from pools.admin.clusters import drift, sync_runs
from pools.admin.pools import usage_bars
from pools.models import Block, Event
from pools.platform.admin import display, lists, menu, pages
from pools.register import usage

register = template.Library()

register.filter("num", display.number)
register.filter("digits", display.digits)
register.filter("mono", display.address)
register.filter("plain", display.plain_cidr)
register.filter("found", display.address_link)
register.filter("named", display.search_link)
register.filter("when", display.when)
register.filter("state", display.state)
register.filter("to", display.to)
register.filter("bar", usage_bars.bar)
register.filter("bars", usage_bars.bars)
register.filter("share_bar", display.share_bar)
register.filter("most", usage_bars.most)
register.filter("percent", usage_bars.percent)
register.filter("standing", display.connection_status)
register.filter("outcome", sync_runs.outcome)
register.filter("took", sync_runs.took)
register.filter("counts", sync_runs.counts)
register.filter("manifest_value", drift.value)
register.filter("drift_state", drift.state)
register.filter("event_type", events.type_of)
register.filter("begun", pages.capitalize)
register.filter("menu_entry", menu.entry)


@register.simple_tag(takes_context=True)
def recovery(context: template.Context) -> recovery_mode.Banner | None:
    """What every page says while the register recovers."""
    return recovery_mode.banner(context.get("request"))


@register.simple_tag(takes_context=True)
def back(context: template.Context, name: str) -> str:
    """The list that an action was started from, with its filters."""
    return lists.list_url(context["request"], name)


@register.filter
def about(one: usage.Usage, name: str) -> SafeString:
    """One of the counts of a usage; estimates are marked."""
    return display.number(getattr(one, name), about=one.approximate and name != "capacity")


@register.filter
def holder(one: Block | Event) -> SafeString:
    """Whoever holds the block, or whom the event is about."""
    return display.holder(one.holder_kind, one.holder_id)


@register.filter
def of_family(found: dict[int, Any], family: int) -> Any:
    """What is said of one family."""
    return found.get(family, "")


@register.filter
def tenant(one: Any) -> SafeString:
    """The environment of a block or tenure, after its organisation; it leads to what they have."""
    return display.search_link("/".join(part for part in (one.org, one.env) if part))


@register.filter
def block_link(one: Block) -> SafeString:
    return display.address(one.cidr, display.url_of(one))


@register.filter
def count(number: int, words: str) -> str:
    """`3|count:"block,blocks"` -> `3 blocks`."""
    one, _, many = words.partition(",")
    return f"{display.digits(number)} {one if number == 1 else many}"


@register.filter
def url(row: Any) -> str:
    return display.url_of(row)


@register.filter
def can(user: Any, permission: str) -> bool:
    """`user|can:"pools.allocate"`."""
    return bool(user.has_perm(permission))


@register.filter
def holder_named(holder: dict[str, str]) -> SafeString:
    """A holder as history tells it."""
    return display.holder(holder["kind"], holder["id"])


@register.filter
def by_family(numbers: dict[int, int]) -> SafeString:
    """The numbers of both families as far as they are not 0: `v4 12`, or 0."""
    found = [(f"v{family}", display.digits(count)) for family, count in numbers.items() if count]
    if not found:
        return SafeString('<span class="cad-num">0</span>')
    return format_html_join(
        "", '<span class="cad-num"><span class="cad-kind">{}</span> {}</span>', found
    )
