"""The webhook configurations of VM networks: what the commands print and deploy/ ships."""

import json
import pathlib
from io import StringIO
from typing import Any

import yaml
from django.core.management import call_command

from claims.models import NetworkSettings
from claims.webhooks import hooks
from pools.webhooks import configuration
from tests import factories

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
    urls = [
        item["clientConfig"]["url"] for item in _printed(name, f"--url={URL}", "--new-key").values()
    ]
    assert len({url.rsplit("/", 1)[0] for url in urls}) == 1
    assert urls[0].startswith(f"{URL}/webhooks/v1/{name}/cadw_")


def test_validating_ones_fail_and_mutating_ones_are_ignored() -> None:
    name = factories.cluster().name
    policies = {
        key: webhook["failurePolicy"] for key, webhook in _printed(name, f"--url={URL}").items()
    }
    assert policies == {
        "cadastre-ciliumpodippools": "Fail",
        "cadastre-ippools": "Fail",
        hooks.MUTATE_PODS.name: "Ignore",
    }
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
    expected = [
        f"/webhooks/v1/{name}/{address}"
        for address in (
            "validate-ciliumpodippools", "mutate-pods", "mutate-vms", "validate-ippools"
        )
    ]  # fmt: skip
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
