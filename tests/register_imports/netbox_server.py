"""A NetBox on this machine: its REST API over HTTPS, with paging, tokens, and faults on demand."""

import contextlib
import http.server
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib import parse

from pools.platform.outbound.credentials import Access
from tests.kube import certificates

AUTHORITY = certificates.Authority()
LISTS = ("aggregates", "prefixes", "ip-ranges", "ip-addresses")
TOKEN = "0123456789abcdef0123456789abcdef01234567"
TOKEN_V2 = "nbt_AbCdEfGhIjKl.0123456789abcdef0123456789abcdef01234567"


def choice(value: str) -> dict[str, str]:
    return {"value": value, "label": value.capitalize()}


def nested(name: str, **more: Any) -> dict[str, Any] | None:
    """A nested object as serializers with `nested=True` write it; None without a name."""
    value = {"id": 1, "url": "https://netbox/1/", "display": name, "name": name, **more}
    return value if name else None


@dataclass
class NetBox:
    """The objects by list, as the API answers them, and what it does to requests."""

    url: str = ""
    version: tuple[int, int] = (4, 2)
    page: int = 2  # MAX_PAGE_SIZE
    objects: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {name: [] for name in LISTS}
    )
    requests: list[tuple[str, str]] = field(default_factory=list)  # path and Authorization
    statuses: list[int] = field(default_factory=list)  # of the next answers, before others
    order: Callable[[dict[str, Any]], Any] = lambda item: item["id"]
    before_page: Callable[[str, int], None] = lambda _path, _offset: None
    raw: Callable[[http.server.BaseHTTPRequestHandler], None] | None = None  # answers instead
    _next: int = 1

    def access(self) -> Access:
        return Access(self.url, ca=AUTHORITY.pem, token=TOKEN)

    def prefix(
        self, prefix: str, status: str = "active", site: str = "", **more: Any
    ) -> dict[str, Any]:
        scope: dict[str, Any] = {"site": nested(site)}
        if self.version >= (4, 2):
            scope = {"scope_type": "dcim.site" if site else None, "scope": nested(site)}
        values = {"is_pool": False, "mark_utilized": False, **scope} | more
        return self._add("prefixes", prefix=prefix, status=choice(status), **values)

    def address(self, address: str, status: str = "active", **more: Any) -> dict[str, Any]:
        values = {"dns_name": "", "assigned_object": None, "role": None}
        return self._add("ip-addresses", address=address, status=choice(status), **values | more)

    def range(self, first: str, last: str, status: str = "active", **more: Any) -> dict[str, Any]:
        ends = {"start_address": first, "end_address": last}
        return self._add("ip-ranges", **ends, status=choice(status), **more)

    def aggregate(self, prefix: str, rir: str) -> dict[str, Any]:
        return self._add("aggregates", prefix=prefix, rir=nested(rir), date_added=None)

    def _add(self, name: str, **values: Any) -> dict[str, Any]:
        shared = {"vrf": None, "tenant": None, "description": "", "comments": "", "tags": [],
                  "custom_fields": {}, "role": None, "vlan": None, "owner": None}  # fmt: skip
        item = {"id": self._next, "family": {"value": 4, "label": "IPv4"}, **shared, **values}
        self._next += 1
        self.objects[name].append(item)
        return item

    def answer(self, path: str) -> tuple[int, Any]:
        """Return the status and the JSON of a request."""
        parts = parse.urlsplit(path)
        name = parts.path.removeprefix("/api/ipam/").strip("/")
        if name not in self.objects:
            return 404, {"detail": "Not found."}
        query = parse.parse_qs(parts.query)
        offset = int(query.get("offset", ["0"])[0])
        self.before_page(name, offset)
        items = sorted(self.objects[name], key=self.order)
        limit = min(int(query.get("limit", ["50"])[0]), self.page)
        more = offset + limit < len(items)
        place = f"http://behind-the-proxy{parts.path}?limit={limit}"
        following = f"{place}&offset={offset + limit}&ordering=id" if more else None
        page = {"count": len(items), "next": following, "previous": None}
        return 200, page | {"results": items[offset : offset + limit]}


@contextlib.contextmanager
def serving(tokens: tuple[str, ...] = (f"Token {TOKEN}", f"Bearer {TOKEN_V2}")) -> Iterator[NetBox]:
    netbox = NetBox()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            authorization = self.headers.get("Authorization", "")
            netbox.requests.append((self.path, authorization))
            if netbox.raw is not None:
                netbox.raw(self)
                return
            status, body = 403, {"detail": "Invalid v1 token"}
            if netbox.statuses:
                status, body = netbox.statuses.pop(0), {"detail": "on demand"}
            elif authorization in tokens:
                status, body = netbox.answer(self.path)
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            if status == 429:
                self.send_header("Retry-After", "3")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.server().load_into(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    netbox.url = f"https://127.0.0.1:{server.server_port}"
    try:
        yield netbox
    finally:
        server.shutdown()
        server.server_close()
