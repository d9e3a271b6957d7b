"""Events go by whole segments, and the chain stays whole without them."""

from pools.models import AuditSegment, BlockEvent, Event
from pools.platform import audit
from pools.register import retention
from tests import factories
from tests.history.test_audit_verify import as_owner

DAY = 86400


def test_the_chain_verifies_without_what_was_purged(clock) -> None:
    held = factories.take(factories.pool("10.0.0.0/24"))
    factories.give_back(factories.take(factories.pool("10.1.0.0/24")))
    audit.seal()
    clock.advance(40 * DAY)
    factories.take(factories.pool("10.2.0.0/24"))
    gone = retention.purge_events(30)
    assert gone > 4
    first = AuditSegment.objects.order_by("id")[0]
    assert first.retained == BlockEvent.objects.filter(pgh_obj_id=held["id"]).count() == 1
    report = audit.verify()
    assert (report.faults, report.purged) == ([], gone)


def test_what_the_retention_kept_is_missed_when_it_is_gone(clock) -> None:
    held = factories.take(factories.pool("10.0.0.0/24"))
    clock.advance(40 * DAY)
    retention.purge_events(30)
    as_owner("DELETE FROM pools_blockevent WHERE pgh_obj_id = %s", held["id"])
    (fault,) = audit.verify().faults
    assert (fault.code, fault.count) == ("events_missing", 1)


def test_what_it_kept_goes_when_the_block_is_free(clock) -> None:
    pool = factories.pool("10.0.0.0/24")
    held = factories.take(pool)
    clock.advance(40 * DAY)
    retention.purge_events(30)
    factories.give_back(held)
    assert retention.purge_events(30) == 0
    clock.advance(2 * DAY)
    assert retention.purge_events(30) == 1
    first = AuditSegment.objects.order_by("id")[0]
    assert first.retained == 0
    assert not audit.verify().faults


def test_a_segment_that_does_not_verify_stays_as_evidence(clock) -> None:
    factories.give_back(factories.take(factories.pool("10.0.0.0/24")))
    audit.seal()
    as_owner("UPDATE pools_blockevent SET holder_id = 'mallory'")
    clock.advance(40 * DAY)
    before = Event.objects.count()
    assert retention.purge_events(30) == 0
    assert Event.objects.count() == before


def test_an_event_that_comes_back_is_an_added_one(clock) -> None:
    factories.give_back(factories.take(factories.pool("10.0.0.0/24")))
    clock.advance(40 * DAY)
    retention.purge_events(30)
    clusters = (
        "SELECT 3, pgh_created_at, pgh_label, pgh_obj_id, pgh_context, name, instance_gateway"
    )
    factories.cluster()
    as_owner(
        "INSERT INTO pools_clusterevent (pgh_id, pgh_created_at, pgh_label, pgh_obj_id, pgh_context,"
        " name, instance_gateway, instance_mtu, instance_dns, description)"
        f" {clusters}, instance_mtu, instance_dns, description FROM pools_clusterevent LIMIT 1"
    )
    codes = [fault.code for fault in audit.verify().faults]
    assert codes == ["event_changed", "event_added"]
