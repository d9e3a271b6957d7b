"""Forecasts on pages: in words, with the range they stand for."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from pools.core import forecast, forecast_text
from pools.core.forecast import ForecastState
from pools.platform.admin import display
from pools.register.utilization.forecasts import DatedForecast

RANGE = f"{round(100 * forecast.CONFIDENCE)} of 100 such ranges contain the day"


def sentence(one: DatedForecast) -> str:
    """With its range."""
    return forecast_text.describe(
        one.state,
        today=timezone.now().date(),
        missing=one.missing,
        day=one.day,
        earliest=one.earliest,
        latest=one.latest,
    )


def short(one: DatedForecast) -> str:
    return forecast_text.summarize(one.state, today=timezone.now().date(), day=one.day)


def between(one: DatedForecast) -> str:
    """The range alone, with a capital."""
    told = sentence(one).removeprefix(short(one)).removeprefix(", ")
    return told[:1].upper() + told[1:]


def column(found: Mapping[int, DatedForecast]) -> SafeString:
    """Of both families, for a list: the words, the range on hover."""
    if not found:
        return display.DASH
    labelled = len(found) > 1
    rows = (
        (
            _class(one),
            f"{sentence(one)} ({RANGE})"
            if one.day and one.state != ForecastState.FULL
            else sentence(one),
            format_html('<span class="cad-kind">v{}</span> ', family) if labelled else "",
            short(one),
        )
        for family, one in sorted(found.items())
    )
    lines = format_html_join("", '<span class="{}" title="{}">{}{}</span>', rows)
    return format_html('<span class="cad-stack">{}</span>', lines)


def _class(one: DatedForecast) -> str:
    if one.state == ForecastState.FULL:
        return "cad-forecast cad-forecast-full"
    soon = one.day is not None and (one.day - timezone.now().date()).days <= 14
    if soon:
        return "cad-forecast cad-forecast-soon"
    return "cad-forecast" if one.day else "cad-forecast cad-dim"
