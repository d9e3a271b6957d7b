"""A hundred thousand addresses: a worker drafts and commits them with progress, and a second run changes nothing."""

from typing import Any

import pytest
from django.db import connection

from pools.models import Block, ImportFile, Pool, RegisterImport
from pools.platform.imports import worker
from pools.register.imports import drafts, files, sources as netbox_sources
from tests import factories
from tests.register_imports import sources
from tests.register_imports.sources import BY

ROWS = 100_000


@pytest.mark.django_db(transaction=True)
def test_a_hundred_thousand_addresses_by_a_worker() -> None:
    cluster = factories.cluster()
    files = sources.many_addresses(ROWS)
    queued = sources.draft(*files, cluster=cluster)
    assert (queued.status, ImportFile.objects.count()) == ("queued", 2)
    assert worker.process_import(queued.pk)
    drafted = RegisterImport.objects.get(pk=queued.pk)
    assert drafted.error == ""
    assert sources.counts(drafted) == {"new": ROWS + 400}
    assert sources.commit(drafted).status == "committing"
    worker.process_import(drafted.pk)
    committed = RegisterImport.objects.get(pk=drafted.pk)
    assert (committed.status, committed.error, committed.rows_done) == ("committed", "", ROWS + 400)
    assert Block.objects.filter(state="held").count() == ROWS
    assert Pool.objects.count() == 400
    again = sources.draft(*files, cluster=cluster)
    worker.process_import(again.pk)
    assert sources.counts(RegisterImport.objects.get(pk=again.pk)) == {"unchanged": ROWS + 400}
    sources.undo(committed)
    worker.process_import(committed.pk)
    undone = RegisterImport.objects.get(pk=committed.pk)
    assert (undone.status, undone.error) == ("undone", "")
    assert (Block.objects.count(), Pool.objects.count()) == (0, 0)


@pytest.mark.django_db(transaction=True)
def test_a_large_mirror_releases_and_restores_its_addresses(monkeypatch: Any) -> None:
    reading = files.Reading()
    for content in sources.many_addresses(8_000):
        files.read_file("", content, reading)
    monkeypatch.setattr(netbox_sources, "read", lambda _: reading)
    values = {"name": "dc", "url": "https://netbox.example", "cluster": factories.cluster()}
    mirror = netbox_sources.create(values, token="secret", author=BY)
    runs = []
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = '15s'")  # joined row by row they would take longer
    try:
        for _ in range(2):
            runs.append(netbox_sources.start(mirror.pk, mirror=True, author=BY))
            worker.process_import(runs[-1].pk)
            reading.rows = reading.rows[:-3_000]
        runs[-1].refresh_from_db()
        assert sources.counts(runs[-1]) == {"unchanged": 5_032, "vanished": 3_000}
        drafts.confirm_vanished(runs[-1].pk, author=BY)
        assert Block.objects.filter(state="held").count() == 5_000
        sources.undo(runs[-1])
        worker.process_import(runs[-1].pk)
        assert Block.objects.filter(state="held").count() == 8_000
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
def test_a_transaction_may_pause_while_rows_are_computed() -> None:
    queued = sources.draft(*sources.many_addresses(8_000))
    with connection.cursor() as cursor:
        cursor.execute("SET idle_in_transaction_session_timeout = '50ms'")
    try:
        worker.process_import(queued.pk)
        assert RegisterImport.objects.get(pk=queued.pk).status == "drafted"
    finally:
        connection.close()
