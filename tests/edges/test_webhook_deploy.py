"""What deploy/ ships: roles that grant what is really asked of a cluster and nothing else."""

import datetime
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from claims.core.resources import IPAM_CLAIM
from pools.clusters.client import kubeconfig
from pools.clusters.reconcile import connecting, leases, registry, sync
from pools.core.cilium import configuration as cilium
from pools.core.cluster_api import contract as cluster_api
from pools.core.kubernetes import resources
from pools.core.kubernetes.resources import Resource
from pools.models import Connection, ManagedResource, Mode, Now
from pools.platform.outbound import secrets
from pools.webhooks import configuration
from tests import factories
from tests.edges import webhooks
from tests.kube import gateways
from tests.kube.fake import FakeCluster
from tests.kube.fake.cluster import CRDS, definitions
from tests.kube.fake.paths import parse

FOLDER = pathlib.Path(__file__).parents[2] / "deploy" / "kubernetes"
Grant = tuple[str, str, str, str]  # verb, group, resource, name ("" for any)
# What every authenticated user may: discovery, and asking for rights.
_EVERYBODY = {"authorization.k8s.io"}
_CONFIG = ("cilium-config", "kube-system")


def _documents(name: str) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all((FOLDER / name).read_text()) if document]


def _rules(*names: str) -> list[dict[str, Any]]:
    result = [document for name in names for document in _documents(name)]
    return [rule for item in result if item["kind"].endswith("Role") for rule in item["rules"]]


OBSERVE = _rules("cluster-role-observe.yaml", "role-cilium-config.yaml")
MANAGE = _rules("cluster-role-manage.yaml", "role-cilium-config.yaml")


def _granted(rules: list[dict[str, Any]]) -> set[Grant]:
    return {
        (verb, group, resource, name)
        for rule in rules
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
    }


def _used(fake: FakeCluster, granted: set[Grant]) -> set[Grant]:
    """What the requests were about; a name counts where the role names it."""
    result = set()
    for request in fake.log:
        target = parse(request.path)
        if target is None or target.group in _EVERYBODY:
            continue
        assert request.status != 403, request
        selected = request.query.get("fieldSelector", "").removeprefix("metadata.name=")
        named = (request.verb, target.group, target.resource, target.name or selected)
        result.add(named if named in granted else (*named[:3], ""))
    return result


def _wanted(reads: list[Resource], managed_resources: list[str]) -> set[Grant]:
    """What the product itself says it needs (a cluster's page shows what is missing)."""
    return {
        (
            right.verb,
            right.resource.group,
            right.resource.plural + (f"/{right.subresource}" if right.subresource else ""),
            right.resource.only_named,
        )
        for right in resources.required_rights(reads, managed_resources)
    }


@pytest.fixture
def fake(settings: Any) -> Iterator[FakeCluster]:
    """A cluster that serves every kind that any handler reads."""
    settings.IPAM_ALLOW_LOOPBACK_CLUSTERS = True
    plurals = {resource.plural for resource in registry.resources()} | {
        "ciliumpodippools",
        "ciliumnodes",
    }
    plurals |= {cilium.ADVERTISEMENT.plural, cilium.PEERING_POLICY.plural}
    with FakeCluster() as running:
        for path in sorted([*CRDS.glob("*.yaml"), *(FOLDER.parent / "crds").glob("*.yaml")]):
            if path.stem.endswith(("proposal", "v2alpha1")):
                continue
            for manifest in definitions(path):
                if manifest["spec"]["names"]["plural"] in plurals:
                    running.put(manifest)
        yield running


def _reads() -> list[Resource]:
    result = registry.resources()
    return result or [resources.CILIUM_POD_IP_POOL, resources.CILIUM_NODE]


def _live(fake: FakeCluster, rules: list[dict[str, Any]], managed_resources: list[str]) -> None:
    """A connected cluster through all that happens to it, with the rights of the role."""
    token = fake.user("cadastre", rules)
    now = datetime.datetime.now(datetime.UTC)
    access = kubeconfig.read(fake.kubeconfig(token), now=now).access
    cluster = factories.cluster()
    factories.pool("10.0.0.0/16", within=cluster, name="ours", category="pod", mask=24)
    connection = Connection.objects.create(
        cluster=cluster,
        server=fake.url,
        sealed=secrets.key_ring().seal(access.dump(), owner=connecting.secret_owner(cluster.pk)),
        mode=Mode.MANAGED if managed_resources else Mode.OBSERVED,
        managed_resources=managed_resources,
        due_at=Now(),
    )
    _put_objects(fake)
    with gateways.to(fake, token=token) as gateway:
        for _ in range(2):
            lease = leases.take(connection.pk, leases.worker_name())
            assert lease is not None
            run = sync.run(lease, registry.HANDLERS, open_client=lambda _: gateway)
            assert run.succeeded, (run.error_code, run.error, run.kinds)
        _look_closer(gateway, _reads())
        for right in resources.required_rights(_reads(), managed_resources):
            assert gateway.may(right.verb, right.resource, subresource=right.subresource), right
        _write(gateway, managed_resources)


