"""Webhooks that an API server calls."""

import contextlib
import copy
import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from claims.core.entries import EntrySpec
from claims.core.workloads.network_selection import ADDRESSES, DEFAULT_NETWORK
from claims.entries import entries, ippools
from claims.models import Decision, Network, NetworkSettings
from claims.webhooks import hooks
from pools.webhooks import configuration
from tests import eventually, factories
from tests.claims import worlds
from tests.claims.ippools.conftest import CRD
from tests.claims.ippools.fleet import manifest
from tests.claims.webhooks import doors
from tests.core.vm_world import MAC, Manifest, pod as launcher, vm_manifest
from tests.kube import own_site
from tests.kube.api import JSON_PATCH, MERGE, OLD_POOLS, POOLS, Api, Cluster, Reply, pool

pytestmark = pytest.mark.django_db(transaction=True)


IPPOOLS = "/apis/ippool.k8s.cni.cncf.io/v1alpha/ippools"
NETWORK = "prod-network"
A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"


@pytest.fixture
def network(tmp_path: pathlib.Path, cluster: Cluster, api: Api) -> Iterator[Network]:
    """A network of the register with 10.0.0.0/24, whose webhook the API server calls."""
    cluster.crds(CRD)
    known = worlds.network(NETWORK)
    with own_site.asked_by(cluster, known.cluster.name, tmp_path, "validate-ippools"):
        eventually.until(lambda: _refuses(api))
        yield known
        cluster.remove("validatingwebhookconfigurations", hooks.VALIDATE_IPPOOLS.name)
        eventually.until(lambda: not _refuses(api))
    for item in cluster.objects("ippools"):
        cluster.remove("ippools", item["metadata"]["name"])


def _refuses(api: Api) -> bool:
    """Whether it is in force: the network's own address is nobody's."""
    probe = manifest("probe", {A: ["10.0.0.0/24"]})
    return api.call("POST", IPPOOLS, probe, dryRun="All").status not in {200, 201}


def test_a_good_one_is_stored_without_a_word(api: Api, network: Network, name: str) -> None:
    answer = api.call("POST", IPPOOLS, manifest(name, {A: ["10.0.0.5/24"]}))
    assert answer.status == 201, answer.json
    assert "Warning" not in answer.headers
    assert api.get(f"{IPPOOLS}/{name}").json["spec"]["entries"] == {A: ["10.0.0.5/24"]}


def test_a_second_one_of_a_network(api: Api, network: Network, name: str) -> None:
    ippools.create(network.cluster, "first", NETWORK, author=worlds.BY)
    refused = api.call("POST", IPPOOLS, manifest(name, {}))
    assert (refused.status, refused.reason) == (403, "Forbidden")
    assert f"{NETWORK} already has an IPPool: first" in refused.json["message"]
    assert api.get(f"{IPPOOLS}/{name}").status == 404
    assert api.call("POST", IPPOOLS, manifest(name, {}, network="other")).status == 201
    renamed = {"spec": {"network-name": NETWORK}}
    moved = api.call("PATCH", f"{IPPOOLS}/{name}", renamed, content_type=MERGE)
    assert "already has an IPPool" in moved.json["message"]


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("mac", "ip"),
    [(A, "10.0.0.255/24"), (A, "10.0.0.5/16"), (A, "10.1.0.5/24"), ("nonsense", "10.0.0.5/24")],
)
def test_an_unusable_entry(api: Api, network: Network, name: str, mac: str, ip: str) -> None:
    refused = api.call("POST", IPPOOLS, manifest(name, {B: ["10.0.0.6/24"], mac: [ip]}))
    assert refused.status == 422
    assert f"spec.entries.{mac}" in refused.json["message"]
    assert f"spec.entries.{B}" not in refused.json["message"]
    assert api.call("POST", IPPOOLS, manifest(name, {B: ["10.0.0.6/24"]})).status == 201
    worse = {"spec": {"entries": {mac: [ip]}}}
    assert api.call("PATCH", f"{IPPOOLS}/{name}", worse, content_type=MERGE).status == 422
    assert api.get(f"{IPPOOLS}/{name}").json["spec"]["entries"] == {B: ["10.0.0.6/24"]}


