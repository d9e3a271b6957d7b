"""The alerts of the overview: one row for each cause, the most severe first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from pools.models import Alert, Level
from pools.platform.alerts import open_alerts
from pools.platform.alerts.open_alerts import AlertGroup
from pools.platform.conditions import registry

SHOWN = 5  # rows with one condition
OTHERS = 5  # further alerts that a row names


@dataclass(frozen=True)
class AlertRow:
    """One row: the alerts of a cause, and what to do about them."""

    group: AlertGroup
    url: str  # the page about the subject
    runbook: str  # URL, or ""
    action: str = ""
    action_url: str = ""
    needs: str = ""  # the permission that the action requires

    @property
    def others(self) -> Sequence[Alert]:
        return self.group.others[:OTHERS]

    @property
    def more(self) -> int:
        """How many further alerts are not named."""
        return max(0, len(self.group.others) - OTHERS)


@dataclass(frozen=True)
class MoreRows:
    """Rows of one condition that are not shown: their number, and the list that has them."""

    condition: str
    count: int
    url: str


@dataclass
class OverviewAlerts:
    """The rows with errors and warnings, those with information only or acknowledged, and what is left out."""

    urgent: list[AlertRow] = field(default_factory=list)
    info: list[AlertRow] = field(default_factory=list)
    acknowledged: list[AlertRow] = field(default_factory=list)
    more: list[MoreRows] = field(default_factory=list)


def overview_alerts(request: HttpRequest) -> OverviewAlerts | None:
    """Return the rows of the overview; None if the user may not view alerts."""
    if not request.user.has_perm("pools.view_alert"):
        return None
    result, counts = OverviewAlerts(), Counter[str]()
    for group in open_alerts.alert_groups():
        code = group.lead.code
        counts[code] += 1
        if counts[code] <= SHOWN:
            rows = result.info if group.lead.level == Level.INFO else result.urgent
            rows.append(_row(group))
    result.acknowledged = [
        _row(group) for group in open_alerts.alert_groups(acknowledged=True)[:SHOWN]
    ]
    changelist = "admin:pools_alert_changelist"
    result.more = [
        MoreRows(
            registry.words(code),
            count - SHOWN,
            reverse(changelist, query={"open": "true", "code": code}),
        )
        for code, count in counts.items()
        if count > SHOWN
    ]
    return result


def _row(group: AlertGroup) -> AlertRow:
    alert = group.lead
    url = alert.url or reverse("admin:pools_alert_change", args=[alert.pk])
    runbook = registry.runbook(alert.code)
    runbook_url = reverse("admin:runbook", args=[runbook]) if runbook else ""
    kind, _, pk = alert.cause.partition("/")
    if kind == "pool" and alert.level != Level.INFO:
        return AlertRow(
            group,
            url,
            runbook_url,
            gettext("Add a CIDR"),
            reverse("admin:pools_pool_add_cidr", args=[int(pk)]),
            "pools.change_pool",
        )
    return AlertRow(group, url, runbook_url)
