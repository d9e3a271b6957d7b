"""Who may ask the webhook: the cluster's key, or a client certificate that speaks for the cluster."""

import json
from typing import Any

import pytest
from django.test import Client

from pools.core import redaction
from pools.models import Cluster, Event
from pools.webhooks import views
from tests import factories
from tests.edges.webhooks import Door, manifest, path, review


class Connection:
    """What gunicorn puts into the environment of a request that came over TLS."""

    def __init__(self, certificate: dict[str, Any] | None) -> None:
        self._certificate = certificate

    def getpeercert(self) -> dict[str, Any] | None:
        return self._certificate


def _certificate(name: str, *others: str) -> dict[str, Any]:
    return {
        "subject": ((("organizationName", "system:masters"),), (("commonName", name),)),
        "subjectAltName": tuple(("DNS", other) for other in others),
    }


def _status(where: str, certificate: dict[str, Any] | None = None) -> int:
    body = json.dumps(review(manifest("green")))
    extra: Any = {views.SOCKET: Connection(certificate)}
    answer = Client().post(where, body, content_type="application/json", **extra)
    return int(answer.status_code)


def test_the_key_of_the_cluster() -> None:
    door = Door(factories.cluster())
    assert _status(door.path) == 200


def test_unknown_callers() -> None:
    door, other = Door(factories.cluster()), Door(factories.cluster())
    without = factories.cluster().name
    assert _status(path(door.cluster.name)) == 403
    assert _status(path(door.cluster.name, other.key)) == 403
    assert _status(path(door.cluster.name, door.key[:-1])) == 403
    assert _status(path(without, "x")) == 403
    assert _status(path(without, "%00")) == 403
    # Whether there is such a cluster is nobody's business either.
    assert _status(path("nowhere")) == 403
    assert _status(path("nowhere", "x")) == 403
    assert _status(path("nowhere", door.key)) == 404


def test_a_new_key_ends_the_one_before() -> None:
    door = Door(factories.cluster())
    fresh = views.make(door.cluster, author=factories.BY)
    assert _status(door.path) == 403
    assert _status(path(door.cluster.name, fresh)) == 200


def test_only_its_digest_is_kept_and_its_making_is_an_event() -> None:
    door = Door(factories.cluster())
    row = Cluster.objects.values().get(pk=door.cluster.pk)
    assert door.key not in str(row)
    assert len(row["webhook_digest"]) == 64
    event = Event.objects.filter(object_id=door.cluster.pk, type="cluster.changed").get()
    assert event.actor == "tester"
    assert door.key not in str(vars(event))


def test_certificates(settings: Any) -> None:
    one, two = factories.cluster().name, factories.cluster().name
    settings.IPAM_WEBHOOK_CLIENTS = ["apiserver", f"{one}=spiffe://one/api"]
    assert _status(path(one), _certificate("apiserver")) == 200
    assert _status(path(two), _certificate("apiserver")) == 200
    assert _status(path("nowhere"), _certificate("apiserver")) == 404
    assert _status(path(one), _certificate("x", "spiffe://one/api")) == 200
    assert _status(path(two), _certificate("x", "spiffe://one/api")) == 403
    # The group of a certificate is not its name, and none says nothing.
    assert _status(path(one), _certificate("system:masters")) == 403
    assert _status(path(one), _certificate("x", "system:masters")) == 403
    assert _status(path(one), {}) == 403
    assert _status(path(one), None) == 403


def test_no_certificate_is_enough_unless_the_settings_name_it() -> None:
    assert _status(path(factories.cluster().name), _certificate("apiserver")) == 403


def test_a_header_is_no_certificate(settings: Any) -> None:
    settings.IPAM_WEBHOOK_CLIENTS = ["apiserver"]
    where = path(factories.cluster().name)
    headers: Any = {"HTTP_GUNICORN_SOCKET": "apiserver", "HTTP_X_SSL_CLIENT_CN": "apiserver"}
    body = json.dumps(review(manifest("green")))
    answer = Client().post(where, body, content_type="application/json", **headers)
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "text",
    [
        "POST /webhooks/v1/c/cadw%5Fabc/validate-ciliumpodippools HTTP/1.1",
        'failed calling webhook: Post "https://h/webhooks/v1/c/cadw_abc/validate-x?timeout=3s"',
        "POST /webhooks/v1/c/abc/mutate-pods HTTP/1.1",
        "a key cadw_abcdefghijklmnopqrstuvwxyz in a text",
    ],
)
def test_a_key_is_hidden_wherever_it_is_quoted(text: str) -> None:
    assert "abc" not in redaction.redact(text)
    assert "[redacted]" in redaction.redact(text)


def test_an_address_without_a_key_is_left_alone() -> None:
    for name in ("validate-ciliumpodippools", "mutate-pods"):
        text = f"POST /webhooks/v1/c/{name}"
        assert redaction.redact(text) == text
