"""Long imports: a worker drafts and writes them; one that is killed leaves nothing half done."""

import signal
from collections.abc import Callable, Iterator

import pytest
from django.db import connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from claims.imports import drafts as import_drafts
from claims.models import Entry, Network, VMImport, VMRow
from pools import tasks
from pools.models import ImportFile, Pool
from pools.models.imports import ImportStatus as Status
from pools.platform import advisory_locks
from pools.platform.imports import lifecycle, worker
from pools.register.allocator import window
from tests import eventually
from tests.claims import worlds
from tests.claims.imports import drafts, workers
from tests.claims.worlds import BY
from tests.concurrent import threads

pytestmark = pytest.mark.django_db(transaction=True)
COUNT = 2_500
LONG = 120  # seconds that a process may take to start on a slow machine


@pytest.fixture
def waiting() -> VMImport:
    network = worlds.network(subnets=("10.0.0.0/16",))
    return drafts.draft(network, *drafts.many(COUNT))


def status(of: VMImport) -> str:
    return VMImport.objects.values_list("status", flat=True).get(pk=of.pk)


def kill(of: VMImport, when: Callable[[], bool]) -> None:
    """Start a worker and kill it as soon as something is true."""
    process = workers.start(of.pk)
    eventually.until(when, LONG)
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


def has_worker(of: VMImport) -> bool:
    with transaction.atomic():
        return not advisory_locks.try_lock(advisory_locks.IMPORT, of.pk)


@pytest.fixture
def other_worker(waiting: VMImport) -> Iterator[BaseDatabaseWrapper]:
    """The connection of a worker that has the import; closed, it is that of one that died."""
    connection_of_another = connection.copy()
    with connection_of_another.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [advisory_locks.IMPORT, waiting.pk])
    yield connection_of_another
    connection_of_another.close()


@pytest.mark.exhaustive
def test_a_worker_drafts_and_writes_what_waits(waiting: VMImport) -> None:
    assert lifecycle.due_imports() == [waiting.pk]
    assert tasks.process_import(waiting.pk)
    of = import_drafts.IMPORTS.get(waiting.pk)
    assert (of.status, of.counts["new"], of.rows_done) == (Status.DRAFTED, COUNT, COUNT)
    assert of.tries == 0
    assert not ImportFile.objects.exists()
    assert import_drafts.IMPORTS.commit(of.pk, author=BY).status == Status.COMMITTING
    assert tasks.process_import(of.pk)
    assert (status(of), Entry.objects.count()) == (Status.COMMITTED, COUNT)
    assert lifecycle.due_imports() == []
    assert not tasks.process_import(of.pk)


@pytest.mark.exhaustive
def test_a_killed_draft_is_taken_up_again(waiting: VMImport) -> None:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("LOCK TABLE claims_entry IN ACCESS EXCLUSIVE MODE")
        kill(waiting, blocked)
    eventually.until(lambda: not has_worker(waiting))
    waiting.refresh_from_db()
    assert (waiting.status, waiting.rows_done, waiting.tries) == (Status.DRAFTING, COUNT, 1)
    assert not VMRow.objects.exists()
    assert lifecycle.due_imports() == []  # not at once, and not for ever
    VMImport.objects.update(started_at=waiting.created_at)
    eventually.until(lambda: lifecycle.due_imports() == [waiting.pk])
    worker.process_import(waiting.pk)
    assert (status(waiting), VMRow.objects.count()) == (Status.DRAFTED, COUNT)


@pytest.mark.exhaustive
def test_a_killed_commit_wrote_nothing_and_is_taken_up_again(waiting: VMImport) -> None:
    worker.process_import(waiting.pk)
    import_drafts.IMPORTS.commit(waiting.pk, author=BY)
    with transaction.atomic():
        window.lock(Pool.objects.get().pk)
        kill(waiting, blocked)
    eventually.until(lambda: not has_worker(waiting))
    assert status(waiting) == Status.COMMITTING
    assert not Entry.objects.exists()
    worker.process_import(waiting.pk)
    assert (status(waiting), Entry.objects.count()) == (Status.COMMITTED, COUNT)


@pytest.mark.exhaustive
def test_of_two_workers_one_commits_and_a_user_cancels_it_before_it_ends(waiting: VMImport) -> None:
    worker.process_import(waiting.pk)
    import_drafts.IMPORTS.commit(waiting.pk, author=BY)
    with transaction.atomic():
        window.lock(Pool.objects.get().pk)
        process = workers.start(waiting.pk)
        eventually.until(blocked, LONG)
        assert not worker.process_import(waiting.pk)
        assert import_drafts.IMPORTS.cancel(waiting.pk, author=BY).status == Status.COMMITTING
    assert process.wait(LONG) == 0
    assert status(waiting) == Status.CANCELLED
    assert not Entry.objects.exists()
    assert not VMRow.objects.exists()


