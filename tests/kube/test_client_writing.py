"""What the client writes to a cluster, and at a cluster of this run."""

import time
from typing import Any

import pytest

from pools.clusters.client import api_client
from pools.platform.outbound import faults
from tests.kube import gateways
from tests.kube.api import Cluster
from tests.kube.fake import FakeCluster
from tests.kube.gateways import CLAIMS, NAMESPACES, NODES, NOWHERE, OLD_POOLS, POOLS


def _apply(
    gateway: api_client.ClusterClient, manifest: dict[str, Any], **how: Any
) -> dict[str, Any]:
    return gateway.apply(POOLS, manifest, **{"manager": "cadastre", **how})


def test_apply_makes_and_changes(gateway: api_client.ClusterClient, name: str) -> None:
    created = _apply(gateway, gateways.pool(name))
    assert created["spec"]["ipv4"]["cidrs"] == ["10.0.0.0/16"]
    changed = _apply(gateway, gateways.pool(name, "10.9.0.0/16"))
    assert changed["spec"]["ipv4"]["cidrs"] == ["10.9.0.0/16"]
    assert changed["metadata"]["uid"] == created["metadata"]["uid"]


def test_the_same_again_changes_nothing(gateway: api_client.ClusterClient, name: str) -> None:
    created = _apply(gateway, gateways.pool(name))
    again = _apply(gateway, gateways.pool(name))
    assert again["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


def test_a_dry_run_stores_nothing(gateway: api_client.ClusterClient, name: str) -> None:
    answer = _apply(gateway, gateways.pool(name), dry_run=True)
    assert answer["spec"]["ipv4"]["maskSize"] == 24
    with pytest.raises(faults.NotFound):
        gateway.get(POOLS, name)


def test_anothers_fields_are_a_conflict_that_names_them(
    gateway: api_client.ClusterClient, name: str
) -> None:
    _apply(gateway, gateways.pool(name), manager="kubectl")
    with pytest.raises(faults.FieldConflict) as conflict:
        _apply(gateway, gateways.pool(name, "10.9.0.0/16"))
    (cause,) = conflict.value.causes
    assert cause.field == ".spec.ipv4.cidrs"
    assert "kubectl" in cause.message
    assert gateway.get(POOLS, name)["spec"]["ipv4"]["cidrs"] == ["10.0.0.0/16"]


def test_what_is_not_valid_is_rejected_with_causes(
    gateway: api_client.ClusterClient, name: str
) -> None:
    wrong = gateways.pool(name)
    wrong["spec"]["ipv4"]["maskSize"] = 99
    with pytest.raises(faults.Rejected) as rejected:
        _apply(gateway, wrong)
    assert [cause.field for cause in rejected.value.causes] == ["spec.ipv4.maskSize"]


@pytest.mark.parametrize(
    "text", ["é 😀", "a\u2028b\u2029c\x85d", "\x7f \t \n \\ \"'", "\ufeff{[:,#"]
)
def test_a_text_arrives_as_it_was(gateway: api_client.ClusterClient, name: str, text: str) -> None:
    manifest = gateways.pool(name, annotations={"text": text})
    assert _apply(gateway, manifest)["metadata"]["annotations"]["text"] == text


def test_create_refuses_what_exists(gateway: api_client.ClusterClient, name: str) -> None:
    gateway.create(POOLS, gateways.pool(name), manager="cadastre")
    with pytest.raises(faults.AlreadyExists):
        gateway.create(POOLS, gateways.pool(name), manager="cadastre")


def test_replace_is_of_a_version(
    cluster: Cluster, gateway: api_client.ClusterClient, name: str
) -> None:
    """Rule `conflict-is-recomputed`."""
    read = gateway.create(POOLS, gateways.pool(name), manager="cadastre")
    cluster.put(gateways.pool(name, labels={"changed": "meanwhile"}))
    with pytest.raises(faults.StaleVersion):
        gateway.replace(POOLS, read, manager="cadastre")
    fresh = gateway.get(POOLS, name)
    fresh["metadata"]["labels"]["ours"] = "yes"
    replaced = gateway.replace(POOLS, fresh, manager="cadastre")
    assert set(replaced["metadata"]["labels"]) == {"changed", "ours"}
    with pytest.raises(ValueError, match="resourceVersion"):
        gateway.replace(POOLS, gateways.pool(name), manager="cadastre")


def test_delete_is_of_one_object_not_of_a_name(
    gateway: api_client.ClusterClient, name: str
) -> None:
    first = gateway.create(POOLS, gateways.pool(name), manager="cadastre")["metadata"]
    with pytest.raises(faults.StaleVersion):
        gateway.delete(POOLS, name, uid="00000000-0000-0000-0000-000000000000")
    with pytest.raises(faults.StaleVersion):
        gateway.delete(POOLS, name, uid=first["uid"], resource_version="1")
    gateway.delete(POOLS, name, uid=first["uid"], dry_run=True)
    gateway.delete(POOLS, name, uid=first["uid"], resource_version=first["resourceVersion"])
    with pytest.raises(faults.NotFound):
        gateway.delete(POOLS, name, uid=first["uid"])


def test_status_is_apart_from_the_spec(
    cluster: Cluster, gateway: api_client.ClusterClient, name: str
) -> None:
    node: dict[str, Any] = {"apiVersion": "cilium.io/v2", "kind": "CiliumNode"}
    node["metadata"] = {"name": name}
    cluster.put({**node, "spec": {"ipam": {}}})
    applied = {**node, "status": {"ipam": {"operator-status": {"error": "full"}}}}
    stored = gateway.apply(NODES, applied, manager="cadastre-status", subresource="status")
    assert stored["status"]["ipam"]["operator-status"]["error"] == "full"


def test_an_absent_kind_and_an_absent_object_of_a_status(
    gateway: api_client.ClusterClient, name: str
) -> None:
    with pytest.raises(faults.KindNotServed):
        gateway.apply(
            gateways.NOWHERE, gateways.pool(name, namespace="default"), manager="cadastre"
        )
    node = {"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": {"name": name}}
    with pytest.raises(faults.NotFound):
        gateway.apply(NODES, {**node, "status": {}}, manager="s", subresource="status")


def test_a_namespace_that_is_not_there(gateway: api_client.ClusterClient, name: str) -> None:
    kind = {"apiVersion": "k8s.cni.cncf.io/v1alpha1", "kind": "IPAMClaim"}
    spec = {"interface": "net1", "network": "a"}
    claim = {**kind, "metadata": {"name": name, "namespace": "nowhere"}, "spec": spec}
    with pytest.raises(faults.NotFound, match="nowhere"):
        gateway.create(gateways.CLAIMS, claim, manager="cadastre")


def test_how_an_apply_is_sent(fake: FakeCluster) -> None:
    with gateways.to(fake) as gateway:
        _apply(gateway, gateways.pool("a"))
        _apply(gateway, gateways.pool("b"), dry_run=True)
    (sent,) = fake.log.writes
    assert sent.content_type == "application/apply-patch+yaml"
    assert sent.query == {"fieldManager": "cadastre"}


@pytest.mark.parametrize("name", ["..", ".", "a/b", "a?x=1", "../nodes/n"])
def test_a_name_stays_inside_its_collection(fake: FakeCluster, name: str) -> None:
    with gateways.to(fake) as gateway, pytest.raises(faults.ClusterFault):
        gateway.get(POOLS, name)
    prefix = "/apis/cilium.io/v2/ciliumpodippools/"
    assert all(item.path.startswith(prefix) for item in fake.log)
    assert all("/" not in item.path.removeprefix(prefix) for item in fake.log) or "/" in name


# --- The gateway against whole clusters: the fakes of each run, and with --real a kube-apiserver
def test_who_it_is(gateway: api_client.ClusterClient) -> None:
    assert gateway.version().startswith("v")
    assert len(gateway.identity()) == 36


def test_what_it_serves(gateway: api_client.ClusterClient) -> None:
    served = {POOLS, OLD_POOLS, NODES, CLAIMS, NAMESPACES}
    assert gateway.served([*served, NOWHERE]) == served


def test_what_it_does_not_serve(gateway: api_client.ClusterClient) -> None:
    with pytest.raises(faults.KindNotServed):
        gateway.list(NOWHERE)
    with pytest.raises(faults.KindNotServed):
        gateway.get(NOWHERE, "a", "default")


def test_shapes(gateway: api_client.ClusterClient) -> None:
    for resource in (POOLS, OLD_POOLS, NODES, CLAIMS):
        schema = gateway.schema(resource)
        assert schema is not None
        assert "spec" in schema["properties"]
    assert gateway.schema(NOWHERE) is None


def test_shapes_without_rights(cluster: Cluster) -> None:
    with gateways.to(cluster, token=cluster.user("nobody-shapes")) as gateway:
        deadline = time.monotonic() + 30
        # Releases before 1.23 publish it some seconds after the definition.
        while (schema := gateway.schema(POOLS)) is None and time.monotonic() < deadline:
            time.sleep(0.2)
        assert schema is not None
        assert "cidrs" in schema["properties"]["spec"]["properties"]["ipv4"]["properties"]


def test_rights(cluster: Cluster) -> None:
    rules = [{"apiGroups": ["cilium.io"], "resources": ["ciliumpodippools"], "verbs": ["list"]}]
    with gateways.to(cluster, token=cluster.user("reader-rights", rules)) as gateway:
        assert gateway.may("list", POOLS)
        assert not gateway.may("patch", POOLS)
        assert not gateway.may("list", POOLS, subresource="status")
        with pytest.raises(faults.Forbidden):
            gateway.list(NODES)


def test_an_unknown_token(cluster: Cluster) -> None:
    with gateways.to(cluster, token="nobody-knows-it") as gateway:
        with pytest.raises(faults.Unauthorized):
            gateway.list(POOLS)
        with pytest.raises(faults.Unauthorized):
            list(gateway.watch(POOLS, "1", seconds=1))


def test_what_happens_is_told(gateway: api_client.ClusterClient, name: str) -> None:
    since = gateway.list(POOLS).resource_version
    created = gateway.apply(POOLS, gateways.pool(name), manager="cadastre")
    gateway.delete(POOLS, name, uid=created["metadata"]["uid"])
    events = [item for item in gateway.watch(POOLS, since, seconds=1) if item.type != "BOOKMARK"]
    assert [event.type for event in events] == ["ADDED", "DELETED"]
    assert events[0].object["metadata"]["uid"] == created["metadata"]["uid"]


def test_pages(
    gateway: api_client.ClusterClient, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    names = [f"{name}-{number}" for number in range(5)]
    for element in names:
        gateway.create(POOLS, gateways.pool(element), manager="cadastre")
    monkeypatch.setattr(api_client, "PAGE", 2)
    listed = [item["metadata"]["name"] for item in gateway.list(POOLS).items]
    assert set(names) <= set(listed)
    assert len(listed) == len(set(listed))


def test_what_the_definition_does_not_know_is_not_stored(
    gateway: api_client.ClusterClient, name: str
) -> None:
    """Pruned, or refused: never silently taken for stored."""
    manifest = gateways.pool(name)
    manifest["spec"]["unknownField"] = 1
    try:
        stored = gateway.apply(POOLS, manifest, manager="cadastre")
    except faults.Rejected as error:
        assert "unknownField" in str(error)  # noqa: PT017 - either is right, by release
    else:
        assert "unknownField" not in stored["spec"]
