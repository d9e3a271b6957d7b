"""`manage.py cluster`: connected from a kubeconfig, listed, shown, tested, changed, forgotten."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from pools.models import Cluster, Connection
from tests.kube.fake import FakeCluster


def run(*arguments: str) -> str:
    """Both outputs of a verb; none may hold a credential (the tests look)."""
    out = io.StringIO()
    call_command("cluster", *arguments, stdout=out, stderr=out)
    return out.getvalue()


@pytest.fixture
def file(fake: FakeCluster, tmp_path: Path) -> str:
    path = tmp_path / "config"
    path.write_text(fake.kubeconfig())
    return str(path)


def test_a_cluster_is_added_connected_and_divided(fake: FakeCluster, file: str) -> None:
    output = run(
        "add", "prod", "--kubeconfig", file, "--context", "test", "--managed",
        "--enable", "pools,pod-cidrs", "--cluster-prefix", "2001:db8:10::/48",
    )  # fmt: skip
    assert "2001:db8:10:1::/64" in output
    assert f"connected to {fake.url} v1." in output
    assert "managed, writes pools, pod-cidrs" in output
    row = Connection.objects.get()
    assert (row.mode, row.managed_resources) == ("managed", ["pools", "pod-cidrs"])


def test_a_cluster_that_does_not_answer_is_not_added(fake: FakeCluster, file: str) -> None:
    fake.revoke(fake.token)
    with pytest.raises(CommandError, match="cluster_unauthorized: "):
        run("add", "prod", "--kubeconfig", file)
    assert not Cluster.objects.exists()
    assert "connected" in run("add", "prod", "--kubeconfig", file, "--offline")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--context", "nowhere"], "context_missing"),
        (["--enable", "pools"], "managed_resources_of_observed"),
        (["--managed", "--enable", "pods"], "invalid_choice"),
        (["--node-prefix", "2001:db8::/64"], "required"),
    ],
    ids=str,
)
def test_a_refusal_names_its_code(file: str, arguments: list[str], code: str) -> None:
    with pytest.raises(CommandError, match=f"^{code}: "):
        run("add", "prod", "--kubeconfig", file, *arguments)
    assert not Cluster.objects.exists()


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        run("add", "prod", "--kubeconfig", str(tmp_path / "none"))
    with pytest.raises(CommandError, match="not_in_cluster"):
        run("add", "prod", "--in-cluster")


@pytest.mark.usefixtures("fake")
def test_the_list(file: str) -> None:
    run("add", "prod", "--kubeconfig", file)
    run("add", "alone")
    lines = run("list").splitlines()
    assert lines[0].split() == [
        "NAME",
        "STATE",
        "LAST",
        "SYNC",
        "OBJECTS",
        "DRIFT",
        "RESOURCES",
        "VERSION",
    ]
    assert lines[1].split() == ["alone", "not", "connected"]
    assert lines[2].startswith("prod   never synced   never")
    document = json.loads(run("list", "--json"))
    assert [(item["cluster"], item["state"]) for item in document] == [
        ("alone", "not-connected"),
        ("prod", "never-synced"),
    ]


@pytest.mark.usefixtures("fake")
def test_one_is_shown(file: str) -> None:
    run("add", "prod", "--kubeconfig", file)
    assert "state          never-synced" in run("show", "prod")
    document = json.loads(run("show", "prod", "--json"))
    assert document["identity"]
    with pytest.raises(CommandError, match="not_found"):
        run("show", "nobody")


@pytest.mark.usefixtures("handlers")
def test_test_says_what_is_missing_and_fails(fake: FakeCluster, tmp_path: Path) -> None:
    system = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}
    token = fake.user("poor", [system])
    path = tmp_path / "poor"
    path.write_text(fake.kubeconfig(token))
    run("add", "prod", "--kubeconfig", str(path))
    out = io.StringIO()
    with pytest.raises(CommandError, match="a full sync run would fail"):
        call_command("cluster", "test", "prod", stdout=out)
    assert "missing permission: list ciliumpodippools.cilium.io (for reading)" in out.getvalue()
    every = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    fake.grant("poor", [every])
    document = json.loads(run("test", "prod", "--json"))
    assert document["succeeded"]
    assert document["kinds"][0] == {
        "kind": "CiliumPodIPPool",
        "served": ["cilium.io/v2", "cilium.io/v2alpha1"],
        "shape": "v2",
        "note": "",
    }


def test_terms_are_set(file: str) -> None:
    run("add", "prod", "--kubeconfig", file)
    for arguments, expected in (
        (["--managed", "--enable", "pools"], ("managed", ["pools"], False)),
        (["--pause"], ("managed", ["pools"], True)),
        (["--resume", "--enable", ""], ("managed", [], False)),
        (["--enable", "conversion"], ("managed", ["conversion"], False)),
        (["--observed"], ("observed", [], False)),
    ):
        run("set", "prod", *arguments)
        row = Connection.objects.get()
        assert (row.mode, row.managed_resources, row.paused) == expected


def test_credentials_are_replaced_and_forgotten(
    fake: FakeCluster, other: FakeCluster, file: str, tmp_path: Path
) -> None:
    run("add", "prod")
    with pytest.raises(CommandError, match="not_found: The cluster prod is not connected"):
        run("set", "prod", "--pause")
    run("set", "prod", "--kubeconfig", file, "--managed")
    assert "managed" in run("set", "prod", "--kubeconfig", file)
    foreign = tmp_path / "other"
    foreign.write_text(other.kubeconfig())
    with pytest.raises(CommandError, match="identity_changed"):
        run("set", "prod", "--kubeconfig", str(foreign))
    run("add", "second", "--kubeconfig", str(foreign))
    run("disconnect", "prod")
    with pytest.raises(CommandError, match=r"same_cluster: .* as second"):
        run("set", "prod", "--kubeconfig", str(foreign))


def test_from_the_standard_input(fake: FakeCluster, monkeypatch: Any) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(fake.kubeconfig().encode())))
    run("add", "prod", "--kubeconfig", "-")
    assert Connection.objects.get().server == fake.url
