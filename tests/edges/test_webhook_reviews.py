"""The protocol of the webhook: what is answered when, and that asking changes nothing."""

import json
import threading
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext

from pools.core.cilium import podippool
from pools.models import Cluster, Event, ObservedObject
from pools.register import manifests, pools
from pools.webhooks import register, reviews
from tests import factories
from tests.edges.webhooks import UID, Door, changed, manifest, refused, reserving, review, warned

CIDR = "10.0.0.0/16"


@pytest.fixture
def door() -> Door:
    return Door(factories.cluster())


def _without(key: str) -> dict[str, Any]:
    asked = review(manifest("green"))
    del asked["request"][key]
    return asked


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b" ", "object_expected"),
        (b"[]", "object_expected"),
        (b"{", "json_syntax"),
        (b'{"a": 1, "a": 2}', "duplicate_key"),
        (b"[" * 100_000, "too_deep"),
        ({}, "unsupported_kind"),
        ({**review(manifest("green")), "apiVersion": "admission.k8s.io/v1beta1"}, "unsupported_kind"),
        ({**review(manifest("green")), "request": []}, "invalid"),
        (_without("uid"), "required"),
        (_without("operation"), "required"),
        (_without("object"), "required"),
        (_without("resource"), "unsupported_kind"),
        (review(manifest("green"), operation="CONNECT"), "invalid_choice"),
        (review(manifest("green"), object=[]), "wrong_type"),
        (review(manifest("green"), uid=7), "wrong_type"),
        (review(None, None), "required"),
    ],
)  # fmt: skip
def test_what_is_no_review(door: Door, body: Any, code: str) -> None:
    answer = door.post(body)
    assert (answer.status_code, answer.json()["code"]) == (400, code)


@pytest.mark.parametrize("uid", [UID, "x", "a" * 300, '\u00fc\n"', "0" * 36])
def test_the_uid_of_the_question_is_echoed(door: Door, uid: str) -> None:
    for item in (review(manifest("green", CIDR), uid=uid), review(manifest("x" * 300), uid=uid)):
        answer = door.post(item)
        assert (answer.status_code, answer.json()["response"]["uid"]) == (200, uid)


@pytest.mark.parametrize("method", ["get", "put", "delete"])
def test_other_methods(door: Door, method: str) -> None:
    assert getattr(Client(), method)(door.path).status_code == 405


def test_other_media_types(door: Door) -> None:
    body = json.dumps(review(manifest("green")))
    assert Client().post(door.path, body, content_type="text/plain").status_code == 415
    assert door.post(body.encode(), HTTP_CONTENT_ENCODING="gzip").status_code == 415


def test_a_body_of_three_mebibytes(door: Door) -> None:
    asked = review(manifest("green", CIDR))
    asked["request"]["options"]["filler"] = ""
    room = reviews.LARGEST - len(json.dumps(asked).encode())
    asked["request"]["options"]["filler"] = "x" * room
    assert door.post(asked).status_code == 200
    asked["request"]["options"]["filler"] += "x"
    answer = door.post(asked)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_a_name_that_is_generated_later(door: Door) -> None:
    asked = manifest("green", CIDR)
    asked["metadata"] = {"generateName": "green-"}
    assert warned(door.ask(asked, name="")) == ""


def test_unknown_fields_of_a_newer_definition_are_kept(door: Door) -> None:
    assert warned(door.ask(manifest("green", CIDR, newField={"a": [1]}))) == ""


def _everything(door: Door) -> list[tuple[Any, Any]]:
    before = manifest("green", CIDR, "10.1.0.0/16")
    after = changed(before, cidrs=["10.1.0.0/16"], maskSize=25)
    reserved = changed(before, pool=reserving(CIDR, "10.0.0.0-10.0.0.9"))
    return [(before, None), (after, before), (reserved, before), (None, before)]


@pytest.mark.sample(2)
@pytest.mark.parametrize("dry_run", [False, True])
def test_nothing_is_written_and_asking_twice_is_the_same(door: Door, dry_run: bool) -> None:
    pool = factories.pool(CIDR, within=door.cluster, name="green", category="pod", mask=24)
    factories.take(pool)
    events, cluster = Event.objects.count(), Cluster.objects.get(pk=door.cluster.pk)
    for new, old in _everything(door):
        with CaptureQueriesContext(connection) as queries:
            first = door.ask(new, old, dryRun=dry_run)
        verbs = {query["sql"].split()[0].upper() for query in queries}
        assert verbs <= {"SELECT", "SAVEPOINT", "ROLLBACK", "RELEASE", "WITH"}
        assert door.ask(new, old, dryRun=dry_run) == first
    assert Event.objects.count() == events
    assert (
        Cluster.objects.values().get(pk=cluster.pk)["webhook_key_made_at"]
        == cluster.webhook_key_made_at
    )


