"""The dispatcher: all receivers get their turn, and a stop ends after the messages that are on their way."""

import threading
from concurrent import futures
from typing import Any

import pytest

from pools.models import Delivery
from pools.platform.alerts import dispatch, outbox
from tests.alerts import receivers
from tests.alerts.receivers import Receiver

pytestmark = pytest.mark.django_db(transaction=True)


def test_more_receivers_than_threads_all_get_their_turn(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "RECEIVERS", 2)
    created = [receiver.target(name)[0] for name in "abc"]
    dispatcher = dispatch.Dispatcher()

    def turn() -> set[str]:
        """Each has a message: the names of those that are served."""
        pending = Delivery.objects.filter(state="pending")
        for target in created:
            if not pending.filter(target=target).exists():
                outbox.write_test(target)
        dispatcher.send_due()
        futures.wait(list(dispatcher._sending.values()))
        return {target.name for target in created} - {row.target.name for row in pending}

    assert [turn(), turn(), turn()] == [{"a", "b"}, {"a", "c"}, {"b", "a"}]


def test_a_stop_waits_for_the_message_on_its_way_only(receiver: Receiver) -> None:
    arrived, released = threading.Event(), threading.Event()

    def hang(_handler: Any, _received: Any) -> int:
        arrived.set()
        released.wait(60)
        return receivers.ACCEPTED

    receiver.answer = hang
    target, _ = receiver.target()
    for _ in range(3):
        outbox.write_test(target)
    dispatcher = dispatch.Dispatcher()
    dispatcher.send_due()
    assert arrived.wait(60)
    dispatcher.stop(0.1)  # no longer
    released.set()
    dispatcher.stop(60)
    assert len(receiver.received) == 1
    assert sorted(Delivery.objects.values_list("state", flat=True)) == [
        "delivered",
        "pending",
        "pending",
    ]
