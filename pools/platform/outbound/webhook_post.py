"""Send a signed POST to a receiver of webhooks, with the same guard and TLS as for API servers.

By the signature the receiver verifies the sender and the age of a message.

Only the status of the response and its Retry-After are read.
"""

import hashlib
import hmac
import threading
from collections.abc import Mapping

from urllib3 import util

from pools.core import errors
from pools.platform.outbound import credentials, faults, guard, transport
from pools.platform.outbound.credentials import Access

LONGEST_URL = 500
CONNECT, READ = 5.0, 10.0  # timeouts in seconds: to connect, and to wait for the next bytes
WHOLE = 20.0  # seconds until the status of the response


def parse_url(text: str, *, field: str = "url") -> str:
    """Return the canonical URL. Raises InvalidInput `url_not_allowed`, `too_long`."""
    if len(text) > LONGEST_URL:
        message = f"may have at most {LONGEST_URL} characters"
        raise errors.InvalidInput.for_field(field, "too_long", message)
    try:
        target = guard.parse_url(text)
    except errors.InvalidInput as error:
        message = error.message.removeprefix("the server's ")
        raise errors.InvalidInput.for_field(field, "url_not_allowed", f"the {message}") from None
    return target.url + ("/" if text.endswith("/") else "")


def parse_ca(pem: str, *, field: str = "ca") -> str:
    """Return certificates in PEM, or "". Raises InvalidInput `bad_pem`, `private_key_in_ca`."""
    text = pem.strip()
    if text:
        credentials.certificates(text, field)
    return f"{text}\n" if text else ""


def post(
    access: Access,
    body: bytes,
    headers: Mapping[str, str],
    *,
    query: str = "",
    allow_loopback: bool = False,
    resolver: guard.Resolver = guard.system_resolver,
) -> tuple[int, str]:
    """Return the HTTP status of the response, whatever it is, and its Retry-After; redirects are not followed.

    `query` is that of the URL, which may be a secret: no fault and no log has it.

    Raises ClusterFault: Unreachable, AddressNotAllowed, TLSRefused.
    """
    target = guard.parse_url(access.server)

    def addresses() -> list[str]:
        return guard.resolve(
            target,
            allow_loopback=allow_loopback,
            loopback_setting="IPAM_ALLOW_LOOPBACK_WEBHOOKS",
            resolver=resolver,
        )

    connections = transport.Connections(access, addresses)
    late = threading.Timer(WHOLE, connections.interrupt)
    late.daemon = True
    late.start()
    try:
        response = connections.urlopen(
            "POST",
            f"{access.server}?{query}" if query else access.server,
            body=body,
            headers=dict(headers),
            timeout=util.Timeout(connect=CONNECT, read=READ),
            redirect=False,
            preload_content=False,
        )
        status, retry_after = int(response.status), response.headers.get("Retry-After", "")
        response.close()
    except faults.NO_ANSWER as error:
        raise faults.fault_of(error) from error
    finally:
        late.cancel()
        connections.clear()
    return status, retry_after


TIMESTAMP = "X-Cadastre-Timestamp"  # Unix time at which this attempt was signed
SIGNATURE = "X-Cadastre-Signature"  # v1=<hex>
DELIVERY = "X-Cadastre-Delivery"  # the same for each attempt
VERSION = "v1"


def sign(secret: str, timestamp: int, body: bytes) -> str:
    """Return the value of the signature header: `v1=` and 64 hexadecimal digits."""
    signed = str(timestamp).encode() + b"." + body
    return f"{VERSION}={hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()}"
