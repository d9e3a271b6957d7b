"""Texts of forecasts on pages."""

from __future__ import annotations

from collections.abc import Mapping

from django.conf import settings
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from pools.core import forecast
from pools.core.forecast import ForecastState
from pools.platform.admin import display
from pools.register.utilization import forecasts
from pools.register.utilization.forecasts import DatedForecast


def sentence(dated: DatedForecast) -> str:
    """Return the forecast as a text with its range of dates."""
    return forecasts.describe(
        dated.state,
        today=timezone.now().date(),
        missing=dated.missing,
        day=dated.day,
        earliest=dated.earliest,
        latest=dated.latest,
    )


def short(dated: DatedForecast) -> str:
    return forecasts.summarize(dated.state, today=timezone.now().date(), day=dated.day)


def column(by_family: Mapping[int, DatedForecast]) -> SafeString:
    """Return the forecasts of both families for a list; the range is the tooltip."""
    if not by_family:
        return display.DASH
    labelled = len(by_family) > 1
    rows = (
        (
            _class(dated),
            _with_confidence(dated)
            if dated.day and dated.state != ForecastState.FULL
            else sentence(dated),
            format_html('<span class="cad-kind">v{}</span> ', family) if labelled else "",
            short(dated),
        )
        for family, dated in sorted(by_family.items())
    )
    lines = format_html_join("", '<span class="{}" title="{}">{}{}</span>', rows)
    return format_html('<span class="cad-stack">{}</span>', lines)


def _with_confidence(dated: DatedForecast) -> str:
    return gettext("%(forecast)s (%(percent)s %% confidence)") % {
        "forecast": sentence(dated),
        "percent": round(100 * forecast.CONFIDENCE),
    }


def _class(dated: DatedForecast) -> str:
    if dated.state == ForecastState.FULL:
        return "cad-forecast cad-forecast-full"
    soon = (
        dated.day is not None
        and (dated.day - timezone.now().date()).days <= settings.IPAM_ALERT_FORECAST_DAYS
    )
    if soon:
        return "cad-forecast cad-forecast-soon"
    return "cad-forecast" if dated.day else "cad-forecast cad-dim"
