"""Sealing and verifying by the worker and by command, and where a broken chain shows."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from pools import tasks
from pools.models import AuditSegment, AuditVerification, BlockEvent
from pools.platform.audit import anchors, verification
from tests import factories, people
from tests.history.test_audit_verify import as_owner


@pytest.fixture
def event() -> int:
    """The number of a sealed event."""
    factories.take(factories.pool("10.0.0.0/24"))
    assert tasks.seal_events() == 1
    return BlockEvent.objects.get().pk


def command(*words: str) -> tuple[int, str]:
    out, status = io.StringIO(), 0
    try:
        call_command("ipam", "audit", *words, stdout=out)
    except SystemExit as end:
        status = int(end.code or 0)
    return status, out.getvalue()


@pytest.mark.exhaustive
def test_the_command_says_what_is_wrong(event: int) -> None:
    status, text = command("verify")
    assert (status, "The chain is intact; 4 events in 1 segments" in text) == (0, True)
    head = AuditSegment.objects.get().digest
    assert command("verify", "--anchor", head)[0] == 0
    assert command("verify", "--anchor", "0" * 64)[0] == 3
    as_owner("UPDATE pools_blockevent SET org = 'mallory' WHERE pgh_id = %s", event)
    status, text = command("verify", "-o", "json")
    assert status == 3
    assert [(one["code"], one["numbers"]) for one in json.loads(text)] == [
        ("event_changed", [event]),
        ("row_changed", []),  # the block is not as its event says
    ]
    assert command("verify", "--since", "2999-01-01")[0] == 0
    with pytest.raises(CommandError, match="day"):
        command("verify", "--since", "monday")


def test_the_command_seals() -> None:
    factories.cluster()
    assert command("seal") == (0, "Sealed events: 1, segments: 1.\n")


def test_every_night_and_on_the_overview(event: int) -> None:
    client = people.browser((*people.VIEWER, "view_alert"))
    assert tasks.verify_events()
    assert "audit chain" not in client.get(reverse("admin:index")).content.decode()
    as_owner("DELETE FROM pools_blockevent WHERE pgh_id = %s", event)
    assert not tasks.verify_events()
    tasks.evaluate_alerts()
    assert AuditVerification.objects.all()[0].faults[0]["numbers"] == [event]
    page = client.get(reverse("admin:index")).content.decode()
    assert "The audit chain is broken: 1 fault" in page
    assert f"Event {event} is missing" in page


def test_the_anchor_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    factories.cluster()
    with caplog.at_level("INFO", logger="pools.platform.audit.sealing"):
        tasks.seal_events()
    (line,) = [record.getMessage() for record in caplog.records if "anchor" in record.getMessage()]
    assert line.endswith(AuditSegment.objects.get().digest)


def test_a_fault_stays_until_a_verification_looks_for_it(event: int, clock) -> None:
    as_owner("UPDATE pools_blockevent SET org = 'mallory' WHERE pgh_id = %s", event)
    assert not verification.verify().ok
    clock.advance(30 * 86400)
    assert tasks.verify_events()  # of the last days nothing is wrong
    assert not AuditVerification.objects.all()[0].ok
    as_owner("UPDATE pools_blockevent SET org = '' WHERE pgh_id = %s", event)
    assert verification.verify().ok
    assert AuditVerification.objects.all()[0].ok


def test_a_missing_anchor_stays_until_anchors_are_looked_for(event: int) -> None:
    head = AuditSegment.objects.get().digest
    assert not verification.verify(anchors=[anchors.Anchor("0" * 64)]).ok
    assert verification.verify().ok
    assert not AuditVerification.objects.all()[0].ok
    verification.verify(anchors=[anchors.Anchor(head)])
    assert AuditVerification.objects.all()[0].ok
