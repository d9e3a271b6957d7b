"""Long imports: a worker drafts and writes them; one that is killed leaves nothing half done."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest
from django.db import connection, transaction

from claims import tasks
from claims.imports import drafts as import_drafts
from claims.models import Entry, ImportFile, ImportRow, VMImport
from pools.models.register_imports import ImportStatus as Status
from pools.platform.imports import leases, worker
from pools.platform.leases import LeaseLost
from pools.register.allocator import window
from tests.claims import worlds
from tests.claims.imports import drafts, workers
from tests.claims.worlds import BY

pytestmark = pytest.mark.django_db(transaction=True)
COUNT = 2_500
LONG = 120  # seconds that a process may take to start on a slow machine


@pytest.fixture
def waiting() -> VMImport:
    network = worlds.network(subnets=("10.0.0.0/16",))
    return drafts.draft(network, *drafts.many(COUNT))


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def status(of: VMImport) -> str:
    return VMImport.objects.values_list("status", flat=True).get(pk=of.pk)


def kill(of: VMImport, when: Callable[[], bool]) -> None:
    """Start a worker and kill it as soon as something is true."""
    process = workers.start(of.pk)
    until(when)
    process.send_signal(signal.SIGKILL)
    process.wait(LONG)


def blocked() -> bool:
    """Whether another backend waits for a lock of ours."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks"
            " WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid)))"
        )
        return bool(cursor.fetchone()[0])


def lease_ends(of: VMImport) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE claims_vmimport SET leased_until = now() - interval '1 second' WHERE id = %s",
            [of.pk],
        )


@pytest.mark.exhaustive
def test_a_worker_drafts_and_writes_what_waits(waiting: VMImport) -> None:
    assert import_drafts.IMPORTS.leases.due_imports() == [waiting.pk]
    assert tasks.process_import(waiting.pk)
    of = import_drafts.IMPORTS.get(waiting.pk)
    assert (of.status, of.counts["new"], of.rows_done) == (Status.DRAFTED, COUNT, COUNT)
    assert not ImportFile.objects.exists()
    assert import_drafts.IMPORTS.commit(of.pk, author=BY).status == Status.COMMITTING
    assert tasks.process_import(of.pk)
    assert (status(of), Entry.objects.count()) == (Status.COMMITTED, COUNT)
    assert import_drafts.IMPORTS.leases.due_imports() == []
    assert not tasks.process_import(of.pk)


@pytest.mark.exhaustive
def test_committed_in_one_go(waiting: VMImport) -> None:
    VMImport.objects.update(commit_wanted=True)
    worker.process_import(import_drafts.IMPORTS, waiting.pk)
    assert (status(waiting), Entry.objects.count()) == (Status.COMMITTED, COUNT)


@pytest.mark.exhaustive
def test_a_killed_draft_is_taken_up_again(waiting: VMImport) -> None:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("LOCK TABLE claims_importrow IN EXCLUSIVE MODE")
        kill(waiting, blocked)
    assert status(waiting) == Status.DRAFTING
    assert not ImportRow.objects.exists()
    assert import_drafts.IMPORTS.leases.due_imports() == []  # its lease goes on
    lease_ends(waiting)
    assert import_drafts.IMPORTS.leases.due_imports() == [waiting.pk]
    worker.process_import(import_drafts.IMPORTS, waiting.pk)
    assert (status(waiting), ImportRow.objects.count()) == (Status.DRAFTED, COUNT)


@pytest.mark.exhaustive
def test_a_killed_commit_wrote_nothing_and_is_taken_up_again(waiting: VMImport) -> None:
    worker.process_import(import_drafts.IMPORTS, waiting.pk)
    import_drafts.IMPORTS.commit(waiting.pk, author=BY)
    assert waiting.network is not None
    with transaction.atomic():
        window.lock(waiting.network.pool_id or 0)
        kill(waiting, blocked)
    until(lambda: not blocked())
    assert status(waiting) == Status.COMMITTING
    assert not Entry.objects.exists()
    lease_ends(waiting)
    worker.process_import(import_drafts.IMPORTS, waiting.pk)
    assert (status(waiting), Entry.objects.count()) == (Status.COMMITTED, COUNT)


@pytest.mark.exhaustive
def test_a_commit_is_cancelled_before_it_ends(waiting: VMImport) -> None:
    worker.process_import(import_drafts.IMPORTS, waiting.pk)
    import_drafts.IMPORTS.commit(waiting.pk, author=BY)
    assert waiting.network is not None
    with transaction.atomic():
        window.lock(waiting.network.pool_id or 0)
        process = workers.start(waiting.pk)
        until(blocked)
        VMImport.objects.filter(pk=waiting.pk).update(cancel_wanted=True)
    assert process.wait(LONG) == 0
    assert status(waiting) == Status.CANCELLED
    assert not Entry.objects.exists()
    assert not ImportRow.objects.exists()


def test_what_nobody_works_on_is_cancelled_at_once(waiting: VMImport) -> None:
    assert import_drafts.IMPORTS.cancel(waiting.pk, author=BY).status == Status.CANCELLED
    assert not worker.process_import(import_drafts.IMPORTS, waiting.pk)


def test_a_worker_that_lost_its_lease_writes_nothing(waiting: VMImport) -> None:
    work = import_drafts.IMPORTS.leases.take(waiting.pk)
    assert work is not None
    lease_ends(waiting)
    worker.process_import(import_drafts.IMPORTS, waiting.pk)
    with pytest.raises(LeaseLost), transaction.atomic():
        work.end()
    assert status(waiting) == Status.DRAFTED


def test_what_ends_every_worker_fails(waiting: VMImport) -> None:
    for _ in range(leases.TRIES):
        assert import_drafts.IMPORTS.leases.take(waiting.pk)
        lease_ends(waiting)
    worker.process_import(import_drafts.IMPORTS, waiting.pk)
    of = import_drafts.IMPORTS.get(waiting.pk)
    assert (of.status, "5 attempts" in of.error) == (Status.FAILED, True)


def test_bad_rows_leave_a_draft_that_says_so(waiting: VMImport) -> None:
    worker.process_import(import_drafts.IMPORTS, waiting.pk)
    import_drafts.IMPORTS.commit(waiting.pk, author=BY)
    assert waiting.network is not None
    worlds.workload(waiting.network, "other", "00:50:56:ff:00:00", "10.0.1.2")
    worker.process_import(import_drafts.IMPORTS, waiting.pk)
    of = import_drafts.IMPORTS.get(waiting.pk)
    assert (of.status, of.error_code) == (Status.DRAFTED, "import_has_bad_rows")
    assert (of.counts["conflict"], Entry.objects.count()) == (1, 0)


@pytest.mark.exhaustive
def test_what_cannot_be_undone_any_more_says_so(waiting: VMImport) -> None:
    VMImport.objects.update(commit_wanted=True)
    worker.process_import(import_drafts.IMPORTS, waiting.pk)
    assert import_drafts.IMPORTS.undo(waiting.pk, author=BY).undo_wanted
    assert import_drafts.IMPORTS.leases.due_imports() == [waiting.pk]
    assert waiting.network is not None
    worlds.workload(waiting.network, "vm-1", drafts.mac(1), "10.0.1.2")
    worker.process_import(import_drafts.IMPORTS, waiting.pk)
    of = import_drafts.IMPORTS.get(waiting.pk)
    assert (of.status, of.error_code, of.undo_wanted) == ("committed", "import_in_use", False)
    assert Entry.objects.count() == COUNT
