"""Rule `accepted-requests-are-answered`: SIGTERM under load, first red, then the end."""

import contextlib
import http.client
import os
import pathlib
import signal
import threading
from concurrent import futures
from typing import Any

import psycopg
import pytest
from django.core import management
from django.test import Client

from pools.platform import advisory_locks
from tests import eventually, running_site
from tests.edges import api as apis
from tests.failure.sites import Site

CLIENTS = 6


@pytest.mark.exhaustive
@pytest.mark.usefixtures("well")
def test_no_request_that_was_let_in_is_lost(site: Site) -> None:
    pool = site.pool("drained", "10.30.0.0/22")
    slow = site.pool("slow", "10.31.0.0/24")
    pool_id = int(slow.split("/")[1])
    red = threading.Event()
    statuses: list[int] = []

    def client(number: int) -> None:
        """As a balancer lets it: on one connection after the other, until the site is red."""
        count = 0
        while not red.is_set():
            count += 1
            try:
                answer = site.ask("POST", pool, apis.holder(f"vm-{number}-{count}"))
                statuses.append(answer.status)
            except (OSError, http.client.HTTPException):
                statuses.append(0)

    with (
        futures.ThreadPoolExecutor(CLIENTS + 1) as threads,
        psycopg.connect(site.database_url) as holder,
    ):
        loops = [threads.submit(client, number) for number in range(CLIENTS)]
        eventually.until(lambda: len(statuses) > 3 * CLIENTS)
        (site.running.data / "draining").touch()
        eventually.until(lambda: site.ask("GET", "/readyz").status == 503)
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", site.running.port)) as kept:
            kept.request("GET", "/healthz")
            answer = kept.getresponse()
            answer.read()
        # The client is told to connect anew, instead of being cut off while it sends.
        assert (answer.status, answer.headers["Connection"]) == (200, "close")
        red.set()
        for loop in loops:
            loop.result()
        # One request, of a balancer that did not look yet, is in the middle of its work when the
        # signal comes. It waits 2 s for the lock, and its server 2 s for it: no more than that is
        # done meanwhile.
        master, *workers = site.pids("web")
        holder.execute("SELECT pg_advisory_xact_lock(%s, %s)", [advisory_locks.POOL, pool_id])
        in_flight = threads.submit(site.ask, "POST", slow, apis.holder("slow"))
        eventually.until(lambda: bool(site.scalar(_WAITS, pool_id)))
        os.kill(master, signal.SIGTERM)
        # All were told to end when one without a request has ended.
        eventually.until(lambda: len(running_site.alive(dict.fromkeys(workers, ""))) < len(workers))
        holder.rollback()
        assert in_flight.result().status == 201
    assert set(statuses) == {201}
    # Started again, it is ready: whoever said to drain meant the server before.
    eventually.until(lambda: site.pids("web")[:1] not in ([], [master]))
    eventually.until(site.ready)
    assert site.scalar(_HELD, int(pool.split("/")[1])) == len(statuses)


_WAITS = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = %s"
_HELD = "SELECT count(*) FROM pools_block WHERE pool_id = %s AND state = 'held'"


@pytest.mark.django_db
def test_the_command(tmp_path: pathlib.Path, settings: Any, client: Client) -> None:
    settings.IPAM_DATA = tmp_path
    management.call_command("drain")
    assert client.get("/readyz").json()["checks"]["draining"] == "yes"
    management.call_command("drain", "--off")
    management.call_command("drain", "--off")
    assert not (tmp_path / "draining").exists()
    settings.IPAM_DATA = tmp_path / "nowhere"
    with pytest.raises(management.CommandError, match="nowhere"):
        management.call_command("drain")
