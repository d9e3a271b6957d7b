"""Conditions of the register itself: its scheduler, checks, audit chain and recovery mode."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from pools.models import Delivery, DeliveryState, Level, Recovery, WebhookTarget
from pools.platform import audit, checks, database
from pools.platform.alerts import dispatch
from pools.platform.conditions import evaluation
from pools.platform.conditions.registry import ActiveCondition, Condition, OpenLevels
from pools.register.imports import sources

SCHEDULER = "scheduler_stopped"
VIOLATIONS = "check_violations"
CHAIN = "audit_chain_broken"
RECOVERING = "recovery_active"
WEBHOOK = "webhook_failing"
_PATIENCE = timedelta(minutes=15)  # until messages that a receiver does not accept are a condition
_GIVEN_UP = timedelta(days=1)  # how long a message that was given up is a condition
MIRROR = "netbox_mirror_failed"
LACKING = "netbox_objects_gone"
_EXAMPLES = 5  # violations that their alert names


def _stopped_scheduler(_levels: OpenLevels) -> Iterator[ActiveCondition]:
    """Yield the condition of a stopped scheduler; `manage.py watch` evaluates it too."""
    silence = evaluation.seconds_since_scheduler_tick()
    if silence is not None and silence > settings.IPAM_ALERT_SCHEDULER_SECONDS:
        detail = gettext(
            "Beat or the worker of the queue ipam.default is not running:"
            " no tick for %(seconds)s s."
        ) % {"seconds": int(silence)}
        title = gettext("The scheduler has stopped")
        yield ActiveCondition(SCHEDULER, "scheduler", Level.ERROR, title, detail)


def check_data(seconds: float) -> int:
    """Run all checks for so long, open or end the alert that says so, and return the number of violations."""
    by_check: Counter[str] = Counter()
    first: list[str] = []
    for name, text in checks.run(seconds=seconds):
        by_check[name] += 1
        first += [f"{name}: {text}"] if len(first) < _EXAMPLES else []
    count = by_check.total()
    title = ngettext(
        "%(count)s violation of %(checks)s", "%(count)s violations of %(checks)s", count
    )
    title %= {"count": count, "checks": ", ".join(by_check)}
    active = ActiveCondition(VIOLATIONS, "register", Level.ERROR, title, "\n".join(first))
    evaluation.evaluate({VIOLATIONS: [active] if count else []})
    return count


def _failed_mirrors(_levels: OpenLevels) -> Iterator[ActiveCondition]:
    """Yield the mirrors of NetBox whose last run failed; nothing was changed by it."""
    for name, _code, error in sources.failed_mirrors():
        title = gettext("The mirror of NetBox %(name)s has failed") % {"name": name}
        yield ActiveCondition(
            MIRROR, f"netbox {name}", Level.WARNING, title, error, "/admin/pools/import/"
        )


def _lacking_mirrors(_levels: OpenLevels) -> Iterator[ActiveCondition]:
    """Yield the mirrors whose NetBox lacks objects, until a person has confirmed each."""
    for name, import_id, count in sources.lacking_mirrors():
        title = ngettext(
            "NetBox %(name)s lacks %(count)s object that its mirror brought",
            "NetBox %(name)s lacks %(count)s objects that its mirror brought",
            count,
        ) % {"name": name, "count": count}
        detail = gettext("Release them, or keep them here: until then they stay as they are.")
        page = f"/admin/pools/import/{import_id}/change/?status=vanished"
        yield ActiveCondition(LACKING, f"netbox {name}", Level.WARNING, title, detail, page)


def verify_history(seconds: float) -> int:
    """Verify the audit chain, open or end the alert that says so, and return the number of faults.

    Without time for the oldest segments, a fault that was found in one of them stays open.
    """
    report = audit.verify(seconds=seconds)
    count = len(report.faults)
    title = ngettext(
        "The audit chain is broken: %(count)s fault",
        "The audit chain is broken: %(count)s faults",
        count,
    ) % {"count": count}
    detail = "\n".join(fault.message for fault in report.faults[:_EXAMPLES])
    active = ActiveCondition(CHAIN, "register", Level.ERROR, title, detail, "/admin/history/")
    if count or not report.unchecked:
        evaluation.evaluate({CHAIN: [active] if count else []})
    return count


def _active_recovery(_levels: OpenLevels) -> Iterator[ActiveCondition]:
    recovery = Recovery.objects.filter(ended_at=None).first()
    if recovery:
        detail = gettext("Since %(time)s UTC: %(reason)s") % {
            "time": f"{recovery.since:%Y-%m-%d %H:%M}",
            "reason": recovery.reason,
        }
        title = gettext("Recovery mode: no blocks are allocated")
        yield ActiveCondition(
            RECOVERING, "register", Level.ERROR, title, detail, "/admin/pools/cluster/"
        )


def _failing_webhooks(_levels: OpenLevels) -> Iterator[ActiveCondition]:
    """Yield the webhook targets whose messages wait; with an error those that were switched off or missed some."""
    now = database.now()
    messages = Delivery.objects.filter(target=OuterRef("pk"))
    waiting = messages.filter(state=DeliveryState.PENDING, created_at__lt=now - _PATIENCE)
    given_up = messages.filter(state=DeliveryState.FAILED, next_try_at__gt=now - _GIVEN_UP)
    rows = WebhookTarget.objects.annotate(
        off=Q(enabled=False, switched_off_at__isnull=False),
        late=Q(enabled=True) & Exists(waiting),
        lost=Q(enabled=True) & Exists(given_up.filter(attempts__gte=dispatch.TRIES)),
    )
    for target in rows.filter(Q(off=True) | Q(late=True) | Q(lost=True)).defer("sealed"):
        title = gettext("The webhook %(webhook)s does not accept messages")
        yield ActiveCondition(
            WEBHOOK,
            f"webhook/{target.pk}",
            Level.ERROR if target.off or target.lost else Level.WARNING,
            title % {"webhook": target.name},
            " ".join(_webhook_faults(target)),
            f"/admin/pools/webhooktarget/{target.pk}/change/",
        )


def _webhook_faults(target: Any) -> Iterator[str]:
    """Yield what becomes of the messages that a target did not accept."""
    if target.off:
        yield gettext(
            "It accepted nothing in %(number)s tries and is switched off. Its messages wait; enable it again."
        ) % {"number": dispatch.OFF_AFTER}
    if target.late:
        yield gettext("Messages wait, and are tried again by themselves.")
    if target.lost:
        yield gettext("Messages that it always refused are given up; send them again on its page.")


ALL = (
    Condition({WEBHOOK: "IpamOutboxStuck"}, _failing_webhooks),
    Condition({SCHEDULER: "IpamSchedulerStopped"}, _stopped_scheduler),
    Condition({VIOLATIONS: "IpamCheckViolations"}, None),  # check_data finds them
    Condition({CHAIN: "IpamAuditChainBroken"}, None),  # verify_history finds it
    Condition({RECOVERING: "IpamRecoveryActive"}, _active_recovery),
    Condition(
        {MIRROR: "IpamNetBoxMirrorFailed"},
        _failed_mirrors,
        labels={MIRROR: _("NetBox mirror failed")},
    ),
    Condition(
        {LACKING: "IpamNetBoxObjectsGone"},
        _lacking_mirrors,
        labels={LACKING: _("gone from NetBox")},
    ),
)
