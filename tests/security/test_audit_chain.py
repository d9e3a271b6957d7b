"""What a database administrator does to the history with psql, and which command shows it.

Every attack runs as the superuser, with triggers off where they would refuse it. What verifies by itself
afterwards (a tail that was cut off, a chain that was written anew) is shown by an anchor kept elsewhere.
"""

import io
import json
import os
import re
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client

from claims.models import Entry, IPPool, Membership, Network
from ipam_site.supervisor.embedded import SUPERUSER
from pools import tasks
from pools.core.block_fields import BlockAnswer
from pools.models import AuditSegment, BlockEvent, Pool
from pools.platform import audit
from pools.platform.alerts import targets
from tests import factories


@pytest.fixture(autouse=True)
def _superuser() -> None:
    """The role of the tests may become a superuser of the test server."""
    url = urlsplit(os.environ["DATABASE_URL"])
    administrator = url._replace(netloc=f"{SUPERUSER}:{url.password}@{url.hostname}:{url.port}")
    with psycopg.connect(administrator.geturl(), autocommit=True) as session:
        session.execute(f"GRANT {SUPERUSER} TO {url.username}")


def as_superuser(*statements: str, replica: bool = True) -> None:
    """Run SQL as the superuser; as a `replica` no trigger and no foreign key sees it."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(f"SET LOCAL ROLE {SUPERUSER}")
        if replica:
            cursor.execute("SET LOCAL session_replication_role = replica")
        for statement in statements:
            cursor.execute(statement)
        cursor.execute("SET LOCAL session_replication_role = origin")
        cursor.execute("RESET ROLE")


def command(*words: str) -> tuple[int, str]:
    """A command's status and output."""
    out, status = io.StringIO(), 0
    try:
        call_command(*words, stdout=out)
    except SystemExit as end:
        status = int(end.code or 0)
    return status, out.getvalue()


def verify(*words: str) -> list[dict[str, Any]]:
    """The faults; the status is 3 exactly when there are any."""
    status, text = command("ipam", "audit", "verify", "-o", "json", *words)
    faults: list[dict[str, Any]] = json.loads(text)
    assert status == (3 if faults else 0)
    return faults


def codes(*words: str) -> list[str]:
    return [fault["code"] for fault in verify(*words)]


def anchor() -> str:
    last = AuditSegment.objects.last()
    assert last is not None
    return last.anchor


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Pool:
    """A pool with ten held blocks, whose events are sealed in segments of three."""
    monkeypatch.setattr(audit, "SIZE", 3)
    made = factories.pool("10.0.0.0/24", reserved=["10.0.0.9-10.0.0.9"])
    factories.ask(made, *factories.holders(10))
    tasks.seal_events()
    assert codes() == []
    return made


@pytest.fixture
def late(pool: Pool) -> BlockAnswer:
    """A block that was taken later, in the chain's last segment."""
    block = factories.take(pool, factories.holder("late"))
    tasks.seal_events()
    return block


def middle() -> int:
    """The number of an event in the middle of the chain."""
    return int(BlockEvent.objects.order_by("pgh_id")[5].pk)


def test_events_are_not_written_again_while_triggers_are_on(pool: Pool) -> None:
    for statement in (
        "UPDATE pools_blockevent SET holder_id = 'mallory'",
        "DELETE FROM pools_blockevent",
        "UPDATE pools_auditsegment SET digest = ''",
        "DELETE FROM pools_auditsegment",
    ):
        with pytest.raises(DatabaseError, match="Cannot"), transaction.atomic():
            as_superuser(statement, replica=False)


def test_an_event_that_was_changed_is_named(pool: Pool) -> None:
    number = middle()
    as_superuser(f"UPDATE pools_blockevent SET org = 'mallory' WHERE pgh_id = {number}")
    faults = {fault["code"]: fault for fault in verify()}
    assert faults["event_changed"]["numbers"] == [number]
    assert "row_changed" in faults  # the row says what the event said


def test_an_event_that_was_deleted_in_the_middle_is_named(pool: Pool) -> None:
    number = middle()
    as_superuser(f"DELETE FROM pools_blockevent WHERE pgh_id = {number}")
    (missing, row) = verify()
    assert (missing["code"], missing["numbers"]) == ("events_missing", [number])
    assert (row["code"], "it has no event" in row["message"]) == ("row_changed", True)


def cut_the_tail(late: BlockAnswer) -> None:
    """Take away the last block, its event, its segment, and every trace of them."""
    last = AuditSegment.objects.last()
    assert last is not None
    as_superuser(
        f"DELETE FROM pools_block WHERE id = {late['id']}",
        f"DELETE FROM pools_blockevent WHERE pgh_id > {last.after_id}",
        f"DELETE FROM pools_auditsegment WHERE id = {last.pk}",
        f"UPDATE pools_counteduntil SET counted = {last.after_id}, assigned = {last.after_id}",
        f"SELECT setval('pools_event_number', {last.after_id})",
    )


@pytest.mark.exhaustive
def test_a_tail_that_was_cut_off_is_shown_by_an_anchor(late: BlockAnswer) -> None:
    before, kept = AuditSegment.objects.order_by("-id")[1], anchor()
    cut_the_tail(late)
    assert codes() == []  # the chain cannot show it by itself
    (fault,) = verify("--anchor", kept)
    assert fault["code"] == "anchor_missing"
    assert f"the chain ends at segment {before.pk}" in fault["message"]
    assert codes("--anchor", f"{before.pk}:{before.digest}") == []


@pytest.mark.exhaustive
def test_a_tail_that_grew_again_has_another_anchor(late: BlockAnswer, pool: Pool) -> None:
    kept = anchor()
    cut_the_tail(late)
    factories.take(pool, factories.holder("other"))
    tasks.seal_events()
    assert codes() == []
    assert codes("--anchor", kept) == ["anchor_differs"]


