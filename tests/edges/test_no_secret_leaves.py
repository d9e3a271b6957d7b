"""Rules `credentials-are-sealed` and `logs-hold-no-secret`, after connecting through each door."""

import base64
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command
from django.db import connection
from django.urls import reverse

from ipam_site import logs
from pools.clusters.reconcile import connecting
from pools.models import Cluster, Connection
from tests import people
from tests.edges import api as apis
from tests.kube import kubeconfigs
from tests.kube.fake import FakeCluster

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("handlers")]


@pytest.fixture
def written(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """All log lines as the site would write them, down to DEBUG."""
    lines: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(logs.LineFormatter().format(record))

    handler = Kept(level=logging.DEBUG)
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield lines
    root.removeHandler(handler)
    root.setLevel(before)


class Canaries:
    """A kubeconfig with a token and a key, and every form in which they could show up."""

    def __init__(self, fake: FakeCluster) -> None:
        pair = fake.certificate("system", ("system:masters",))
        self.kubeconfig = kubeconfigs.text(fake.url, fake.ca, token=fake.token, pair=pair)
        inner = "".join(pair.key.splitlines()[1:-1])
        encoded = base64.b64encode(pair.key.encode()).decode()
        self.forms = [fake.token, inner[:40], inner[-40:], encoded[40:80], pair.key.splitlines()[1]]

    def none_in(self, text: str, where: str) -> None:
        for form in self.forms:
            assert form not in text, where


@pytest.fixture
def canaries(fake: FakeCluster) -> Canaries:
    return Canaries(fake)


def _dump() -> str:
    """Every row of every table."""
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor, include_views=False)
        result = []
        for table in tables:
            cursor.execute(f'SELECT to_jsonb(t)::text FROM "{table}" t')  # noqa: S608
            result += [row[0] for row in cursor.fetchall()]
    return "\n".join(result)


def _command(canaries: Canaries, folder: Path) -> list[str]:
    path = folder / "config"
    path.write_text(canaries.kubeconfig)
    out = io.StringIO()
    for arguments in (
        ["add", "prod", "--kubeconfig", str(path)], ["set", "prod", "--kubeconfig", str(path)],
        ["list"], ["list", "--json"], ["show", "prod"], ["show", "prod", "--json"], ["test", "prod"],
    ):  # fmt: skip
        call_command("cluster", *arguments, stdout=out, stderr=out)
    with pytest.raises(CommandError) as refused:
        call_command("cluster", "add", "second", "--kubeconfig", str(path), stdout=out)
    return [out.getvalue(), str(refused.value)]


def _rest(canaries: Canaries, _folder: Path) -> list[str]:
    api = apis.Api()
    api.cluster()
    body = {"kubeconfig": canaries.kubeconfig}
    place = "clusters/prod/connection/"
    answers = [
        api("POST", f"{place}test/", body), api("PUT", place, body), api("PUT", place, body),
        api("GET", place), api("POST", f"{place}test/", {}), api("PATCH", place, {"paused": True}),
        api("GET", "clusters/prod/"), api("GET", "events/"),
        api("PUT", place, {"kubeconfig": canaries.kubeconfig[:-20], "context": "nowhere"}),
        api("PUT", place, {"kubeconfig": canaries.kubeconfig.replace("token:", "token: {")}),
        api("PUT", place, {"kubeconfig": [canaries.kubeconfig]}),
        api("PUT", place, {"context": canaries.kubeconfig, "kubeconfig": ""}),
    ]  # fmt: skip
    assert [answer.status_code for answer in answers[:3]] == [200, 201, 200]
    return [answer.content.decode() for answer in answers]


def _admin(canaries: Canaries, _folder: Path) -> list[str]:
    cluster = Cluster.objects.create(name="prod")
    client = people.browser()
    connect = reverse("admin:pools_cluster_connect", args=[cluster.pk])
    broken = canaries.kubeconfig.replace("token:", "token: {")
    config = yaml.safe_load(canaries.kubeconfig)
    config["users"][0]["user"]["exec"] = {"command": "x"}
    answers = [
        client.post(connect, {"text": text, "mode": "observed", **more})
        for text, more in (
            (broken, {}), (yaml.safe_dump(config), {}), (canaries.kubeconfig, {"_test": "1"}),
            (canaries.kubeconfig, {"mode": "none"}), (canaries.kubeconfig, {}),
        )
    ]  # fmt: skip
    assert answers[-1].status_code == 302
    pages = [reverse("admin:pools_cluster_change", args=[cluster.pk]), connect]
    pages += [reverse(f"admin:pools_{name}_changelist") for name in ("cluster", "event", "syncrun")]
    answers += [client.get(page) for page in pages]
    answers.append(client.post(reverse("admin:pools_cluster_test", args=[cluster.pk])))
    return [answer.content.decode() for answer in answers]


@pytest.mark.parametrize("door", [_command, _rest, _admin], ids=["command", "REST", "admin"])
def test_no_token_or_key_leaves(
    canaries: Canaries,
    fake: FakeCluster,
    tmp_path: Path,
    written: list[str],
    monkeypatch: pytest.MonkeyPatch,
    door: Any,
) -> None:
    sent: list[str] = []

    def record(_task: Any, *args: Any, **options: Any) -> None:
        sent.append(json.dumps([args, options], default=str))

    monkeypatch.setattr("celery.app.task.Task.apply_async", record)
    answers = door(canaries, tmp_path)
    row = Connection.objects.get(cluster__name="prod")
    assert connecting.cluster_access(row).token == fake.token  # it was taken in whole
    for text in answers:
        canaries.none_in(text, "an answer")
    assert written
    canaries.none_in("\n".join(written), "a log line")
    assert (
        any("PUT" in line or "GET" in line or "POST" in line for line in written)
        or door is _command
    )
    canaries.none_in(_dump(), "the database")
    canaries.none_in("\n".join(sent), "an argument of a task")
    canaries.none_in(repr(row) + repr(connecting.cluster_access(row)), "a repr")
