"""Rule `messages-carry-no-code`, for who can write to Redis."""

import os
import pathlib

import kombu
import kombu.exceptions
import kombu.serialization
import pytest
import redis

from ipam_site import celery, data_folder
from tests import eventually
from tests.security.target import RunningTarget


class Bomb:
    """What unpickles as a command."""

    def __init__(self, marker: pathlib.Path) -> None:
        self._marker = marker

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (f"touch {self._marker}",)


def test_workers_decode_json_only(tmp_path: pathlib.Path) -> None:
    marker = tmp_path / "was-here"
    accepted = celery.app.conf.accept_content
    content_type, encoding, body = kombu.serialization.dumps(Bomb(marker), serializer="pickle")
    with pytest.raises(kombu.exceptions.ContentDisallowed):
        kombu.serialization.loads(body, content_type, encoding, accept=accepted)
    assert not marker.exists()
    assert celery.app.conf.task_serializer in accepted


@pytest.mark.exhaustive
def test_a_pickled_message_is_thrown_away_unread(
    running: RunningTarget, tmp_path: pathlib.Path
) -> None:
    marker = tmp_path / "was-here"
    url = data_folder.connections(running.up.data)["redis_url"]
    with kombu.Connection(url) as broker, broker.Producer() as producer:
        producer.publish(
            ((Bomb(marker),), {}, {}), routing_key="ipam.default", serializer="pickle",
            headers={"task": "pools.tasks.tick", "id": "bomb"},
        )  # fmt: skip
    with redis.Redis.from_url(url) as server:
        eventually.until(lambda: not server.llen("ipam.default"))
    eventually.until(lambda: "ContentDisallowed" in running.logs())
    assert not marker.exists()
    assert running.ask("GET", "/readyz").status == 200