def test_duplicates_are_warned_of(api: Api, network: Network, name: str) -> None:
    worlds.workload(network, "web", "02:00:00:00:00:0c", "10.0.0.7/24")
    written: dict[str, Any] = {A: ["10.0.0.5/24"], A.upper(): ["10.0.0.7/24"], B: ["10.0.0.5/24"]}
    answer = api.call("POST", IPPOOLS, manifest(name, written))
    assert answer.status == 201, answer.json
    warned = " ".join(answer.headers.get_all("Warning", []))
    assert f"the MAC address {A} occurs in several notations" in warned
    assert "10.0.0.5 is assigned to several MAC addresses" in warned
    assert "10.0.0.7 is also used by a running VM or pod" in warned


def test_one_that_goes_says_what_stays(api: Api, network: Network, name: str) -> None:
    of = ippools.create(network.cluster, name, NETWORK, author=worlds.BY)
    entries.add(of.pk, [EntrySpec(A, ("10.0.0.5/24",))], source="hand", author=worlds.BY)
    assert api.call("POST", IPPOOLS, manifest(name, {A: ["10.0.0.5/24"]})).status == 201
    gone = api.call("DELETE", f"{IPPOOLS}/{name}")
    assert gone.status == 200
    assert "one entry keeps" in gone.headers["Warning"]


# --- Cadastre's own webhook, called by the API server as the printed manifest tells it to ---------
DEPLOY = pathlib.Path(__file__).parents[2] / "deploy" / "kubernetes"
_KIND = "validatingwebhookconfigurations"


@pytest.fixture
def register(tmp_path: pathlib.Path, cluster: Cluster, api: Api) -> Iterator[Any]:
    """A cluster of the register, whose webhook the API server calls."""
    known = factories.cluster()
    with own_site.asked_by(cluster, known.name, tmp_path, "validate-ciliumpodippools"):
        eventually.until(lambda: _denied(api))
        yield known
        cluster.remove(_KIND, configuration.CILIUM_POD_IP_POOLS.name)
        eventually.until(lambda: not _denied(api))


def _denied(api: Api) -> bool:
    """Whether it is in force: it refuses host bits."""
    return api.call("POST", POOLS, pool("probe", "10.0.0.7/16"), dryRun="All").status == 422


def _taken(register: Any, name: str, *cidrs: str) -> None:
    created = factories.pool(*cidrs, within=register, name=name, category="pod", mask=24)
    factories.take(created, factories.holder("n1", kind="node"))


def test_what_is_in_use_is_not_removed(api: Api, register: Any, name: str) -> None:
    assert api.call("POST", POOLS, pool(name, "10.0.0.0/16", "10.1.0.0/16")).status == 201
    _taken(register, name, "10.0.0.0/16", "10.1.0.0/16")
    refused = api.apply(POOLS, pool(name, "10.1.0.0/16"), "test", force="true")
    assert (refused.status, refused.reason) == (403, "Forbidden")
    assert "10.0.0.0/16 cannot be removed: it has 1 held" in refused.json["message"]
    assert "node n1 (10.0.0.0/24, held)" in refused.json["message"]
    refused = api.call("DELETE", f"{POOLS}/{name}")
    assert refused.status == 403
    assert f"the pool {name} is in use" in refused.json["message"]
    assert api.get(f"{POOLS}/{name}").json["spec"]["ipv4"]["cidrs"][0] == "10.0.0.0/16"


