"""NetBox over its REST API: aggregates, prefixes, IP ranges and IP addresses, of NetBox 3.x and 4.x.

A reading is complete or raises: a page that fails, or a list that changed while it was read, may not look
like objects that have vanished.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from django.conf import settings
from urllib3 import BaseHTTPResponse, util

from pools.core.register_import.netbox_objects import LISTS
from pools.platform.outbound import faults, guard, transport
from pools.platform.outbound.credentials import Access
from pools.register.imports.files import MOST_ROWS, Reading, SourceRow

PAGE = 1000  # objects of a page; NetBox lowers it to its own MAX_PAGE_SIZE
LARGEST_PAGE = 32 * 1024 * 1024  # bytes
LONGEST_ANSWER = 120.0  # seconds from the first byte of a page to its last
_CHUNK = 64 * 1024
_TIMEOUT = util.Timeout(connect=5.0, read=60.0)
_ATTEMPTS = 4  # of a request that NetBox answers with 429 or 5xx, or not at all
_READINGS = 3  # of a list that changes while it is read
_LONGEST_WAIT = 30.0  # seconds before the next attempt
_BUSY = {429, 502, 503, 504}

Sleep = Callable[[float], None]


class ChangedWhileReading(faults.ClusterFault):
    """The objects changed while they were read; the next run reads them again."""

    code = "changed_while_reading"


def read(access: Access, *, sleep: Sleep = time.sleep) -> Reading:
    """Return all aggregates, prefixes, ranges and addresses. Raises ClusterFault; a partial reading is none."""
    reading = Reading(format="netbox-api")
    with _client(access, sleep) as client:
        for path, kind, texts in LISTS:
            for number, item in enumerate(client.read_list(path), start=1):
                reading.rows.append(SourceRow(number, kind, texts(item), path))
                if len(reading.rows) > MOST_ROWS:
                    raise faults.Rejected(f"NetBox has more than {MOST_ROWS:,} objects")
    return reading


@contextlib.contextmanager
def _client(access: Access, sleep: Sleep) -> Iterator[_Client]:
    target = guard.parse_url(access.server)

    def addresses() -> list[str]:
        return guard.resolve(
            target,
            allow_loopback=settings.IPAM_ALLOW_LOOPBACK_NETBOX,
            loopback_setting="IPAM_ALLOW_LOOPBACK_NETBOX",
        )

    connections = transport.Connections(access, addresses)
    try:
        yield _Client(connections, target, access.token, sleep)
    finally:
        connections.clear()


class _Client:
    def __init__(
        self, connections: transport.Connections, target: guard.Target, token: str, sleep: Sleep
    ) -> None:
        self._connections = connections
        self._base = target.url
        # Tokens of NetBox 4.5 and newer have two parts and a scheme of their own.
        scheme = "Bearer" if token.startswith("nbt_") else "Token"
        self._secrets = [token, token.rpartition(".")[2]]
        self._headers = {"Authorization": f"{scheme} {token}", "Accept": "application/json"}
        self._sleep = sleep

    def read_list(self, path: str) -> list[Mapping[str, Any]]:
        """Return all objects of a list. Raises ChangedWhileReading if it does not stand still."""
        for _ in range(_READINGS):
            items = self._read_once(path)
            if items is not None:
                return items
        raise ChangedWhileReading(f"the list {path} of NetBox changed while it was read")

    def _read_once(self, path: str) -> list[Mapping[str, Any]] | None:
        """Return the objects of a list by id; None if the pages do not belong together.

        Each page begins with the last object of the one before it, else the list was shifted in between: as many may
        have come as have gone.
        """
        by_id: dict[int, Mapping[str, Any]] = {}
        first_count: int | None = None
        last: int | None = None
        while True:
            offset = max(len(by_id) - 1, 0)
            page = self._get(f"/api/ipam/{path}/?limit={PAGE}&offset={offset}&ordering=id")
            items, count = page.get("results"), page.get("count")
            if not isinstance(items, list) or not isinstance(count, int):
                raise faults.MalformedResponse(f"the answer of NetBox to {path} is no list")
            if not all(
                isinstance(item, dict) and isinstance(item.get("id"), int) for item in items
            ):
                raise faults.MalformedResponse(f"NetBox has objects without an id in {path}")
            first_count = count if first_count is None else first_count
            ids = [item["id"] for item in items]
            known = len(by_id)
            by_id |= {item["id"]: item for item in items}
            is_joined = last is None or ids[:1] == [last]
            if count != first_count or not is_joined or len(by_id) != offset + len(items):
                return None
            if not page.get("next"):
                return list(by_id.values()) if len(by_id) == count else None
            if len(by_id) == known:
                return None
            last = ids[-1]

    def _get(self, path: str) -> dict[str, Any]:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                status, wait, body = self._request(path)
            except faults.NO_ANSWER as error:
                fault = faults.fault_of(error)
                if attempt == _ATTEMPTS or not isinstance(fault, faults.Unreachable):
                    raise fault from error
                status, wait, body = 0, 0.0, b""
            if status == 200:
                return _parse(body)
            if status and status not in _BUSY:
                raise _fault(status, path, body, self._secrets)
            if attempt < _ATTEMPTS:
                self._sleep(min(wait or 2.0**attempt, _LONGEST_WAIT))
        raise faults.TooBusy(f"NetBox answers {status} after {_ATTEMPTS} attempts", status=status)

    def _request(self, path: str) -> tuple[int, float, bytes]:
        """Return the status, the seconds to wait that NetBox names, and the body."""
        response = self._connections.urlopen(
            "GET",
            self._base + path,
            headers=self._headers,
            timeout=_TIMEOUT,
            redirect=False,
            preload_content=False,
        )
        with contextlib.closing(response):
            body = _read_body(response)
            response.release_conn()
        wait = response.headers.get("Retry-After", "")
        if location := response.headers.get("Location", ""):
            shown = faults.printable_message(location, self._secrets)[:200]
            raise faults.MalformedResponse(
                f"NetBox answers {response.status} and refers to {shown}: enter the URL that it refers to"
            )
        return int(response.status), float(wait) if wait.isdecimal() else 0.0, body


def _read_body(response: BaseHTTPResponse) -> bytes:
    """Return the body of an answer. Raises MalformedResponse, or TimeoutError for one that trickles in."""
    body = bytearray()
    deadline = time.monotonic() + LONGEST_ANSWER
    while chunk := response.read1(_CHUNK):
        body += chunk
        if len(body) > LARGEST_PAGE:
            raise faults.MalformedResponse("a page of NetBox has more than 32 MiB")
        if time.monotonic() > deadline:
            raise TimeoutError
    return bytes(body)


def _fault(status: int, path: str, body: bytes, secrets: list[str]) -> faults.ClusterFault:
    if status == 401:
        return faults.Unauthorized("NetBox does not accept the token", status=status)
    if status == 403:
        return faults.Forbidden(
            f"NetBox does not accept the token, or it may not read {path}: {_detail(body, secrets)}",
            status=status,
        )
    if status >= 500:
        return faults.ServerFault(f"NetBox answers {status}", status=status)
    return faults.MalformedResponse(
        f"NetBox answers {status} to {path}; is the URL that of its start page?", status=status
    )


def _detail(body: bytes, secrets: list[str]) -> str:
    """Return what NetBox says about an error, such as that the token has expired."""
    detail = ""
    with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
        detail = faults.printable_message(json.loads(body)["detail"], secrets)[:200]
    return detail or "it does not say why"


def _parse(body: bytes) -> dict[str, Any]:
    try:
        page = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise faults.MalformedResponse("the answer of NetBox is no JSON") from error
    if not isinstance(page, dict):
        raise faults.MalformedResponse("the answer of NetBox is no list of objects")
    return page
