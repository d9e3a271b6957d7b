"""Forecasts on pages: in words, with the range they stand for."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from pools.core import forecast, forecast_text
from pools.core.forecast import ForecastState
from pools.platform.admin import display
from pools.register.utilization.forecasts import Dated

RANGE = f"{round(100 * forecast.SHARE)} of 100 such ranges contain the day"


def sentence(dated: Dated) -> str:
    """With its range."""
    return forecast_text.sentence(
        dated.state,
        today=timezone.now().date(),
        missing=dated.missing,
        day=dated.day,
        earliest=dated.earliest,
        latest=dated.latest,
    )


def short(dated: Dated) -> str:
    return forecast_text.short(dated.state, today=timezone.now().date(), day=dated.day)


def range_text(dated: Dated) -> str:
    """The range alone, with a capital."""
    text = sentence(dated).removeprefix(short(dated)).removeprefix(", ")
    return text[:1].upper() + text[1:]


def column(by_family: Mapping[int, Dated]) -> SafeString:
    """Of both families, for a list: the words, the range on hover."""
    if not by_family:
        return display.DASH
    labelled = len(by_family) > 1
    rows = (
        (
            _class(dated),
            f"{sentence(dated)} ({RANGE})"
            if dated.day and dated.state != ForecastState.FULL
            else sentence(dated),
            format_html('<span class="cad-kind">v{}</span> ', family) if labelled else "",
            short(dated),
        )
        for family, dated in sorted(by_family.items())
    )
    lines = format_html_join("", '<span class="{}" title="{}">{}{}</span>', rows)
    return format_html('<span class="cad-stack">{}</span>', lines)


def _class(dated: Dated) -> str:
    if dated.state == ForecastState.FULL:
        return "cad-forecast cad-forecast-full"
    soon = dated.day is not None and (dated.day - timezone.now().date()).days <= 14
    if soon:
        return "cad-forecast cad-forecast-soon"
    return "cad-forecast" if dated.day else "cad-forecast cad-dim"