def test_what_is_free_may_change(api: Api, register: Any, name: str) -> None:
    assert api.call("POST", POOLS, pool(name, "10.2.0.0/16", "10.3.0.0/16")).status == 201
    _taken(register, name, "10.2.0.0/16", "10.3.0.0/16")
    assert api.apply(POOLS, pool(name, "10.2.0.0/16"), "test", force="true").status == 200
    labelled = {"metadata": {"labels": {"a": "b"}}}
    merge = "application/merge-patch+json"
    assert api.call("PATCH", f"{POOLS}/{name}", labelled, content_type=merge).status == 200


def test_problems_and_warnings_reach_the_user(api: Api, register: Any, name: str) -> None:
    refused = api.call("POST", POOLS, pool(name, "10.4.0.0/16", "10.4.5.0/24"))
    assert refused.status == 422
    assert "spec.ipv4.cidrs.1: 10.4.5.0/24 overlaps 10.4.0.0/16" in refused.json["message"]
    assert "spec.ipv4.cidrs.1" in refused.causes
    odd = api.call("POST", POOLS, pool(name, "10.4.0.0/24", mask=26))
    assert odd.status == 201
    assert "only 4 blocks of /26" in odd.headers["Warning"]
    gone = api.call("DELETE", f"{POOLS}/{name}")
    assert "the register has no pool" in gone.headers["Warning"]


def test_the_old_version_is_judged_too(api: Api, register: Any, name: str) -> None:
    old = pool(name, "10.5.0.7/16") | {"apiVersion": "cilium.io/v2alpha1"}
    refused = api.call("POST", OLD_POOLS, old)
    assert "spec.ipv4.cidrs.0" in refused.json["message"]


def test_a_dry_run_is_judged_and_changes_nothing(api: Api, register: Any, name: str) -> None:
    _taken(register, name, "10.6.0.0/16")
    assert api.call("POST", POOLS, pool(name, "10.6.0.0/16")).status == 201
    assert api.call("DELETE", f"{POOLS}/{name}", dryRun="All").status == 403


def test_generated_names(api: Api, register: Any, name: str) -> None:
    unnamed = pool("x", "10.7.0.0/16")
    unnamed["metadata"] = {"generateName": f"{name}-"}
    answer = api.call("POST", POOLS, unnamed)
    assert answer.status == 201
    api.call("DELETE", f"{POOLS}/{answer.json['metadata']['name']}")


def test_the_role_that_manages_may_create_by_server_side_apply(cluster: Cluster, name: str) -> None:
    (role,) = yaml.safe_load_all((DEPLOY / "cluster-role-manage.yaml").read_text())
    token = cluster.user(f"manager-{name}", role["rules"])
    managing = Api(cluster, token=token)
    with contextlib.closing(managing):
        created: list[Any] = []

        def applied() -> bool:
            created.append(managing.apply(POOLS, pool(name, "10.8.0.0/16"), "cadastre"))
            return created[-1].status in {200, 201}

        eventually.until(applied)  # a server learns of a role a moment after it was written
        assert managing.call("DELETE", f"{POOLS}/{name}").status == 403


