"""The pages of a connection: connect, test, change, pause, disconnect; by whom; what they never show."""

import base64
import re
from typing import Any

import pytest
import yaml
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from pools.clusters.reconcile import connecting
from pools.models import Cluster, Connection, Now
from pools.platform.conditions import evaluation
from tests import factories, people
from tests.kube import certificates, kubeconfigs
from tests.kube.fake import FakeCluster

HELD = re.compile(r'name="held" value="([^"]+)"')


@pytest.fixture
def cluster() -> Cluster:
    return factories.cluster()


def url(name: str, cluster: Cluster) -> str:
    return reverse(f"admin:pools_cluster_{name}", args=[cluster.pk])


def post(name: str, cluster: Cluster, client: Client | None = None, **data: Any) -> Any:
    return (client or people.browser()).post(url(name, cluster), data)


def connected(fake: FakeCluster, cluster: Cluster, **more: Any) -> Connection:
    answer = post("connect", cluster, text=fake.kubeconfig(), mode="observed", **more)
    assert answer.status_code == 302, answer.content.decode()
    return Connection.objects.get(cluster=cluster)


def errors_of(answer: Any) -> dict[str, list[str]]:
    return {name: list(map(str, result)) for name, result in answer.context["form"].errors.items()}


@pytest.mark.parametrize("door", ["text", "file"])
def test_a_cluster_is_connected(fake: FakeCluster, cluster: Cluster, door: str) -> None:
    text = fake.kubeconfig()
    value = text if door == "text" else SimpleUploadedFile("config", text.encode())
    data = {door: value, "mode": "managed", "managed_resources": ["pools", "conversion"]}
    answer = post("connect", cluster, **data)
    assert answer.status_code == 302
    row = Connection.objects.get()
    assert (row.mode, row.managed_resources) == ("managed", ["pools", "conversion"])
    assert row.identity == fake.kube_system_uid


def test_the_context_is_chosen_after_reading(fake: FakeCluster, cluster: Cluster) -> None:
    config = yaml.safe_load(fake.kubeconfig())
    config["contexts"].append({"name": "second", "context": {"cluster": "test", "user": "test"}})
    client = people.browser()
    first = post("connect", cluster, client, text=yaml.safe_dump(config), mode="observed")
    assert "several contexts" in errors_of(first)["context"][0]
    page = first.content.decode()
    assert fake.token not in page
    assert '<option value="second"' in page
    (held,) = HELD.findall(page)
    done = post("connect", cluster, client, held=held, context="second", mode="observed")
    assert done.status_code == 302
    assert connecting.cluster_access(Connection.objects.get()).token == fake.token


def test_what_is_kept_between_steps_is_for_this_person_and_cluster(
    fake: FakeCluster, cluster: Cluster
) -> None:
    client = people.browser()
    answer = post("connect", cluster, client, text=fake.kubeconfig(), mode="managed", _test="1")
    (held,) = HELD.findall(answer.content.decode())
    for who, where in ((people.browser(), cluster), (client, factories.cluster())):
        refused = post("connect", where, who, held=held, mode="observed")
        assert "Enter it again" in errors_of(refused)["text"][0]
    assert not Connection.objects.exists()


