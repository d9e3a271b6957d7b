"""Sealing and verifying by the worker and by command, and where a broken chain shows."""

import io

import pytest
from django.core.management import call_command
from django.urls import reverse

from pools import tasks
from pools.models import Alert, AuditSegment, BlockEvent
from pools.platform import audit
from tests import factories, people
from tests.history.test_audit_verify import as_owner


@pytest.fixture
def event() -> int:
    """The number of a sealed event."""
    factories.take(factories.pool("10.0.0.0/24"))
    assert tasks.seal_events() == 4
    return BlockEvent.objects.get().pk


def command(*words: str) -> tuple[int, str]:
    out, status = io.StringIO(), 0
    try:
        call_command("ipam", "audit", *words, stdout=out)
    except SystemExit as end:
        status = int(end.code or 0)
    return status, out.getvalue()


def test_every_night_and_on_the_overview(event: int) -> None:
    client = people.browser((*people.VIEWER, "view_alert"))
    assert tasks.verify_events() == 0
    assert "audit chain" not in client.get(reverse("admin:index")).content.decode()
    as_owner("DELETE FROM pools_blockevent WHERE pgh_id = %s", event)
    assert tasks.verify_events() == 1
    page = client.get(reverse("admin:index")).content.decode()
    assert "The audit chain is broken: 1 fault" in page
    assert f"Missing events in segment 1: {event}." in page


def test_the_anchor_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    factories.cluster()
    with caplog.at_level("INFO", logger="pools.platform.audit"):
        tasks.seal_events()
    (line,) = [record.getMessage() for record in caplog.records if "anchor" in record.getMessage()]
    assert line.endswith(f" anchor {AuditSegment.objects.get().anchor}")


def test_a_fault_stays_until_a_verification_looks_for_it(
    event: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_owner("UPDATE pools_blockevent SET org = 'mallory' WHERE pgh_id = %s", event)
    assert tasks.verify_events() == 1
    with monkeypatch.context() as patch:
        patch.setattr(audit, "verify", lambda **_: audit.Report(unchecked=1))
        assert tasks.verify_events() == 0  # no time was left for the segment of the fault
    assert Alert.objects.get().is_open
    as_owner("UPDATE pools_blockevent SET org = '' WHERE pgh_id = %s", event)
    assert tasks.verify_events() == 0
    assert not Alert.objects.get().is_open