def _look_closer(gateway: Any, reads: list[Resource]) -> None:
    """What single steps of passes, the watcher and the pages read."""
    gateway.identity()
    gateway.get(resources.CONFIG_MAP, *_CONFIG)
    for resource in (cilium.ADVERTISEMENT, cilium.PEERING_POLICY):
        gateway.list(resource)
    assert gateway.schema(resources.CILIUM_POD_IP_POOL)
    for resource in reads:
        listed = gateway.list(resource)
        list(gateway.watch(resource, listed.resource_version, seconds=1))
    gateway.get(resources.CILIUM_POD_IP_POOL, "theirs")
    gateway.get(resources.CILIUM_NODE, "n1")


def _write(gateway: Any, managed_resources: list[str]) -> None:
    """The writes of the managed resources, also where no handler found anything to write."""
    if "pools" in managed_resources:
        for cidr in ("10.8.0.0/16", "10.9.0.0/16"):
            gateway.apply(
                resources.CILIUM_POD_IP_POOL, gateways.pool("applied", cidr), manager="cadastre"
            )
    if "pod-cidrs" in managed_resources:
        for subresource in ("", "status"):
            node = gateway.get(resources.CILIUM_NODE, "n1")
            gateway.replace(
                resources.CILIUM_NODE, node, manager="cadastre", subresource=subresource
            )
    if "claims" in managed_resources:
        assert gateway.schema(IPAM_CLAIM)
    if "cluster-api" in managed_resources:
        assert gateway.schema(cluster_api.CLAIMS[0])


def _put_objects(fake: FakeCluster) -> None:
    fake.put(gateways.pool("theirs", "10.7.0.0/16"))
    ipam = {"pools": {"requested": [{"pool": "theirs", "needed": {"ipv4-addrs": 16}}]}}
    metadata = {"name": "n1"}
    fake.put(
        {
            "apiVersion": "cilium.io/v2",
            "kind": "CiliumNode",
            "metadata": metadata,
            "spec": {"ipam": ipam},
        }
    )
    config = {"name": _CONFIG[0], "namespace": _CONFIG[1]}
    fake.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": config, "data": {}})


@pytest.mark.exhaustive
def test_observing_takes_what_the_role_grants(fake: FakeCluster) -> None:
    granted = _granted(OBSERVE)
    _live(fake, OBSERVE, [])
    assert _used(fake, granted) | _wanted(_reads(), []) == granted
    assert {verb for verb, *_ in granted} == {"get", "list", "watch"}


def _managed_resources() -> list[str]:
    """Those that write kinds which are read here."""
    kinds = {resource.kind for resource in _reads()}
    needs = resources._WRITES
    return [
        managed_resource
        for managed_resource in ManagedResource.values
        if {kind for _, kind, _ in needs[managed_resource]} <= kinds
    ]


@pytest.mark.exhaustive
def test_managing_takes_what_the_role_grants(fake: FakeCluster) -> None:
    granted = _granted(MANAGE)
    _live(fake, MANAGE, _managed_resources())
    assert _used(fake, granted) | _wanted(_reads(), _managed_resources()) == granted


@pytest.mark.parametrize("rules", [OBSERVE, MANAGE], ids=["observe", "manage"])
def test_nothing_is_granted_at_large(rules: list[dict[str, Any]]) -> None:
    for verb, group, resource, name in _granted(rules):
        assert "*" not in verb + group + resource
        assert resource not in {"secrets", "pods/exec"}
        assert resource not in {"pods", "nodes", "services"} or verb in resources.READ
        assert verb not in {"deletecollection", "escalate", "bind", "impersonate"}
        assert verb != "delete" or resource == "ipaddresses"  # of a claim that is deleted
        assert resource != "events" or verb in {"get", "create", "patch"}
        assert resource != "namespaces" or verb == "get"
        small = group in {"", "apiextensions.k8s.io"}
        at_large = resource in {"pods", "nodes", "services", "events", "namespaces"} or not small
        assert name or at_large


def test_managing_is_observing_and_more() -> None:
    assert _granted(OBSERVE) < _granted(MANAGE)


def test_the_bindings_name_what_there_is() -> None:
    account = {"kind": "ServiceAccount", "name": "cadastre", "namespace": "cadastre"}
    result = _documents("service-account.yaml") + _documents("role-cilium-config.yaml")
    bindings = [item for item in result if item["kind"].endswith("Binding")]
    roles = [*_documents("cluster-role-observe.yaml"), *result]
    for binding in bindings:
        assert binding["subjects"] == [account]
        reference = (binding["roleRef"]["kind"], binding["roleRef"]["name"])
        assert reference in {(role["kind"], role["metadata"]["name"]) for role in roles}
    assert len(bindings) == 3


def test_the_template_of_the_webhook_is_what_the_command_prints() -> None:
    (template,) = _documents("webhook.yaml")
    hook = configuration.CILIUM_POD_IP_POOLS
    at = configuration.path(hook, "CLUSTER", "KEY")
    client = configuration.by_url("https://cadastre.example.org", at)
    created = configuration.manifest(hook, client)
    created["webhooks"][0]["clientConfig"]["caBundle"] = "CA"
    assert template == created
    assert client["url"].endswith(webhooks.path("CLUSTER", "KEY"))
