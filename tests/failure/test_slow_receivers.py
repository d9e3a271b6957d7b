"""Rule `slow-receiver-delays-only-itself`: with real processes, and receivers that answer byte by byte."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests import eventually
from tests.alerts import receivers
from tests.alerts.receivers import Receiver
from tests.failure.sites import Site
from tests.kube.fake import FakeCluster

SLOW = 6
_CONNECTION = "clusters/prod/connection/"
_RUNS = "SELECT count(*) FROM pools_syncrun WHERE succeeded AND trigger = 'schedule'"
_STATE = "SELECT state FROM pools_delivery WHERE target_id = %s ORDER BY id DESC LIMIT 1"


@dataclass
class Receivers:
    """Those of one test, by their targets."""

    site: Site
    stack: contextlib.ExitStack
    targets: list[int] = field(default_factory=list)

    def add(self, name: str) -> tuple[Receiver, int]:
        receiver = self.stack.enter_context(receivers.serving())
        body = {"name": name, "url": receiver.url, "ca": receivers.AUTHORITY.pem}
        target = self.site.create("webhook-targets/", body)["id"]
        self.targets.append(target)
        return receiver, target

    def test(self, target: int) -> None:
        self.site.create(f"webhook-targets/{target}/test/", {}, status=202)


@pytest.fixture
def webhook_receivers(site: Site) -> Iterator[Receivers]:
    eventually.until(site.ready)
    with contextlib.ExitStack() as stack:
        created = Receivers(site, stack)
        try:
            yield created
        finally:
            for target in created.targets:
                assert site.ask("DELETE", f"webhook-targets/{target}/").status == 204
    eventually.until(site.ready)


class _Drip:
    """Answers of some receivers that never end by themselves; Cadastre breaks each off after 20 s."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.begun = self.ended = 0
        self._lock = threading.Lock()

    def __call__(self, handler: Any, _received: Any) -> None:
        with self._lock:
            self.begun += 1
        with contextlib.suppress(OSError):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
            while not self.released.wait(1):
                handler.wfile.write(b"x")
        with self._lock:
            self.ended += 1

    @property
    def hanging(self) -> int:
        return self.begun - self.ended


@pytest.fixture
def cluster(site: Site) -> Iterator[None]:
    with FakeCluster() as running:
        running.crds("cilium.io_ciliumpodippools.v2", "cilium.io_ciliumnodes")
        body = {"kubeconfig": running.kubeconfig()}
        assert site.ask("PUT", _CONNECTION, body).status == 201
        try:
            yield
        finally:
            assert site.ask("DELETE", _CONNECTION).status == 204


@pytest.mark.exhaustive
def test_they_delay_neither_another_receiver_nor_a_sync_run(
    site: Site, webhook_receivers: Receivers, cluster: None
) -> None:
    drip = _Drip()
    slow = [webhook_receivers.add(f"slow-{number}") for number in range(SLOW)]
    for receiver, _ in slow:
        receiver.answer = drip
    quick, quick_target = webhook_receivers.add("quick")
    # A machine may be so slow that 20 s are over: then once more.
    assert any(
        _all_hang_meanwhile(site, webhook_receivers, drip, slow, quick, quick_target)
        for _ in range(3)
    )
    drip.released.set()


def _all_hang_meanwhile(
    site: Site,
    webhook_receivers: Receivers,
    drip: _Drip,
    slow: list[tuple[Receiver, int]],
    quick: Receiver,
    quick_target: int,
) -> bool:
    """Whether no slow answer ended while the quick receiver was served and a sync run was done."""
    for _, target in slow:
        webhook_receivers.test(target)
    eventually.until(lambda: drip.hanging == SLOW)
    ended, received, runs = drip.ended, len(quick.received), site.scalar(_RUNS)
    webhook_receivers.test(quick_target)
    site.scalar("UPDATE pools_connection SET due_at = now() RETURNING id")
    eventually.until(lambda: len(quick.received) > received)
    eventually.until(lambda: site.scalar(_RUNS) > runs)
    return drip.ended == ended


@pytest.mark.exhaustive
def test_messages_arrive_without_redis_scheduler_and_workers(
    site: Site, webhook_receivers: Receivers
) -> None:
    receiver, target = webhook_receivers.add("ops")
    with site.stopped("beat", "worker", "reconciler", "redis"):
        webhook_receivers.test(target)
        eventually.until(lambda: site.scalar(_STATE, target) == "delivered")
    assert len(receiver.received) == 1