@pytest.mark.parametrize("left_in", [Status.QUEUED, Status.DRAFTING])
def test_what_nobody_works_on_is_cancelled_at_once(waiting: VMImport, left_in: Status) -> None:
    VMImport.objects.update(status=left_in)
    assert import_drafts.IMPORTS.cancel(waiting.pk, author=BY).status == Status.CANCELLED
    assert not worker.process_import(waiting.pk)
    assert not ImportFile.objects.exists()


def test_the_import_of_another_worker_is_left_alone_until_that_one_dies(
    waiting: VMImport, other_worker: BaseDatabaseWrapper
) -> None:
    assert not worker.process_import(waiting.pk)
    waiting.refresh_from_db()
    assert (waiting.status, waiting.tries) == (Status.QUEUED, 0)
    other_worker.close()
    eventually.until(lambda: not has_worker(waiting))
    assert worker.process_import(waiting.pk)
    assert status(waiting) == Status.DRAFTED


def test_what_was_cancelled_while_its_worker_died_ends_as_cancelled(
    waiting: VMImport, other_worker: BaseDatabaseWrapper
) -> None:
    VMImport.objects.update(status=Status.DRAFTING)
    assert import_drafts.IMPORTS.cancel(waiting.pk, author=BY).status == Status.DRAFTING
    other_worker.close()
    eventually.until(lambda: not has_worker(waiting))
    worker.process_import(waiting.pk)
    assert status(waiting) == Status.CANCELLED
    assert not ImportFile.objects.exists()


def test_what_ends_every_worker_fails(waiting: VMImport) -> None:
    VMImport.objects.update(status=Status.DRAFTING, tries=worker.TRIES)
    worker.process_import(waiting.pk)
    of = import_drafts.IMPORTS.get(waiting.pk)
    assert (of.status, "5 attempts" in of.error) == (Status.FAILED, True)
    assert not ImportFile.objects.exists()


def test_bad_rows_leave_a_draft_that_says_so(waiting: VMImport) -> None:
    worker.process_import(waiting.pk)
    import_drafts.IMPORTS.commit(waiting.pk, author=BY)
    worlds.workload(Network.objects.get(), "other", "00:50:56:ff:00:00", "10.0.1.2")
    worker.process_import(waiting.pk)
    of = import_drafts.IMPORTS.get(waiting.pk)
    assert (of.status, of.error_code) == (Status.DRAFTED, "import_has_bad_rows")
    assert (of.counts["conflict"], Entry.objects.count()) == (1, 0)


@pytest.mark.exhaustive
def test_what_cannot_be_undone_any_more_says_so(waiting: VMImport) -> None:
    VMImport.objects.update(commit_wanted=True)
    worker.process_import(waiting.pk)
    assert import_drafts.IMPORTS.undo(waiting.pk, author=BY).undo_wanted
    assert lifecycle.due_imports() == [waiting.pk]
    worlds.workload(Network.objects.get(), "vm-1", drafts.mac(1), "10.0.1.2")
    worker.process_import(waiting.pk)
    of = import_drafts.IMPORTS.get(waiting.pk)
    assert (of.status, of.error_code, of.undo_wanted) == ("committed", "import_in_use", False)
    assert Entry.objects.count() == COUNT


def test_two_imports_at_once_into_a_network_without_an_ippool() -> None:
    """The second one takes the IPPool that the first one creates, and sees what it has written."""
    network = worlds.network(role="secondary")
    web, db = (
        drafts.row("web", drafts.mac(1), "10.0.0.11"),
        drafts.row("db", drafts.mac(2), "10.0.0.12"),
    )
    twin = drafts.row("twin", drafts.mac(3), "10.0.0.11")
    first, second = drafts.draft(network, web), drafts.draft(network, web, db, twin)

    def commit(of: VMImport) -> VMImport:
        return import_drafts.IMPORTS.commit(of.pk, skip_bad=True, author=BY)

    results = threads.together(
        [
            threads.in_passing(lambda: commit(first), commit=True),
            threads.meanwhile(lambda: commit(second)),
        ]
    )
    assert not threads.failures(results)
    assert drafts.counts(import_drafts.IMPORTS.get(second.pk)) == {
        "new": 1,
        "unchanged": 1,
        "conflict": 1,
    }
    assert sorted(Entry.objects.values_list("vm", flat=True)) == ["db", "web"]
