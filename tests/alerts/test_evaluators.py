"""Alerts evaluated and sent by workers, of which one dies or two work at once."""

import http.server
import os
import signal
import subprocess
import sys
import threading
from concurrent import futures
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db import transaction

from pools.models import Alert, Delivery, Now, WebhookTarget
from pools.platform.alerts import dispatch, outbox
from pools.platform.conditions import evaluation, registry
from pools.platform.conditions.registry import ActiveCondition, Condition, OpenLevels
from pools.register.conditions import pools
from tests import factories
from tests.alerts import receivers
from tests.alerts.receivers import Received, Receiver
from tests.concurrent import threads

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def condition(receiver: Receiver) -> WebhookTarget:
    target, _ = receiver.target(codes=["pool_nearly_full"])
    factories.drain(factories.pool("10.0.0.0/30"))
    return target


def test_two_who_evaluate_open_one_alert_and_write_one_message(condition: WebhookTarget) -> None:
    outcomes = threads.together([evaluation.evaluate] * 4)
    assert not threads.failures(outcomes)
    assert (
        sum(len(outcome.opened) for outcome in outcomes if isinstance(outcome, evaluation.Outcome))
        == 2
    )  # the pool is full, and it refused
    assert Alert.objects.filter(code="pool_nearly_full").count() == 1
    assert Delivery.objects.count() == 1


def test_without_the_lock_the_constraint_holds(
    condition: WebhookTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both looked before either wrote: the second is refused whole, its messages with it."""
    looked = threading.Barrier(2)

    def find(_known: OpenLevels) -> list[ActiveCondition]:
        looked.wait(30)
        return []

    monkeypatch.setattr(evaluation, "_lock", lambda **_: True)
    monkeypatch.setattr(registry, "CONDITIONS", [*pools.ALL, Condition({"late": ""}, find)])
    outcomes = threads.together([evaluation.evaluate] * 2)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["IntegrityError", "Outcome"]
    assert (Alert.objects.count(), Delivery.objects.count()) == (2, 1)


def test_two_who_send_send_once(condition: WebhookTarget, receiver: Receiver) -> None:
    evaluation.evaluate()
    sent = threads.together([lambda: dispatch.send_pending(condition.pk)] * 4)
    assert sorted(sent) == [0, 0, 0, 1]
    assert len(receiver.received) == 1


_SEND = """
import django; django.setup()
from pools.platform.alerts import dispatch
dispatch.send_pending({target})
"""


@pytest.mark.exhaustive
def test_a_worker_that_is_killed_in_the_middle_loses_no_message(
    condition: WebhookTarget, receiver: Receiver
) -> None:
    evaluation.evaluate()
    arrived, released = threading.Event(), threading.Event()

    def hang(_handler: http.server.BaseHTTPRequestHandler, _received: Received) -> None:
        arrived.set()
        released.wait(60)

    receiver.answer = hang
    values = django_settings.DATABASES["default"]
    environment = {
        **os.environ,
        "IPAM_ALLOW_LOOPBACK_WEBHOOKS": "1",
        "DATABASE_URL": _url(values),
        "IPAM_KEY_RING": ",".join(django_settings.IPAM_KEY_RING),  # of this very process
    }
    command = [sys.executable, "-c", _SEND.format(target=condition.pk)]
    with subprocess.Popen(command, env=environment) as worker:
        assert arrived.wait(60)
        worker.send_signal(signal.SIGKILL)
    released.set()
    row = Delivery.objects.get()
    assert (row.state, row.attempts) == ("pending", 0)
    assert dispatch.due_targets() == []  # its claim still runs
    Delivery.objects.update(next_try_at=Now())
    receiver.answer = lambda _handler, _received: 204
    assert dispatch.due_targets() == [condition.pk]
    assert dispatch.send_pending(condition.pk) == 1
    first, second = receiver.received
    assert first.headers["X-Cadastre-Delivery"] == second.headers["X-Cadastre-Delivery"]


def _url(values: dict[str, Any]) -> str:
    """The test's own database, as a child process is told of it."""
    from urllib.parse import urlsplit, urlunsplit

    parts = urlsplit(os.environ["DATABASE_URL"])
    return urlunsplit(parts._replace(path=f"/{values['NAME']}"))


def test_a_rollback_takes_alert_and_message_back(condition: WebhookTarget) -> None:
    with transaction.atomic():
        evaluation.evaluate()
        transaction.set_rollback(True)
    assert (Alert.objects.count(), Delivery.objects.count()) == (0, 0)


# --- The dispatcher: all receivers get their turn, and a stop ends after the messages that are on
# their way
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
