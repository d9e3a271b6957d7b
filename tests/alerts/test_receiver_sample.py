"""The receiver's sample of docs/reference/alerts.md, word for word, in a real HTTPS server."""

from __future__ import annotations

import json
import re
import ssl
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from ipam_site import data_folder
from pools.models import Delivery
from pools.platform.alerts import dispatch, outbox
from pools.platform.conditions import registry
from tests.alerts import receivers
from tests.alerts.receivers import Received, Receiver

if TYPE_CHECKING:
    import http.server
    from collections.abc import Callable

pytestmark = pytest.mark.django_db
DOCUMENT = (data_folder.PROJECT / "docs" / "reference" / "alerts.md").read_text()
Verify = Callable[[str, dict[str, str], bytes], bool] if TYPE_CHECKING else Any


@pytest.fixture
def verified() -> Verify:
    (source,) = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
    space: dict[str, Any] = {}
    exec(compile(source, "docs/reference/alerts.md", "exec"), space)  # noqa: S102
    result: Verify = space["verified"]
    return result


@pytest.fixture
def strict(receiver: Receiver, verified: Verify) -> tuple[Receiver, str]:
    """A receiver that answers 204 to what it verified, and 401 to the rest; the target's secret."""
    target, secret = receiver.target()

    def answer(_handler: http.server.BaseHTTPRequestHandler, received: Received) -> int:
        return 204 if verified(secret, received.headers, received.body) else 401

    receiver.answer = answer
    outbox.write_test(target)
    assert dispatch.send_pending(target.pk) == 1
    assert Delivery.objects.get().last_status == 204
    return receiver, secret


def replay(receiver: Receiver, body: bytes, **changes: str) -> int:
    headers = receiver.received[0].headers | {k.replace("_", "-"): v for k, v in changes.items()}
    request = urllib.request.Request(f"{receiver.url}/hook", body, headers)
    context = ssl.create_default_context(cadata=receivers.AUTHORITY.pem)
    try:
        with urllib.request.urlopen(request, context=context) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_what_was_sent_is_verified_and_whatever_differs_is_not(
    strict: tuple[Receiver, str],
) -> None:
    receiver, _ = strict
    body = receiver.received[0].body
    event = receiver.received[0].event
    assert (event["type"], event["data"]["alert"]) == ("cadastre.alert.test", None)
    stamp = receiver.received[0].headers["X-Cadastre-Timestamp"]
    assert replay(receiver, body) == 204
    assert replay(receiver, body.replace(b"test", b"tent")) == 401
    assert replay(receiver, body, X_Cadastre_Timestamp=str(int(stamp) + 1)) == 401
    assert replay(receiver, body, X_Cadastre_Timestamp="soon") == 401
    assert replay(receiver, body, X_Cadastre_Signature="v1=00") == 401
    assert replay(receiver, body, X_Cadastre_Signature="") == 401


@pytest.mark.parametrize(("age", "status"), [(240, 204), (301, 401), (-360, 401)])
def test_a_message_older_than_five_minutes_is_refused(
    strict: tuple[Receiver, str], age: int, status: int
) -> None:
    receiver, secret = strict
    body, stamp = receiver.received[0].body, int(time.time()) - age
    signature = dispatch.sign(secret, stamp, body)
    changes = {"X_Cadastre_Timestamp": str(stamp), "X_Cadastre_Signature": signature}
    assert replay(receiver, body, **changes) == status


def test_the_document_tells_every_code_and_the_shape_of_a_message(
    strict: tuple[Receiver, str],
) -> None:
    alerts = DOCUMENT.partition("\n## Events\n")[0]
    documented = set(re.findall(r"^\| `([a-z_]+)` \| (?:error|warning|info)", alerts, re.MULTILINE))
    assert documented == set(registry.codes())
    (sample,) = re.findall(r"```json\n(.*?)```", alerts, re.DOTALL)
    assert set(json.loads(sample)) == set(strict[0].received[0].event)
    for link in re.findall(r"\]\(\.\./(runbooks/[^)]+)\)", DOCUMENT):
        assert (data_folder.PROJECT / "docs" / link).is_file()
