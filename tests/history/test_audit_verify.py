"""The sealed history: verified, kept, and who may see it."""

import contextlib
import io
import re
from datetime import timedelta
from ipaddress import ip_network
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection, transaction
from django.urls import reverse
from knox.models import AuthToken

from claims.models import (
    Entry,
    IPAMClaim,
    IPPool,
    Membership,
    Network,
    NetworkSettings,
    VMImport,
    Wave,
)
from pools import models, tasks
from pools.core import errors
from pools.platform import audit, database, events
from pools.platform.alerts import targets
from pools.register import environments, journal, retention
from pools.register.plan import containers
from tests import factories, people


@pytest.fixture
def sealed(monkeypatch: pytest.MonkeyPatch) -> int:
    """Events of every table, sealed in small segments."""
    monkeypatch.setattr(audit, "SIZE", 5)
    pool = factories.pool("10.0.0.0/30", reserved=["10.0.0.3-10.0.0.3"])
    for _ in range(3):
        factories.give_back(factories.take(pool))
    with contextlib.suppress(errors.PoolExhausted):
        factories.take(pool, *factories.holders(9))
    one = pool.cluster
    network = Network.objects.create(cluster=one, name="shop")
    ippool = IPPool.objects.create(cluster=one, network=network, name="shop")
    Entry.objects.create(ippool=ippool, mac="02:00:00:00:00:01", ips=["10.0.0.1/30"], vm="web")
    IPAMClaim.objects.create(cluster=one, network=network, namespace="shop", name="web.net")
    models.Connection.objects.create(
        cluster=one, server="https://192.0.2.1:6443", due_at=database.now()
    )
    Membership.objects.create(
        user=User.objects.create(username="olga"), cluster=one, namespaces=["shop"]
    )
    NetworkSettings.objects.create(cluster=one)
    VMImport.objects.create(cluster=one)
    Wave.objects.create(cluster=one, name="saturday")
    AuthToken.objects.create(User.objects.get())
    targets.create("ops", "https://hooks.example.org/", author=factories.BY)
    containers.create(ip_network("10.0.0.0/8"), author=factories.BY)
    environments.declare(one, "acme", "shop", author=factories.BY)
    journal.add(one, "Moved.", "info", user=None, author=factories.BY)
    models.DirectoryAccount.objects.create(source="ldap", subject="olga", username="olga")
    Authenticator.objects.create(user=User.objects.get(), type="totp", data={})
    models.RegisterImport.objects.create(cluster=one)
    models.CustomField.objects.create(name="rack", label="Rack", type="text", object_types=["pool"])
    models.DNSName.objects.create(
        block_id=1, pool=pool, cidr="10.0.0.1/32", name="web.example.org",
        holder_kind="vm", holder_id="web", allocated_at=database.now(),
    )  # fmt: skip
    models.NetBoxSource.objects.create(name="dc", url="https://netbox.example", cluster=one)
    return audit.seal()


def as_owner(statement: str, *values: Any) -> None:
    """What somebody does to whom the tables belong: without triggers."""
    table = re.split(r"UPDATE |DELETE FROM |INSERT INTO ", statement)[1].split()[0]
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        cursor.execute(statement, values)
        cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")


def codes(**options: Any) -> list[str]:
    return [fault.code for fault in audit.verify(**options).faults]


def test_an_untouched_history_verifies(sealed: int) -> None:
    report = audit.verify()
    segments = models.AuditSegment.objects.count()
    assert (report.faults, report.segments, report.events) == ([], segments, sealed)
    assert segments > 3
    assert (report.unsealed, report.unchecked) == (0, 0)


