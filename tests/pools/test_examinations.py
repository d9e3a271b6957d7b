"""The test of a connection: what is served, in which shape, which rights are missing, what ends when."""

import base64
import dataclasses
import json
from datetime import timedelta
from typing import Any

import pytest

from pools.api.clusters.connections import ConnectionTestSerializer
from pools.clusters import connection_test, connections
from pools.core.kubernetes import resources
from pools.models import Connection
from pools.platform import database
from tests import factories
from tests.kube import kubeconfigs
from tests.kube.fake import FakeCluster

pytestmark = pytest.mark.django_db
WANTED = (
    resources.CILIUM_POD_IP_POOL,
    resources.CILIUM_POD_IP_POOL_V2ALPHA1,
    resources.CILIUM_NODE,
)
READ = {"apiGroups": ["cilium.io"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
SYSTEM = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}


def _examined(
    fake: FakeCluster,
    *managed_resources: str,
    token: str = "",
    required: tuple[resources.Resource, ...] = WANTED,
) -> connection_test.ConnectionTest:
    terms = connections.parse_terms(
        "managed" if managed_resources else "observed", managed_resources
    )
    source = connections.from_kubeconfig(fake.kubeconfig(token or None))
    return connection_test.test_source(source, terms, required)


def _row(fake: FakeCluster) -> Connection:
    source = connections.from_kubeconfig(fake.kubeconfig())
    return connections.connect(
        factories.cluster(), source, connections.Terms(), author=factories.BY, offline=True
    )


@pytest.mark.parametrize(
    ("crd", "versions", "shape"),
    [
        ("cilium.io_ciliumpodippools.v2", 2, "v2"),
        ("cilium.io_ciliumpodippools.v2-proposal", 2, "v2-proposal"),
        ("cilium.io_ciliumpodippools.v2alpha1", 1, "v2alpha1"),
    ],
)
def test_what_is_served_in_which_shape(
    fake: FakeCluster, crd: str, versions: int, shape: str
) -> None:
    fake.crds(crd, "cilium.io_ciliumnodes")
    result = _examined(fake)
    assert result.succeeded, result
    assert (result.kinds[0].shape, len(result.kinds[0].served)) == (shape, versions)
    assert result.kinds[1].served == ("cilium.io/v2",)
    assert result.version.startswith("v1.")
    assert {write.path for write in fake.log.writes} <= {REVIEWS}


REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def test_a_kind_that_is_not_served_is_no_fault(fake: FakeCluster) -> None:
    fake.crds("cilium.io_ciliumnodes")
    result = _examined(fake)
    assert result.kinds[0].served == ()
    assert result.kinds[0].note == "not served, so not shown"
    assert result.succeeded


def test_a_kind_that_a_managed_resource_needs_is_missed(fake: FakeCluster) -> None:
    fake.crds("cilium.io_ciliumnodes")
    result = _examined(fake, "pools")
    assert 'but "pools" (CiliumPodIPPools) is switched on' in result.kinds[0].note
    assert not result.succeeded


def test_a_right_that_passes_do_without_is_a_doubt(fake: FakeCluster) -> None:
    fake.crds("cilium.io_ciliumpodippools.v2", "cilium.io_ciliumnodes")
    more = dataclasses.replace(
        resources.CONFIG_MAP, namespaced=False, reads_for="owners by ConfigMaps"
    )
    token = fake.user("reader", [READ, SYSTEM])
    result = _examined(fake, token=token, required=(*WANTED, more))
    assert (result.succeeded, result.missing) == (True, [])
    rights = ", ".join(f"{verb} configmaps" for verb in ("get", "list", "watch"))
    assert result.doubts == [f"No owners by ConfigMaps: this requires {rights}."]


@pytest.mark.parametrize(
    ("rules", "code"),
    [(None, "cluster_unauthorized"), ([READ], "cluster_forbidden")],
    ids=["401", "403"],
)
def test_a_fault_is_part_of_the_answer(fake: FakeCluster, rules: Any, code: str) -> None:
    token = fake.user("somebody", rules or [])
    if rules is None:
        fake.revoke(token)
    result = _examined(fake, token=token)
    assert (result.code, result.succeeded) == (code, False)
    assert token not in json.dumps(ConnectionTestSerializer(result).data)


def test_who_answers(fake: FakeCluster) -> None:
    row = _row(fake)
    Connection.objects.filter(pk=row.pk).update(identity="another")
    row.refresh_from_db()
    assert connection_test.test_connection(row, WANTED).code == "identity_changed"
    Connection.objects.filter(pk=row.pk).update(identity=fake.kube_system_uid)
    second = _row(fake)
    assert connection_test.test_connection(second, WANTED).code == "same_cluster"


def test_when_credentials_end(fake: FakeCluster) -> None:
    expiry = database.now() + timedelta(days=9, hours=1)
    claims = base64.urlsafe_b64encode(json.dumps({"exp": int(expiry.timestamp())}).encode())
    token = f"e30.{claims.decode().rstrip('=')}.c2ln"
    text = kubeconfigs.text(fake.url, fake.ca, token=token, pair=fake.certificate("me"))
    result = connection_test.test_source(
        connections.from_kubeconfig(text), connections.Terms(), WANTED
    )
    days = {ending.credential: ending.days for ending in result.endings}
    assert days == {"certificate authority": 364, "client certificate": 364, "token": 9}


@pytest.mark.parametrize("token", ["a.b.c", "a.e30.c", "a.bm8.c", "a.eyJleHAiOiJ4In0.c", "a.W10.c"])
def test_a_token_that_says_nothing_of_its_end(fake: FakeCluster, token: str) -> None:
    text = kubeconfigs.text(fake.url, fake.ca, token=token)
    result = connection_test.test_source(
        connections.from_kubeconfig(text), connections.Terms(), WANTED
    )
    assert [ending.credential for ending in result.endings] == ["certificate authority"]
