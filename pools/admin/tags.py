"""The looks of values (pools.admin.show) for the templates."""

from __future__ import annotations

from typing import Any

from django import template
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from pools import usage
from pools.admin import drifts, edge, events, lists, menu, recovering, runs, show
from pools.models import Block, Event

register = template.Library()

register.filter("num", show.number)
register.filter("digits", show.digits)
register.filter("mono", show.address)
register.filter("plain", show.plain_cidr)
register.filter("found", show.found)
register.filter("named", show.named)
register.filter("when", show.when)
register.filter("state", show.state)
register.filter("to", show.to)
register.filter("bar", show.bar)
register.filter("bars", show.bars)
register.filter("share_bar", show.share_bar)
register.filter("most", show.most)
register.filter("percent", show.percent)
register.filter("standing", show.standing)
register.filter("outcome", runs.outcome)
register.filter("took", runs.took)
register.filter("counts", runs.counts)
register.filter("manifest_value", drifts.value)
register.filter("drift_state", drifts.state)
register.filter("event_type", events.type_of)
register.filter("begun", edge.begun)
register.filter("menu_entry", menu.entry)


@register.simple_tag(takes_context=True)
def recovery(context: template.Context) -> recovering.Banner | None:
    """What every page says while the register recovers."""
    return recovering.banner(context.get("request"))


@register.simple_tag(takes_context=True)
def back(context: template.Context, name: str) -> str:
    """The list that an action was started from, with its filters."""
    return lists.back(context["request"], name)


@register.filter
def about(one: usage.Usage, name: str) -> SafeString:
    """One of the counts of a usage; estimates are marked."""
    return show.number(getattr(one, name), about=one.approximate and name != "capacity")


@register.filter
def holder(one: Block | Event) -> SafeString:
    """Whoever holds the block, or whom the event is about."""
    return show.holder(one.holder_kind, one.holder_id)


@register.filter
def of_family(found: dict[int, Any], family: int) -> Any:
    """What is said of one family."""
    return found.get(family, "")


@register.filter
def tenant(one: Any) -> SafeString:
    """The environment of a block or tenure, after its organisation; it leads to what they have."""
    return show.named("/".join(part for part in (one.org, one.env) if part))


@register.filter
def block_link(one: Block) -> SafeString:
    return show.address(one.cidr, show.url_of(one))


@register.filter
def count(number: int, words: str) -> str:
    """`3|count:"block,blocks"` -> `3 blocks`."""
    one, _, many = words.partition(",")
    return f"{show.digits(number)} {one if number == 1 else many}"


@register.filter
def url(row: Any) -> str:
    return show.url_of(row)


@register.filter
def can(user: Any, permission: str) -> bool:
    """`user|can:"pools.allocate"`."""
    return bool(user.has_perm(permission))


@register.filter
def holder_named(holder: dict[str, str]) -> SafeString:
    """A holder as history tells it."""
    return show.holder(holder["kind"], holder["id"])


@register.filter
def by_family(numbers: dict[int, int]) -> SafeString:
    """The numbers of both families as far as they are not 0: `v4 12`, or 0."""
    found = [(f"v{family}", show.digits(count)) for family, count in numbers.items() if count]
    if not found:
        return SafeString('<span class="cad-num">0</span>')
    return format_html_join(
        "", '<span class="cad-num"><span class="cad-kind">{}</span> {}</span>', found
    )