ACTS = {
    "change": ("UPDATE {} SET pgh_label = pgh_label || '.' WHERE pgh_id = %s", "event_changed"),
    "delete": ("DELETE FROM {} WHERE pgh_id = %s", "events_missing"),
    "insert": ("", "event_added"),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("act", ACTS)
def test_an_event_of_each_table_is_named(sealed: int, act: str) -> None:
    statement, code = ACTS[act]
    for model in events.event_models().values():
        table = model._meta.db_table
        found = model.objects.order_by("pgh_id").values_list("pk", flat=True).last()
        assert found is not None, table
        number = -found if act == "insert" else found
        savepoint = transaction.savepoint()
        as_owner(statement.format(table) or _copy(table), found)
        (fault,) = audit.verify().faults
        assert (fault.code, fault.numbers) == (code, [number]), table
        assert str(number) in fault.message
        transaction.savepoint_rollback(savepoint)


def _copy(table: str) -> str:
    columns = database.rows(
        "SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attname <> 'pgh_id'",
        [table],
        prepare=False,
    )[0][0]
    return (
        f"INSERT INTO {table} (pgh_id, {columns})"  # noqa: S608
        f" SELECT -pgh_id, {columns} FROM {table} WHERE pgh_id = %s"
    )


COLUMNS = [
    ("pgh_created_at", "pgh_created_at + interval '1 microsecond'"),
    ("pgh_context", "jsonb_set(pgh_context, '{actor}', '\"mallory\"')"),
    ("holder_id", "'mallory'"),
    ("released_at", "now()"),
    ("withheld", "NOT withheld"),
]


@pytest.mark.exhaustive
def test_every_column_counts(sealed: int) -> None:
    event = models.BlockEvent.objects.order_by("pgh_id")[0]
    for column, value in COLUMNS:
        savepoint = transaction.savepoint()
        as_owner(f"UPDATE pools_blockevent SET {column} = {value} WHERE pgh_id = %s", event.pk)  # noqa: S608
        assert codes() == ["event_changed"], column
        transaction.savepoint_rollback(savepoint)
    assert codes() == []


def test_segments_that_are_gone(sealed: int) -> None:
    as_owner("DELETE FROM pools_auditsegment WHERE id IN (2, 3)")
    faults = audit.verify().faults
    assert [(fault.code, fault.message) for fault in faults] == [
        ("segments_missing", "Missing before segment 4: segments 2 to 3.")
    ]


def test_segments_that_are_gone_from_the_end(sealed: int) -> None:
    kept = models.AuditSegment.objects.order_by("-id")[2]
    as_owner("DELETE FROM pools_auditsegment WHERE id > %s", kept.pk)
    (fault,) = audit.verify().faults
    assert fault.code == "segments_missing"
    assert f"the events {kept.last_id + 1} to " in fault.message
    factories.take(factories.pool("10.77.0.0/24"))
    assert audit.seal() > 0
    assert codes() == ["chain_broken"]  # what is sealed later does not hide it
    as_owner("DELETE FROM pools_auditsegment")
    assert codes() == ["segments_missing"]


@pytest.mark.sample(6)
@pytest.mark.parametrize("column", ["count = count + 1", "digest = repeat('0', 64)", "oldest_at = oldest_at - interval '1 second'",
    "newest_at = newest_at + interval '1 second'", "last_id = last_id - 1", "marks = substr(marks, 2)"])  # fmt: skip
def test_a_segment_that_was_changed_breaks_the_chain(sealed: int, column: str) -> None:
    as_owner(f"UPDATE pools_auditsegment SET {column} WHERE id = 2")  # noqa: S608
    assert "chain_broken" in codes()


def test_from_a_day_on(clock) -> None:
    for _ in range(3):
        factories.take(factories.pool("10.0.0.0/24"))
        audit.seal()
        clock.advance(86400)
    days = list(models.AuditSegment.objects.values_list("newest_at", flat=True))
    assert len(days) == 3
    as_owner("UPDATE pools_blockevent SET holder_id = 'mallory'"
             " WHERE pgh_id = (SELECT min(pgh_id) FROM pools_blockevent)")  # fmt: skip
    assert codes() == ["event_changed"]
    assert codes(since=days[1]) == []
    assert codes(since=days[0]) == ["event_changed"]
    report = audit.verify(since=days[2] + timedelta(days=9))
    assert (report.segments, report.unchecked) == (0, 3)


def test_what_is_not_sealed_yet_is_no_fault(sealed: int) -> None:
    factories.take(factories.pool("10.77.0.0/24"))
    report = audit.verify()
    assert report.faults == []
    assert report.unsealed > 2


def test_a_number_that_was_never_drawn_is_named(sealed: int) -> None:
    number = models.BlockEvent.objects.order_by("pgh_id")[3].pk
    as_owner("UPDATE pools_blockevent SET pgh_id = pgh_id + 100000 WHERE pgh_id = %s", number)
    faults = audit.verify().faults
    assert [(fault.code, fault.numbers) for fault in faults] == [
        ("event_added", [number + 100000]),
        ("events_missing", [number]),
    ]


def test_a_column_that_is_gone_is_said(sealed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = audit.current_columns()
    layout["pools_blockevent"].remove("holder_id")
    monkeypatch.setattr(audit, "current_columns", lambda: layout)
    faults = audit.verify().faults
    assert {fault.code for fault in faults} == {"columns_gone"}
    assert "pools_blockevent.holder_id" in faults[0].message


def test_what_no_time_was_left_for_is_said(sealed: int) -> None:
    report = audit.verify(seconds=-1)
    assert (report.segments, report.unchecked) == (0, models.AuditSegment.objects.count())


# --- Events go by whole segments, and the chain stays whole without them --------------------------
DAY = 86400


def test_the_chain_verifies_without_what_was_purged(clock) -> None:
    held = factories.take(factories.pool("10.0.0.0/24"))
    factories.give_back(factories.take(factories.pool("10.1.0.0/24")))
    audit.seal()
    clock.advance(40 * DAY)
    factories.take(factories.pool("10.2.0.0/24"))
    gone = retention.purge_events(30)
    assert gone > 4
    first = models.AuditSegment.objects.order_by("id")[0]
    assert first.retained == models.BlockEvent.objects.filter(pgh_obj_id=held["id"]).count() == 1
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
    first = models.AuditSegment.objects.order_by("id")[0]
    assert first.retained == 0
    assert not audit.verify().faults


def test_a_segment_that_does_not_verify_stays_as_evidence(clock) -> None:
    factories.give_back(factories.take(factories.pool("10.0.0.0/24")))
    audit.seal()
    as_owner("UPDATE pools_blockevent SET holder_id = 'mallory'")
    clock.advance(40 * DAY)
    before = models.Event.objects.count()
    assert retention.purge_events(30) == 0
    assert models.Event.objects.count() == before


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


# --- Sealing and verifying by the worker and by command, and where a broken chain shows -----------
@pytest.fixture
def event() -> int:
    """The number of a sealed event."""
    factories.take(factories.pool("10.0.0.0/24"))
    assert tasks.seal_events() == 4
    return models.BlockEvent.objects.get().pk


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
    assert line.endswith(f" anchor {models.AuditSegment.objects.get().anchor}")


def test_a_fault_stays_until_a_verification_looks_for_it(
    event: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_owner("UPDATE pools_blockevent SET org = 'mallory' WHERE pgh_id = %s", event)
    assert tasks.verify_events() == 1
    with monkeypatch.context() as patch:
        patch.setattr(audit, "verify", lambda **_: audit.Report(unchecked=1))
        assert tasks.verify_events() == 0  # no time was left for the segment of the fault
    assert models.Alert.objects.get().is_open
    as_owner("UPDATE pools_blockevent SET org = '' WHERE pgh_id = %s", event)
    assert tasks.verify_events() == 0
    assert not models.Alert.objects.get().is_open
