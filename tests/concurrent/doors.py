"""The doors through which a client of the history test allocates and releases.

A door never raises: an answer is `ok`, `refused` with the register's code, `unknown` (the
connection broke, 503: the same request is sent again), or anything else, which the checker reports.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tests.concurrent import journal

if TYPE_CHECKING:
    from pools.platform import idempotency

KIND = "vm"
ERROR = "error"
SECONDS = 8.0


class Door(Protocol):
    def allocate(self, owner: str, pool: str) -> journal.Answer: ...

    def release(self, owner: str, block: int) -> journal.Answer: ...


class Http:
    """The REST API, one connection kept open, an Idempotency-Key for each owner."""

    def __init__(self, port: int, token: str, pools: Mapping[str, int]) -> None:
        self.pools = pools
        self._headers = {"Authorization": f"Token {token}", "Content-Type": "application/json"}
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)

    def allocate(self, owner: str, pool: str) -> journal.Answer:
        status, body = self._post(
            f"/api/v1/pools/{self.pools[pool]}/allocations/",
            {"holder": {"kind": KIND, "id": owner}},
            {"Idempotency-Key": owner},
        )
        if status not in {200, 201}:
            return _refusal(status, body)
        (block,) = body["blocks"]
        return journal.Answer(journal.OK, block["address"], block["id"])

    def release(self, owner: str, block: int) -> journal.Answer:
        status, body = self._post(
            f"/api/v1/blocks/{block}/release/", {"holder": {"kind": KIND, "id": owner}}, {}
        )
        return journal.Answer(journal.OK) if status == 200 else _refusal(status, body)

    def _post(self, path: str, body: Any, headers: Mapping[str, str]) -> tuple[int, Any]:
        """Status and body; status 0 when nobody knows what became of it."""
        try:
            self._connection.request("POST", path, json.dumps(body), self._headers | headers)
            answer = self._connection.getresponse()
            return answer.status, json.loads(answer.read())
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return 0, {}
        except ValueError as error:
            return 599, {"code": f"no JSON: {error}"}


def _refusal(status: int, body: Any) -> journal.Answer:
    code = body.get("code", "")
    if status in {0, 503}:
        return journal.Answer(journal.UNKNOWN, code=code)
    if status in {404, 409}:
        return journal.Answer(journal.REFUSED, code=code)
    return journal.Answer(ERROR, code=f"{status} {code}")


@dataclass(frozen=True)
class Place:
    """Where a service door finds its database, user and pools."""

    database: str
    user_id: int
    pools: Mapping[str, int]


class Service:
    """The services, as the REST views call them, in a process of its own."""

    def __init__(self, place: Place) -> None:
        setup_django()
        self.place = place
        self.connect()

    def connect(self) -> None:
        from django.db import connection, connections

        connections.databases["default"]["NAME"] = self.place.database
        connection.close()
        connection.settings_dict["NAME"] = self.place.database
        self.prepare()

    def prepare(self) -> None:
        """What a mutant does differently for each connection."""

    def key(self, owner: str) -> idempotency.Key | None:
        from pools.platform import idempotency

        return idempotency.parse_key(
            owner, user_id=self.place.user_id, method="POST", path="/", body=owner.encode()
        )

    def allocate(self, owner: str, pool: str) -> journal.Answer:
        def work() -> journal.Answer:
            (block,) = self.take(owner, self.place.pools[pool])
            return journal.Answer(journal.OK, block["address"] or "", block["id"])

        return self._asked(work)

    def take(self, owner: str, pool_id: int) -> list[Any]:
        from pools.register.allocator import allocation
        from tests import factories

        expected = factories.demand(factories.holder(owner, kind=KIND))
        done = allocation.allocate(pool_id, expected, author=factories.BY, key=self.key(owner))
        return list(done.blocks)

    def release(self, owner: str, block: int) -> journal.Answer:
        def work() -> journal.Answer:
            self.give_back(owner, block)
            return journal.Answer(journal.OK)

        return self._asked(work)

    def give_back(self, owner: str, block: int) -> None:
        from pools.register.allocator import allocation
        from tests import factories

        allocation.release(block, factories.holder(owner, kind=KIND), author=factories.BY)

    def _asked(self, work: Callable[[], journal.Answer]) -> journal.Answer:
        from django.db import DatabaseError, InterfaceError, OperationalError

        from pools.core import errors

        try:
            return work()
        except errors.IpamError as error:
            return journal.Answer(journal.REFUSED, code=error.code)
        except (OperationalError, InterfaceError) as error:
            with contextlib.suppress(DatabaseError, InterfaceError):
                self.connect()
            return journal.Answer(journal.UNKNOWN, code=type(error).__name__)
        except DatabaseError as error:
            return journal.Answer(ERROR, code=str(error))


def setup_django() -> None:
    """In a client's process, with the settings of the test run."""
    import django
    from django.apps import apps

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ipam_site.settings")
    if not apps.ready:
        django.setup()