def test_the_manifests_are_accepted(api: Api) -> None:
    for path in sorted(DEPLOY.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            if "KEY" not in str(document) and (collection := _collection(api, document)):
                answer = api.call(
                    "POST", collection, document, dryRun="All", fieldValidation="Strict"
                )
                assert answer.status == 201, answer.json


def _collection(api: Api, document: Any) -> str:
    """Its path; "" in the fake, which has no RBAC objects: its users have rules."""
    base = f"/apis/{document['apiVersion']}" if "/" in document["apiVersion"] else "/api/v1"
    answer = api.get(base)
    listed = answer.json["resources"] if answer.status == 200 else ()
    result = [
        item for item in listed if item["kind"] == document["kind"] and "/" not in item["name"]
    ]
    if not result:
        return ""
    if not result[0]["namespaced"]:
        return f"{base}/{result[0]['name']}"
    if document["metadata"]["namespace"] != "kube-system":
        document["metadata"]["namespace"] = "default"  # a dry run makes no namespace
    return f"{base}/namespaces/{document['metadata']['namespace']}/{result[0]['name']}"


# --- The mutating webhooks, called by the API server as the printed manifests tell it to ----------
_MUTATING = "mutatingwebhookconfigurations"
NAMESPACE = "blue"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
VMS = f"/apis/kubevirt.io/v1/namespaces/{NAMESPACE}/virtualmachines"
VMIS = f"/apis/kubevirt.io/v1/namespaces/{NAMESPACE}/virtualmachineinstances"
# As virt-controller makes it.
SPEC = {
    "automountServiceAccountToken": False,
    "containers": [{"name": "compute", "image": "quay.io/kubevirt/virt-launcher"}],
}


@pytest.fixture
def ippool(tmp_path: pathlib.Path, cluster: Cluster, api: Api) -> Iterator[Any]:
    """An IPPool of a network of the namespace `blue`, whose webhooks the API server calls."""
    cluster.crds("kubevirt.io_virtualmachines", "kubevirt.io_virtualmachineinstances")
    cluster.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    pool = doors.world()
    worlds.entry(pool, MAC, "10.0.0.5/16", vm="probe", namespace=NAMESPACE)
    NetworkSettings.objects.create(cluster=pool.cluster)
    with own_site.asked_by(cluster, pool.cluster.name, tmp_path, "mutate-pods", "mutate-vms"):
        eventually.until(lambda: _annotation(_probe(api)) is not None)
        yield pool
        for hook in (hooks.MUTATE_PODS, hooks.MUTATE_VMS):
            cluster.remove(_MUTATING, hook.name)
        eventually.until(lambda: _annotation(_probe(api)) is None)


def _pod(name: str, vm: str, **more: Any) -> Manifest:
    created = launcher(vm, **more) | {"spec": copy.deepcopy(SPEC)}
    created["metadata"] = {**created["metadata"], "name": name}
    return created


def _probe(api: Api) -> Reply:
    return api.call("POST", PODS, _pod("probe", "probe"), dryRun="All")


def _annotation(answer: Reply, name: str = DEFAULT_NETWORK) -> Any:
    assert answer.status in {200, 201}, answer.json
    text = answer.json["metadata"].get("annotations", {}).get(name)
    return text and json.loads(text)


def _entry(ippool: Any, vm: str) -> None:
    worlds.entry(ippool, f"02:00:00:00:01:{len(vm):02x}", "10.0.1.5/16", vm=vm, namespace=NAMESPACE)


@pytest.mark.sample(2)
def test_a_launcher_pod(api: Api, ippool: Any, name: str) -> None:
    doors.see(ippool.cluster, vm_manifest(name, mac=None))
    _entry(ippool, name)
    Decision.objects.all().delete()
    answer = api.call("POST", PODS, _pod(name, name))
    (element,) = _annotation(answer)
    assert element == {
        "name": "default",
        "namespace": "ovn-kubernetes",
        "mac": f"02:00:00:00:01:{len(name):02x}",
        "ips": ["10.0.1.5/16"],
        "ipam-claim-reference": f"{name}.podnet",
    }
    assert "cadastre: gets 10.0.1.5/16" in answer.headers["Warning"]
    assert _annotation(api.get(f"{PODS}/{name}")) == [element]
    decision = Decision.objects.get()
    assert (decision.vm, decision.code, decision.operation) == (name, "patched", "CREATE")


def test_a_generated_name_and_no_annotations(api: Api, ippool: Any, name: str) -> None:
    _entry(ippool, name)
    bare = _pod(name, name)
    bare["metadata"] = {
        "generateName": f"virt-launcher-{name}-",
        "labels": {"kubevirt.io": "virt-launcher", "vm.kubevirt.io/name": name},
    }
    (element,) = _annotation(api.call("POST", PODS, bare))
    assert element["ips"] == ["10.0.1.5/16"]


def test_a_dry_run_is_answered_and_leaves_no_decision(api: Api, ippool: Any, name: str) -> None:
    Decision.objects.all().delete()
    assert _annotation(_probe(api)) is not None
    assert not Decision.objects.exists()


@pytest.mark.sample(2)
def test_updates(api: Api, ippool: Any, name: str) -> None:
    _entry(ippool, name)
    _annotation(api.call("POST", PODS, _pod(name, name)))
    Decision.objects.all().delete()
    labelled = {"metadata": {"labels": {"a": "b"}}}
    answer = api.call("PATCH", f"{PODS}/{name}", labelled, content_type=MERGE)
    before = _annotation(answer)
    assert "Warning" not in answer.headers
    assert not Decision.objects.exists()
    # Somebody who writes the annotation anew without the addresses, as ipam-extensions does.
    less = json.dumps([{key: value for key, value in before[0].items() if key != "ips"}])
    patch = {"metadata": {"annotations": {DEFAULT_NETWORK: less}}}
    assert _annotation(api.call("PATCH", f"{PODS}/{name}", patch, content_type=MERGE)) == before
    other = {"metadata": {"annotations": {DEFAULT_NETWORK: '[{"name":"theirs"}]'}}}
    stored = api.call("PATCH", f"{PODS}/{name}", other, content_type=MERGE)
    assert _annotation(stored) == [{"name": "theirs"}]
    assert "exists and is kept" in stored.headers["Warning"]


def test_ordinary_pods_are_not_touched(api: Api, ippool: Any, name: str) -> None:
    Decision.objects.all().delete()
    ordinary = _pod(name, "probe", labels={"app": "web"})
    answer = api.call("POST", PODS, ordinary)
    assert _annotation(answer) is None
    assert "Warning" not in answer.headers
    system = api.call(
        "POST", "/api/v1/namespaces/kube-system/pods", _pod(name, "probe"), dryRun="All"
    )
    assert _annotation(system) is None
    assert not Decision.objects.exists()


def test_a_vm_without_an_entry_starts(api: Api, ippool: Any, name: str) -> None:
    answer = api.call("POST", PODS, _pod(name, name))
    assert _annotation(answer) is None
    assert "neither a MAC entry nor an IPAMClaim" in answer.headers["Warning"]


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("annotation", "written"),
    [("addresses", ADDRESSES), ("default-network", DEFAULT_NETWORK)],
)
def test_a_virtual_machine(api: Api, ippool: Any, name: str, annotation: str, written: str) -> None:
    NetworkSettings.objects.update(annotation=annotation)
    _entry(ippool, name)
    mac = f"02:00:00:00:01:{len(name):02x}"
    expected: Any = {"podnet": ["10.0.1.5"]}
    if annotation == "default-network":
        ips = ["10.0.1.5/16"]
        expected = [{"name": "default", "namespace": "ovn-kubernetes", "mac": mac, "ips": ips}]
    answer = api.call("POST", VMS, vm_manifest(name, mac=mac))
    assert answer.status == 201, answer.json
    template = answer.json["spec"]["template"]
    assert json.loads(template["metadata"]["annotations"][written]) == expected
    vmi = vm_manifest(name, mac=mac, kind="VirtualMachineInstance")
    assert _annotation(api.call("POST", VMIS, vmi), written) == expected
    removed = [{"op": "remove", "path": "/spec/template/metadata/annotations"}]
    again = api.call("PATCH", f"{VMS}/{name}", removed, content_type=JSON_PATCH)
    assert again.json["spec"]["template"] == template
    for path in (VMS, VMIS):
        api.call("DELETE", f"{path}/{name}")


def test_a_virtual_machine_of_no_entry(api: Api, ippool: Any, name: str) -> None:
    NetworkSettings.objects.update(annotation="addresses")
    manifest = vm_manifest(name, mac="02:00:00:00:77:77")
    answer = api.call("POST", VMS, manifest)
    assert answer.json["spec"]["template"]["spec"] == manifest["spec"]["template"]["spec"]
    assert "annotations" not in (answer.json["spec"]["template"].get("metadata") or {})