def write_the_chain_anew() -> None:
    """Give a block to another holder in the register and in its history, and take all digests again."""
    as_superuser(
        "UPDATE pools_blockevent SET holder_id = 'mallory' WHERE pgh_id = (SELECT min(pgh_id) FROM pools_blockevent)",
        "UPDATE pools_block b SET holder_id = e.holder_id FROM pools_blockevent e"
        " WHERE e.pgh_obj_id = b.id AND e.holder_id = 'mallory'",
        "DELETE FROM pools_auditsegment",
        "DELETE FROM pools_counteduntil",
    )
    audit.seal()


@pytest.mark.exhaustive
def test_a_chain_that_was_written_anew_is_shown_by_an_anchor(pool: Pool) -> None:
    kept = anchor()
    write_the_chain_anew()
    assert codes() == []
    (fault,) = verify("--anchor", kept)
    assert fault["code"] == "anchor_differs"
    assert kept.partition(":")[2] in fault["message"]


@pytest.mark.parametrize("text", ["1:abc", "z" * 64, "a" * 64])
def test_an_anchor_that_cannot_be_read_is_no_success(pool: Pool, text: str) -> None:
    with pytest.raises(Exception, match="write an anchor as SEGMENT:DIGEST"):
        command("ipam", "audit", "verify", "--anchor", text)


@pytest.mark.exhaustive
def test_the_metrics_carry_the_anchor(pool: Pool, settings: Any) -> None:
    settings.IPAM_METRICS_TOKEN = "a token for scrapes"
    text = Client().get("/metrics", headers={"Authorization": "Bearer a token for scrapes"}).text
    (found,) = re.findall(r'ipam_audit_anchor_info\{digest="(\w+)",segment="(\d+)"\} 1', text)
    kept = ":".join(reversed(found))
    assert kept == anchor()
    write_the_chain_anew()
    assert codes("--anchor", kept) == ["anchor_differs"]


# --- rows that were changed past the triggers -----------------------------------------------------

HOLDER = "UPDATE pools_block SET holder_id = 'mallory' WHERE id = {block}"


@pytest.mark.sample(3)
@pytest.mark.parametrize("way", ["session_replication_role", "disable", "disable user"])
def test_a_holder_that_was_changed_with_triggers_off_is_found(late: BlockAnswer, way: str) -> None:
    statement = HOLDER.format(block=late["id"])
    if way == "session_replication_role":
        as_superuser(statement)
    else:
        which = "USER" if way == "disable user" else "ALL"
        as_superuser(f"ALTER TABLE pools_block DISABLE TRIGGER {which}", statement, replica=False)
        status, text = command("check_data", "--only", "triggers")
        assert (status, "pools_block" in text) == (1, True)
        as_superuser(f"ALTER TABLE pools_block ENABLE TRIGGER {which}", replica=False)
    status, text = command("check_data", "--only", "history")
    assert (status, "its last event names vm late" in text) == (1, True)
    (fault,) = verify()
    assert fault["code"] == "row_changed"
    assert "vm mallory" in fault["message"]


ROWS = {
    "a block without a row": ("DELETE FROM pools_block WHERE id = {block}", "it has no row"),
    "a block made free": (
        "UPDATE pools_block SET state = 'available', available_from = now(), holder_id = '' WHERE id = {block}",
        "its row says available",
    ),
    "a pool's cooldown": ("UPDATE pools_pool SET cooldown_seconds = 1 WHERE id = {pool}", "cooldown_seconds"),
    "a CIDR": ("UPDATE pools_poolcidr SET cidr = '10.9.0.0/24' WHERE pool_id = {pool}", "its last event: cidr"),
    "a reserved range": ("DELETE FROM pools_reservedrange WHERE pool_id = {pool}", "it was deleted without an event"),
    "a cluster": ("UPDATE pools_cluster SET name = 'mallory' WHERE id = {other}", "its last event: name"),
    "an entry's MAC": ("UPDATE claims_entry SET mac = '02:00:00:00:00:99'", "its last event: mac"),
    "a right": ("UPDATE claims_membership SET namespaces = ARRAY['mallory']", "its last event: namespaces"),
    "a right that nobody gave": (
        "INSERT INTO claims_membership (user_id, cluster_id, namespaces, role, created_at)"
        " SELECT user_id, {other}, ARRAY['mallory'], role, created_at FROM claims_membership",
        "it has no event",
    ),
    "where webhooks go": ("UPDATE pools_webhooktarget SET codes = ARRAY['mallory']", "its last event: codes"),
}  # fmt: skip


@pytest.mark.exhaustive
@pytest.mark.parametrize("attack", ROWS)
def test_a_row_that_no_event_explains_is_found(late: BlockAnswer, pool: Pool, attack: str) -> None:
    cluster, other = pool.cluster, factories.cluster()
    network = Network.objects.create(cluster=cluster, name="shop")
    ippool = IPPool.objects.create(cluster=cluster, network=network, name="shop")
    Entry.objects.create(ippool=ippool, mac="02:00:00:00:00:01", ips=["10.0.0.7/24"])
    Membership.objects.create(
        user=User.objects.create(username="olga"), cluster=cluster, namespaces=["shop"]
    )
    targets.create("ops", "https://hooks.example.org/", author=factories.BY)
    assert codes() == []
    statement, text = ROWS[attack]
    as_superuser(statement.format(block=late["id"], pool=pool.pk, other=other.pk))
    faults = verify()
    assert {fault["code"] for fault in faults} == {"row_changed"}
    assert text in " ".join(fault["message"] for fault in faults)
    status, output = command("check_data", "--only", "history", "event_blocks", "row_history")
    assert (status, text in output) == (1, True)
