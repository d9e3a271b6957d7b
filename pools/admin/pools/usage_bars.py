"""Utilization of pools as bars and percentages, and its forecast as texts."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from pools.core import forecast
from pools.core.forecast import ForecastState
from pools.models import Pool
from pools.platform.admin import display
from pools.platform.admin.columns import Column
from pools.register import usage
from pools.register.utilization import forecasts
from pools.register.utilization.forecasts import DatedForecast


def bar(counts: usage.Usage, *, label: str = "") -> SafeString:
    """Return a bar of what is held and cooling of the blocks that are not reserved, and the same in percent."""
    total = counts.used + counts.free or 1
    offset, parts = 0.0, []
    for kind, count in (("held", counts.held), ("cooling", counts.cooling)):
        if count:
            # A minimum width keeps small shares visible.
            width = max(round(100 * count / total, 2), 0.8)
            parts.append((kind, round(offset, 2), width))
            offset += width
    is_full = not counts.free and not counts.waits_for_cluster
    level = "full" if is_full else "high" if counts.is_nearly_full else "fine"
    return format_html(
        '<span class="cad-bar cad-bar-{}" title="{}">{}'
        '<svg viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<rect class="m-free" width="100" height="8"/>{}</svg>'
        '<span class="cad-percent">{}</span></span>',
        level,
        _counts(counts),
        format_html('<span class="cad-bar-label">{}</span>', label) if label else "",
        _counts(counts),
        format_html_join("", '<rect class="m-{}" x="{}" width="{}" height="8"/>', parts),
        percent(counts),
    )


def percent(counts: usage.Usage) -> str:
    """Return the utilization: below 100 % while a block is free, above 0 while one is used."""
    return "<1%" if counts.used and not counts.percent else f"{counts.percent}%"


def highest_utilization(families: Mapping[int, usage.Usage]) -> str:
    """Return the utilization of the fuller family in percent."""
    return percent(max(families.values(), key=lambda counts: counts.ratio)) if families else ""


def free_blocks(pool: Pool) -> str:
    """Return the free blocks of each family: `IPv4 254, IPv6 65 536`."""
    families = usage.pool_usage(pool)
    return ", ".join(
        f"IPv{family} {display.digits(counts.free)}" for family, counts in families.items()
    )


def bars(families: Mapping[int, usage.Usage]) -> SafeString:
    """Return one bar per IP family."""
    labelled = len(families) > 1
    return format_html_join(
        "",
        "{}",
        (
            (bar(counts, label=f"v{family}" if labelled else ""),)  # no text: v4 or v6
            for family, counts in families.items()
        ),
    )


def column(*, ordering: str | None = None) -> Column:
    """The column of a list whose rows have a pool's usage as `shown_usage`."""
    return Column("utilization", _("utilization"), _stacked, ordering=ordering)


def _stacked(row: Any) -> SafeString:
    if not row.shown_usage:
        return display.DASH
    return format_html('<span class="cad-stack">{}</span>', bars(row.shown_usage))


def _counts(counts: usage.Usage) -> str:
    numbers = (counts.held, counts.cooling, counts.reserved, counts.free, counts.capacity)
    held, cooling, reserved, free, capacity = (display.digits(number) for number in numbers)
    text = (
        gettext(
            "about %(held)s allocated, %(cooling)s in cooldown, %(reserved)s reserved, %(free)s free of %(capacity)s"
        )
        if counts.approximate
        else gettext(
            "%(held)s allocated, %(cooling)s in cooldown, %(reserved)s reserved, %(free)s free of %(capacity)s"
        )
    )
    return text % {
        "held": held,
        "cooling": cooling,
        "reserved": reserved,
        "free": free,
        "capacity": capacity,
    }


def forecast_sentence(dated: DatedForecast) -> str:
    """Return the forecast as a text with its range of dates."""
    return forecasts.describe(dated, today=timezone.now().date())


def forecast_summary(dated: DatedForecast) -> str:
    return forecasts.summarize(dated, today=timezone.now().date())


def forecast_lines(by_family: Mapping[int, DatedForecast]) -> SafeString:
    """Return the forecasts of both families for a list; the range is the tooltip."""
    if not by_family:
        return display.DASH
    labelled = len(by_family) > 1
    rows = (
        (
            _forecast_class(dated),
            _with_confidence(dated)
            if dated.day and dated.state != ForecastState.FULL
            else forecast_sentence(dated),
            format_html('<span class="cad-kind">v{}</span> ', family) if labelled else "",
            forecast_summary(dated),
        )
        for family, dated in sorted(by_family.items())
    )
    lines = format_html_join("", '<span class="{}" title="{}">{}{}</span>', rows)
    return format_html('<span class="cad-stack">{}</span>', lines)


def _with_confidence(dated: DatedForecast) -> str:
    return gettext("%(forecast)s (%(percent)s %% confidence)") % {
        "forecast": forecast_sentence(dated),
        "percent": round(100 * forecast.CONFIDENCE),
    }


def _forecast_class(dated: DatedForecast) -> str:
    if dated.state == ForecastState.FULL:
        return "cad-forecast cad-forecast-full"
    soon = (
        dated.day is not None
        and (dated.day - timezone.now().date()).days <= settings.IPAM_ALERT_FORECAST_DAYS
    )
    if soon:
        return "cad-forecast cad-forecast-soon"
    return "cad-forecast" if dated.day else "cad-forecast cad-dim"
