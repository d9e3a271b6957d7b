"""Hooks of the API server, and the decisions that are kept."""

import json
import pathlib
import time
from datetime import timedelta
from io import StringIO
from typing import Any

import yaml
from django.core.management import call_command

from claims import tasks
from claims.models import Decision, NetworkSettings
from claims.webhooks import hooks
from claims.workloads import vm_lookup
from pools.platform import database
from pools.webhooks import configuration
from tests import factories
from tests.claims.webhooks.doors import Door
from tests.core.vm_world import pod

FOLDER = pathlib.Path(__file__).parents[3] / "deploy" / "kubernetes"
URL = "https://cadastre.example.org"
# What kustomize makes of kubevirt/ipam-extensions, upstream and as an operator of OpenShift has it.
IPAM_EXTENSIONS = (
    "kubevirt-ipam-claims-mutating-webhook-configuration",
    "kubevirt-ipam-controller-mutating-webhook-configuration",
)


def _said(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def _printed(*arguments: str) -> dict[str, Any]:
    """The webhooks by the name of their configuration."""
    result = yaml.safe_load_all(_said("webhook", *arguments, "--print-manifest"))
    return {item["metadata"]["name"]: item["webhooks"][0] for item in result}


def test_what_is_printed_goes_by_the_settings() -> None:
    cluster = factories.cluster()
    always = {"cadastre-ciliumpodippools", "cadastre-ippools"}
    assert _printed(cluster.name, f"--url={URL}").keys() == always | {hooks.MUTATE_PODS.name}
    NetworkSettings.objects.create(cluster=cluster, annotation="addresses")
    assert _printed(cluster.name, f"--url={URL}").keys() == always | {hooks.MUTATE_VMS.name}
    only = ("--only=mutate-pods", "--only=mutate-vms")
    assert len(_printed(cluster.name, f"--url={URL}", *only)) == 2


def test_one_key_opens_all() -> None:
    name = factories.cluster().name
    result = _printed(name, f"--url={URL}", "--new-key").values()
    urls = [item["clientConfig"]["url"] for item in result]
    assert len({url.rsplit("/", 1)[0] for url in urls}) == 1
    assert urls[0].startswith(f"{URL}/webhooks/v1/{name}/cadw_")


def test_validating_ones_fail_and_mutating_ones_are_ignored() -> None:
    name = factories.cluster().name
    result = _printed(name, f"--url={URL}")
    validating = dict.fromkeys(("cadastre-ciliumpodippools", "cadastre-ippools"), "Fail")
    policies = {key: webhook["failurePolicy"] for key, webhook in result.items()}
    assert policies == validating | {hooks.MUTATE_PODS.name: "Ignore"}
    only = ("--only=mutate-pods", "--failure-policy=Fail")
    (hook,) = _printed(name, f"--url={URL}", *only).values()
    assert hook["failurePolicy"] == "Fail"


def test_namespaces_that_must_start_without_us_are_left_out() -> None:
    name = factories.cluster().name
    (hook,) = _printed(name, "--service=ipam/cadastre", "--only=mutate-pods").values()
    (excluded,) = hook["namespaceSelector"]["matchExpressions"]
    assert (excluded["operator"], excluded["values"]) == ("NotIn", ["kube-system", "ipam"])
    assert hook["clientConfig"]["service"]["path"] == f"/webhooks/v1/{name}/mutate-pods"
    assert hook["objectSelector"] == {"matchLabels": {"kubevirt.io": "virt-launcher"}}


def test_mutating_ones_come_after_ipam_extensions() -> None:
    for hook in (hooks.MUTATE_PODS, hooks.MUTATE_VMS):
        assert all(hook.name > theirs for theirs in IPAM_EXTENSIONS)


def test_show_names_the_addresses_of_a_cluster() -> None:
    name = factories.cluster().name
    addresses = ("validate-ciliumpodippools", "mutate-pods", "mutate-vms", "validate-ippools")
    expected = [f"/webhooks/v1/{name}/{address}" for address in addresses]
    assert json.loads(_said("cluster", "show", name, "--json"))["webhooks"] == expected
    for path in expected:
        assert path in _said("cluster", "show", name)
        assert path in _said("webhook", name)


def test_the_templates_are_what_the_command_prints() -> None:
    result = list(yaml.safe_load_all((FOLDER / "vm-webhooks.yaml").read_text()))
    for template, hook in zip(result, (hooks.MUTATE_PODS, hooks.MUTATE_VMS), strict=True):
        path = configuration.path(hook, "CLUSTER", "KEY")
        created = configuration.manifest(hook, configuration.by_url(URL, path))
        created["webhooks"][0]["clientConfig"]["caBundle"] = "CA"
        assert template == created


# --- What the webhooks decided is written down: by dry runs nothing, and never for ever -----------
def test_a_decision(door: Door) -> None:
    began = time.perf_counter()
    response = door.ask(pod())
    most = (time.perf_counter() - began) * 1000
    decision = Decision.objects.get()
    assert decision.cluster == door.cluster
    assert (decision.path, decision.operation) == ("mutate-pods", "CREATE")
    assert (decision.namespace, decision.name) == ("blue", "virt-launcher-vm-server-00000")
    assert (decision.vm, decision.network) == ("vm-server", "cluster_udn_blue")
    assert (decision.code, decision.allowed) == ("patched", True)
    assert f"cadastre: {decision.message}" == response["warnings"][0]
    assert decision.patch[0]["op"] == "add"
    assert 0 < decision.milliseconds < most
    assert decision.at == database.now()


def test_a_launcher_pod_without_a_vm(door: Door) -> None:
    odd = pod(labels={"kubevirt.io": "virt-launcher"})
    odd["metadata"]["annotations"] = {}
    assert "warnings" not in door.ask(odd)
    assert Decision.objects.get().code == "not_a_vm"


def test_long_names_are_cut(door: Door) -> None:
    vm_lookup.record_decision(door.cluster.pk, path="mutate-pods", code="x", message="m" * 2000)
    assert len(Decision.objects.get().message) == 1000


def test_what_an_annotation_said_is_recorded_without_secrets(door: Door) -> None:
    secret = "token=abcdef0123456789"
    patch = [{"op": "add", "path": "/metadata", "value": f"a {secret}"}]
    vm_lookup.record_decision(
        door.cluster.pk, path="mutate-pods", code="x", message=f"no MAC: {secret}", patch=patch
    )
    decision = Decision.objects.get()
    assert decision.message == "no MAC: token=[redacted]"
    assert decision.patch == [patch[0] | {"value": "a token=[redacted]"}]


def test_old_ones_are_deleted(door: Door, settings: Any) -> None:
    for _ in range(3):
        door.ask(pod())
    old = Decision.objects.first()
    assert old is not None
    Decision.objects.filter(pk=old.pk).update(at=database.now() - timedelta(days=31))
    settings.IPAM_DECISION_DAYS = 0
    assert tasks.tidy_decisions() == 0
    settings.IPAM_DECISION_DAYS = 30
    assert tasks.tidy_decisions() == 1
    assert Decision.objects.count() == 2
    assert tasks.tidy_decisions() == 0