BAD = {
    "no YAML": ("{", "did not find"),
    "a program": ("exec", "programs are not run"),
    "loopback": ("loopback", "loopback"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_what_is_wrong_stands_beside_the_field(cluster: Cluster, text: str, message: str) -> None:
    if text in {"exec", "loopback"}:
        ca = certificates.Authority().pem
        config = yaml.safe_load(kubeconfigs.text("https://127.0.0.1:6443", ca, token="canary"))
        if text == "exec":
            config["users"][0]["user"]["exec"] = {"command": "touch"}
        text = yaml.safe_dump(config)
    answer = post("connect", cluster, text=text, mode="observed")
    assert message in errors_of(answer)["text"][0]
    assert "canary" not in answer.content.decode()
    assert not Connection.objects.exists()


def by_token(fake: FakeCluster, **more: str) -> dict[str, str]:
    return {"server": fake.url, "ca": fake.ca, "token": fake.token, "mode": "observed", **more}


@pytest.mark.parametrize("form", ["PEM", "base64"])
def test_a_cluster_is_connected_by_server_ca_and_token(
    fake: FakeCluster, cluster: Cluster, form: str
) -> None:
    ca = fake.ca if form == "PEM" else base64.b64encode(fake.ca.encode()).decode()
    assert post("connect", cluster, **by_token(fake, ca=ca)).status_code == 302
    access = connecting.cluster_access(Connection.objects.get())
    assert (access.server, access.ca, access.token) == (fake.url, fake.ca, fake.token)


def test_the_token_is_kept_between_steps_and_never_shown(
    fake: FakeCluster, cluster: Cluster
) -> None:
    client = people.browser()
    page = post("connect", cluster, client, **by_token(fake, _test="1")).content.decode()
    assert fake.token not in page
    assert fake.url in page
    (held,) = HELD.findall(page)
    assert (
        post("connect", cluster, client, **by_token(fake, token="", held=held)).status_code == 302
    )


WRONG = {
    "nothing": ({"server": "", "ca": "", "token": ""}, "server", "Enter the API server"),
    "no token": ({"token": ""}, "token", "Enter the token"),
    "no TLS": ({"server": "http://api.example"}, "server", "https://"),
    "no CA": ({"ca": "-----BEGIN CERTIFICATE-----"}, "ca", "certificates in PEM"),
    "no base64": ({"ca": "x"}, "ca", "base64"),
    "no bearer": ({"token": "a b"}, "token", "bearer token"),
    "unreachable": ({"server": "https://127.0.0.1:65000"}, "server", "cannot be reached"),
    "another CA": ({"ca": "another"}, "ca", "certificate is refused"),
    "401": ({"token": "stranger"}, "token", "does not accept the credentials (401)"),
}


@pytest.mark.parametrize(("change", "field", "message"), WRONG.values(), ids=WRONG)
def test_each_fault_of_a_token_stands_at_its_field(
    fake: FakeCluster, cluster: Cluster, change: dict[str, str], field: str, message: str
) -> None:
    if change == {"ca": "another"}:
        change = {"ca": certificates.Authority().pem}
    answer = post("connect", cluster, **by_token(fake, **change))
    assert message in errors_of(answer)[field][0]
    assert not Connection.objects.exists()


@pytest.mark.usefixtures("handlers")
def test_missing_rights_are_named_and_can_be_done_without(
    fake: FakeCluster, cluster: Cluster
) -> None:
    rules = [
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
        {"apiGroups": ["cilium.io"], "resources": ["ciliumnodes"], "verbs": ["*"]},
    ]
    data = by_token(fake, token=fake.user("half", rules))
    page = post("connect", cluster, **data).content.decode()
    assert "Not connected" in page
    assert "list ciliumpodippools.cilium.io" in page
    assert not Connection.objects.exists()
    assert post("connect", cluster, **data, _anyway="1").status_code == 302


@pytest.mark.usefixtures("handlers")
def test_new_credentials_are_tested_before_they_replace_others(
    fake: FakeCluster, other: FakeCluster, cluster: Cluster
) -> None:
    connected(fake, cluster)
    page = post("connect", cluster, text=fake.kubeconfig(), _test="1").content.decode()
    assert "Connection test succeeded" in page
    refused = post("connect", cluster, text=other.kubeconfig())
    assert "Another cluster" in errors_of(refused)["text"][0]


@pytest.mark.usefixtures("handlers")
def test_tested_before_and_after(fake: FakeCluster, cluster: Cluster) -> None:
    answer = post("connect", cluster, text=fake.kubeconfig(), mode="observed", _test="1")
    assert "Connection test succeeded" in answer.content.decode()
    assert not Connection.objects.exists()
    connected(fake, cluster)
    assert "Connection test succeeded" in post("test", cluster).content.decode()
    fake.revoke(fake.token)
    page = post("test", cluster).content.decode()
    assert "Connection test failed" in page
    assert "cluster_unauthorized" in page


def test_what_is_written_is_changed(fake: FakeCluster, cluster: Cluster) -> None:
    connected(fake, cluster)
    assert post("terms", cluster, mode="managed", managed_resources=["pools"]).status_code == 302
    refused = post("terms", cluster, mode="observed", managed_resources=["pools"])
    assert "observed" in errors_of(refused)["managed_resources"][0]
    row = Connection.objects.get()
    assert (row.mode, row.managed_resources) == ("managed", ["pools"])


def test_replaced_paused_reconciled_disconnected(fake: FakeCluster, cluster: Cluster) -> None:
    connected(fake, cluster)
    Connection.objects.update(
        error_code="cluster_unauthorized", error="x", due_at="2099-01-01T00:00:00Z"
    )
    token = fake.user("next", [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
    assert post("connect", cluster, text=fake.kubeconfig(token)).status_code == 302
    assert connecting.cluster_access(Connection.objects.get()).token == token
    post("pause", cluster)
    page = people.browser().post(url("reconcile", cluster), follow=True).content.decode()
    assert "Resume it first" in page
    assert "Resume</button>" in page
    post("resume", cluster)
    assert not Connection.objects.get().paused
    post("disconnect", cluster)
    assert not Connection.objects.exists()
    assert people.browser().get(url("disconnect", cluster)).status_code == 404


STATES: dict[str, tuple[dict[str, Any], str]] = {
    "never": ({}, "never synced"),
    "healthy": ({"succeeded_at": Now()}, "healthy"),
    "stale": ({"succeeded_at": "2020-01-01T00:00:00Z"}, "stale"),
    "unreachable": ({"error_code": "cluster_unreachable", "error": "no route"}, "unreachable"),
    "paused": ({"paused": True}, "paused"),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize(("values", "word"), STATES.values(), ids=STATES)
def test_the_state_in_lists_and_pages(
    fake: FakeCluster, cluster: Cluster, values: dict[str, Any], word: str
) -> None:
    factories.pool("10.0.0.0/24", within=cluster)
    connected(fake, cluster)
    Connection.objects.update(**values)
    client = people.browser()
    listed = reverse("admin:pools_cluster_changelist")
    for page in (listed, reverse("admin:pools_cluster_change", args=[cluster.pk])):
        assert f"</span> {word}</span>" in client.get(page).content.decode()
    key = word.replace(" ", "-")
    for state, count in ((key, 1), ("none", 0)):
        result_list = client.get(f"{listed}?state={state}").context["cl"].result_list
        assert len(result_list) == count
    evaluation.evaluate()
    front = client.get(reverse("admin:index")).content.decode()
    assert (f"Cluster {cluster}: {word}" in front) is (word == "unreachable")
    assert (f"The data of cluster {cluster} is stale" in front) is (word == "stale")


@pytest.mark.parametrize("name", ["test", "pause", "resume", "reconcile"])
def test_what_changes_something_is_no_link(cluster: Cluster, name: str) -> None:
    answer = people.browser().get(url(name, cluster))
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")
    page = reverse("admin:pools_cluster_change", args=[cluster.pk])
    assert re.search(
        rf'Use the button on this page: <a [^>]*href="{page}"', answer.content.decode()
    )