def test_the_database_itself_refuses_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(register, "STATEMENT_MS", 700)
    with pytest.raises(DatabaseError, match="read-only"), register.read_only_transaction():
        Cluster.objects.create(name="x")
    assert factories.cluster()  # afterwards all is as before
    limit = _statement_timeout()
    with register.read_only_transaction():
        assert _statement_timeout() == "700ms"
    assert _statement_timeout() == limit


def _statement_timeout() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        return str(cursor.fetchone()[0])


@pytest.mark.exhaustive
def test_few_statements_whatever_the_size(door: Door) -> None:
    counts = []
    for number in (1, 30):
        cidrs = [f"10.{number + index}.0.0/16" for index in range(number)]
        name = f"pool-{number}"
        pool = factories.pool(*cidrs, within=door.cluster, name=name, category="pod", mask=24)
        factories.ask(pool, *factories.holders(3 * number))
        before = manifest(name, *cidrs, "10.99.0.0/16")
        after = changed(before, cidrs=["10.100.0.0/16"])
        with CaptureQueriesContext(connection) as queries:
            door.ask(after, before)
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 10


def test_when_the_database_is_away(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Any] = []

    def ask() -> None:
        try:
            answers.append(door.post(review(manifest("green"))))
        finally:
            connection.close()

    with monkeypatch.context() as patch:
        patch.setitem(connection.settings_dict, "HOST", "127.0.0.1")
        patch.setitem(connection.settings_dict, "PORT", "1")
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join(30)
    assert answers[0].status_code == 503
    assert answers[0].headers["Retry-After"]
    assert UID not in answers[0].content.decode()


def test_a_slow_statement_is_given_up(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(register, "STATEMENT_MS", 50)
    monkeypatch.setattr(register, "_OVERLAPS_HERE", f"SELECT pg_sleep(20){8 * ', %s'}")
    assert door.post(review(manifest("green", CIDR))).status_code == 503
    monkeypatch.undo()
    assert warned(door.ask(manifest("green", CIDR))) == ""


def test_own_writes_pass(door: Door) -> None:
    """What the register has decided is not refused when it is applied."""
    pool = factories.pool(CIDR, within=door.cluster, name="green", category="pod", mask=24)
    factories.take(pool, factories.holder("n1", kind="node"))

    def desired() -> Any:
        return podippool.render(manifests.to_manifest(pool), shape=podippool.Shape.V2)

    first = desired()
    assert warned(door.ask(first)) == ""
    pools.add_cidr(
        pool.pk, factories.entry("10.1.0.0/16", "10.1.0.0-10.1.3.255"), author=factories.BY
    )
    second = desired()
    assert warned(door.ask(second, first)) == ""
    pools.remove_cidr(factories.cidr(pool, "10.1.0.0/16").pk, author=factories.BY)
    assert warned(door.ask(desired(), second)).startswith("the register does not know 10.1.0.0/16")
    refused(door.ask(None, first), "pool_in_use")


def test_what_an_object_without_a_pool_has_is_taken(door: Door) -> None:
    """An object that could not be taken in has its CIDRs in the cluster all the same."""
    ObservedObject.objects.create(
        cluster=door.cluster, kind="CiliumPodIPPool", name="odd", uid="u", resource_version="1",
        manifest=manifest("odd", CIDR), problem_code="overlap", first_seen_at=Now(), changed_at=Now(),
    )  # fmt: skip
    refusal = refused(door.ask(manifest("green", "10.0.4.0/24")), "cidr_overlap")
    assert "10.0.4.0/24 overlaps 10.0.0.0/16 of the pool odd" in refusal
    assert warned(door.ask(manifest("odd", CIDR))) == ""
    grown = changed(manifest("green", "10.0.4.0/24"), cidrs=["10.0.4.0/24", "10.9.0.0/16"])
    warnings = warned(door.ask(grown, manifest("green", "10.0.4.0/24")))
    assert warnings.startswith("10.0.4.0/24 overlaps 10.0.0.0/16 of the pool odd")
