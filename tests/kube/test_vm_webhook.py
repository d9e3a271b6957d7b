"""The mutating webhooks, called by the API server as the printed manifests tell it to."""

import copy
import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from claims.core.workloads.network_selection import ADDRESSES, DEFAULT_NETWORK
from claims.models import Decision, NetworkSettings
from claims.webhooks import hooks
from tests import eventually
from tests.claims import worlds
from tests.claims.webhooks import doors
from tests.core.vm_world import MAC, Manifest, pod as launcher, vm_manifest
from tests.kube import own_site
from tests.kube.api import JSON_PATCH, MERGE, Api, Cluster, Reply

pytestmark = pytest.mark.django_db(transaction=True)
_KIND = "mutatingwebhookconfigurations"
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
            cluster.remove(_KIND, hook.name)
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
