"""A hundred thousand addresses: a worker drafts and commits them with progress, and a second run changes nothing."""

from __future__ import annotations

import pytest
from django.db import connection

from pools.models import Block, Pool, RegisterFile, RegisterImport
from pools.register.imports import drafts, worker
from tests import factories
from tests.register_imports import sources
from tests.register_imports.sources import BY

ROWS = 100_000


@pytest.mark.django_db(transaction=True)
def test_a_hundred_thousand_addresses_by_a_worker() -> None:
    cluster = factories.cluster()
    files = sources.many_addresses(ROWS)
    queued = sources.draft(*files, cluster=cluster)
    assert (queued.status, RegisterFile.objects.count()) == ("queued", 2)
    assert worker.process_import(queued.pk)
    drafted = RegisterImport.objects.get(pk=queued.pk)
    assert drafted.error == ""
    assert sources.counts(drafted) == {"new": ROWS + 400}
    assert drafts.commit(drafted.pk, author=BY).status == "committing"
    worker.process_import(drafted.pk)
    committed = RegisterImport.objects.get(pk=drafted.pk)
    assert (committed.status, committed.error, committed.rows_done) == ("committed", "", ROWS + 400)
    assert Block.objects.filter(state="held").count() == ROWS
    assert Pool.objects.count() == 400
    again = sources.draft(*files, cluster=cluster)
    worker.process_import(again.pk)
    assert sources.counts(RegisterImport.objects.get(pk=again.pk)) == {"unchanged": ROWS + 400}
    drafts.undo(committed.pk, author=BY)
    worker.process_import(committed.pk)
    undone = RegisterImport.objects.get(pk=committed.pk)
    assert (undone.status, undone.error) == ("undone", "")
    assert (Block.objects.count(), Pool.objects.count()) == (0, 0)


@pytest.mark.django_db(transaction=True)
def test_a_transaction_may_pause_while_rows_are_computed() -> None:
    queued = sources.draft(*sources.many_addresses(8_000), cluster=factories.cluster())
    with connection.cursor() as cursor:
        cursor.execute("SET idle_in_transaction_session_timeout = '50ms'")
    try:
        worker.process_import(queued.pk)
        assert RegisterImport.objects.get(pk=queued.pk).status == "drafted"
    finally:
        connection.close()
