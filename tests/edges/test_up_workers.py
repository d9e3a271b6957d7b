"""PostgreSQL stores all state, Celery only starts work: a dead worker, beat or Redis, or an emptied one, loses
neither a pending request nor the end of a cooldown. Against a real `manage.py up`.
"""

import http.client
import json
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
import redis

from ipam_site import data_folder
from tests import eventually, running_site
from tests.edges import api as apis


class Register:
    """The REST API and the database of a running site."""

    def __init__(self, site: running_site.Site) -> None:
        self.site = site
        self.token = site.command("token", "admin").strip()
        self.database = psycopg.connect(
            data_folder.connections(site.data)["database_url"], autocommit=True
        )

    def __call__(self, method: str, path: str, body: Any, status: int) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.site.port, timeout=20)
        headers = {"Authorization": f"Token {self.token}", "Content-Type": "application/json"}
        connection.request(method, f"{apis.ROOT}{path}", json.dumps(body), headers)
        answer = connection.getresponse()
        document = json.loads(answer.read())
        connection.close()
        assert answer.status == status, document
        return document

    def pool(self, name: str, cidr: str, cooldown: int) -> str:
        """A pool of one address; where its allocations are asked for."""
        part = {"mask_size": 32, "cidrs": [{"cidr": cidr}]}
        body = {"cluster": "prod", "name": name, "category": "vm", "cooldown_seconds": cooldown}
        created = self("POST", "pools/", {**body, "ipv4": part}, 201)
        return f"pools/{created['id']}/allocations/"

    def scalar(self, statement: str, *values: object) -> Any:
        row = self.database.execute(statement, values).fetchone()
        return row[0] if row else None


@pytest.fixture(scope="module")
def register() -> Iterator[Register]:
    with running_site.used() as data:
        site = running_site.Site(data, "--no-demo")
        try:
            register = Register(site.wait_until_ready())
            register("POST", "clusters/", {"name": "prod"}, 201)
            yield register
            register.database.close()
        finally:
            site.end()


def _kill(name: str) -> Callable[[Register], None]:
    """kill -9 of one child with what it started."""

    def kill(register: Register) -> None:
        running = register.site.descendants()
        pids = [pid for pid, command in running.items() if f"{name} " in f"{command} "]
        assert pids
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        eventually.until(lambda: not running_site.alive(dict.fromkeys(pids, "")))

    return kill


def _flush(register: Register) -> None:
    url = data_folder.connections(register.site.data)["redis_url"]
    with redis.Redis.from_url(url) as client:
        client.flushall()


TROUBLES = {
    "worker": _kill("ipam_site worker"),
    "beat": _kill("ipam_site beat"),
    "redis": _kill("redis-server"),
    "flushall": _flush,
}


@pytest.mark.parametrize("name", TROUBLES)
def test_nothing_is_lost(register: Register, name: str) -> None:
    number = list(TROUBLES).index(name)
    full = register.pool(f"full-{name}", f"10.0.{number}.1/32", cooldown=0)
    cools = register.pool(f"cools-{name}", f"10.1.{number}.1/32", cooldown=2)
    (held,) = register("POST", full, apis.holder("first"), 201)["blocks"]
    waiting = register("POST", full, apis.holder("next") | {"wait": True}, 202)["id"]
    (used,) = register("POST", cools, apis.holder("brief"), 201)["blocks"]

    register("POST", f"blocks/{used['id']}/release/", apis.holder("brief"), 200)
    TROUBLES[name](register)
    # The bell may ring unheard now.
    register("POST", f"blocks/{held['id']}/release/", apis.holder("first"), 200)
    if name == "flushall":
        _flush(register)
    # What a worker tried in vain is tried again after half a minute; here at once.
    register.database.execute("UPDATE pools_allocationrequest SET next_try_at = now()")

    eventually.until(lambda: register.scalar(_REQUEST, waiting) == "fulfilled")
    eventually.until(lambda: register.scalar(_BLOCK, used["id"]) == "available")
    assert register.scalar(_HOLDER, held["id"]) == "next"
    assert register.scalar(_ENDED, used["id"]) == 1


_REQUEST = "SELECT state FROM pools_allocationrequest WHERE id = %s"
_BLOCK = "SELECT state FROM pools_block WHERE id = %s"
_HOLDER = "SELECT holder_id FROM pools_block WHERE id = %s AND state = 'held'"
_ENDED = """
    SELECT count(*) FROM pools_blockevent WHERE pgh_obj_id = %s AND pgh_label = 'cooldown_ended'
"""
