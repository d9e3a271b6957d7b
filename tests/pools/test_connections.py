"""Connections of clusters: how they are made and tested, and how their credentials change keys."""

import base64
import dataclasses
import io
import json
import secrets as random
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from pools.api.clusters.connections import ConnectionTestSerializer
from pools.clusters import connection_test, connections
from pools.clusters.reconcile import connecting, leases, sync
from pools.core import errors
from pools.core.kubernetes import resources
from pools.models import Connection, ConnectionEvent
from pools.platform import database
from tests import factories
from tests.kube import certificates, kubeconfigs
from tests.kube.fake import FakeCluster

CA = certificates.Authority().pem
OBSERVED = connections.Terms()


def _connect(kubeconfig: str, *, offline: bool = False) -> Connection:
    source = connections.from_kubeconfig(kubeconfig)
    return connections.connect(
        factories.cluster(), source, OBSERVED, author=factories.BY, offline=offline
    )


def test_identity_and_version_are_pinned_and_credentials_sealed(fake: FakeCluster) -> None:
    row = _connect(fake.kubeconfig())
    assert (row.identity, row.version[:2]) == (fake.kube_system_uid, "v1")
    assert fake.token not in row.sealed
    assert connecting.cluster_access(row).token == fake.token
    assert fake.token not in str(list(ConnectionEvent.objects.values()))


def test_offline_asks_nobody(fake: FakeCluster) -> None:
    row = _connect(fake.kubeconfig(), offline=True)
    assert (row.identity, row.version) == ("", "")
    assert len(fake.log) == 0


def test_the_same_cluster_is_refused_by_the_database_too(fake: FakeCluster) -> None:
    row, later = _connect(fake.kubeconfig()), _connect(fake.kubeconfig(), offline=True)
    with pytest.raises(errors.SameCluster):
        connections._in_transaction(
            lambda: Connection.objects.filter(pk=later.pk).update(identity=row.identity)
        )


def test_a_server_s_url_fits_its_column(fake: FakeCluster) -> None:
    text = kubeconfigs.text(f"https://a.example/{'x' * 500}", fake.ca, token=fake.token)
    with pytest.raises(errors.InvalidInput) as refused:
        connections.from_kubeconfig(text)
    assert refused.value.code == "too_long"


def test_a_pass_finds_that_two_are_one_cluster(fake: FakeCluster) -> None:
    first, second = (_connect(fake.kubeconfig(), offline=True) for _ in range(2))
    for row in (first, second):
        lease = leases.take(row.pk, "tester")
        assert lease is not None
        sync.run(lease, [])
        row.refresh_from_db()
    assert (first.identity, first.error_code) == (fake.kube_system_uid, "")
    assert (second.identity, second.error_code) == ("", "same_cluster")
    # It is stored, and read by tokens that may not know the other cluster.
    assert first.cluster.name not in second.error
    assert "under another name" in second.error


def test_a_worker_under_the_old_terms_loses_the_cluster(fake: FakeCluster) -> None:
    row = _connect(fake.kubeconfig())
    lease = leases.take(row.pk, "tester")
    assert lease is not None
    connections.change(row, author=factories.BY, paused=True)
    with pytest.raises(leases.LeaseLost), leases.transaction_under_lease(lease, factories.BY):
        raise AssertionError("it still has the cluster")


# --- The test of a connection: what is served, in which shape, which rights are missing, what ends
# when
WANTED = (
    resources.CILIUM_POD_IP_POOL,
    resources.CILIUM_POD_IP_POOL_V2ALPHA1,
    resources.CILIUM_NODE,
)
READ = {"apiGroups": ["cilium.io"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
SYSTEM = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}


def _connection_test(
    kubeconfig: str, *managed_resources: str, required: tuple[resources.Resource, ...] = WANTED
) -> connection_test.ConnectionTest:
    terms = connections.parse_terms(
        "managed" if managed_resources else "observed", managed_resources
    )
    source = connections.from_kubeconfig(kubeconfig)
    return connection_test.test_source(source, terms, required)


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
    result = _connection_test(fake.kubeconfig())
    assert result.succeeded, result
    assert (result.kinds[0].shape, len(result.kinds[0].served)) == (shape, versions)
    assert result.kinds[1].served == ("cilium.io/v2",)
    assert result.version.startswith("v1.")
    assert {write.path for write in fake.log.writes} <= {REVIEWS}


REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def test_a_kind_that_is_not_served_is_no_fault(fake: FakeCluster) -> None:
    fake.crds("cilium.io_ciliumnodes")
    result = _connection_test(fake.kubeconfig())
    assert result.kinds[0].served == ()
    assert result.kinds[0].note == "not served, so not shown"
    assert result.succeeded


def test_a_kind_that_a_managed_resource_needs_is_missed(fake: FakeCluster) -> None:
    fake.crds("cilium.io_ciliumnodes")
    result = _connection_test(fake.kubeconfig(), "pools")
    assert 'but "pools" (CiliumPodIPPools) is switched on' in result.kinds[0].note
    assert not result.succeeded


def test_a_right_that_passes_do_without_is_a_doubt(fake: FakeCluster) -> None:
    fake.crds("cilium.io_ciliumpodippools.v2", "cilium.io_ciliumnodes")
    more = dataclasses.replace(
        resources.CONFIG_MAP, namespaced=False, reads_for="owners by ConfigMaps"
    )
    token = fake.user("reader", [READ, SYSTEM])
    result = _connection_test(fake.kubeconfig(token), required=(*WANTED, more))
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
    result = _connection_test(fake.kubeconfig(token))
    assert (result.code, result.succeeded) == (code, False)
    assert token not in json.dumps(ConnectionTestSerializer(result).data)


def test_who_answers(fake: FakeCluster) -> None:
    row = _connect(fake.kubeconfig(), offline=True)
    Connection.objects.filter(pk=row.pk).update(identity="another")
    row.refresh_from_db()
    assert connection_test.test_connection(row, WANTED).code == "identity_changed"
    Connection.objects.filter(pk=row.pk).update(identity=fake.kube_system_uid)
    second = _connect(fake.kubeconfig(), offline=True)
    assert connection_test.test_connection(second, WANTED).code == "same_cluster"


def test_when_credentials_end(fake: FakeCluster) -> None:
    expiry = database.now() + timedelta(days=9, hours=1)
    claims = base64.urlsafe_b64encode(json.dumps({"exp": int(expiry.timestamp())}).encode())
    token = f"e30.{claims.decode().rstrip('=')}.c2ln"
    text = kubeconfigs.text(fake.url, fake.ca, token=token, pair=fake.certificate("me"))
    result = _connection_test(text)
    days = {ending.credential: ending.days for ending in result.endings}
    assert days == {"certificate authority": 364, "client certificate": 364, "token": 9}


@pytest.mark.parametrize("token", ["a.b.c", "a.e30.c", "a.bm8.c", "a.eyJleHAiOiJ4In0.c", "a.W10.c"])
def test_a_token_that_says_nothing_of_its_end(fake: FakeCluster, token: str) -> None:
    text = kubeconfigs.text(fake.url, fake.ca, token=token)
    result = _connection_test(text)
    assert [ending.credential for ending in result.endings] == ["certificate authority"]


# --- `manage.py rotate_keys`: a new key in front of the ring, all credentials under it, the old
# one away
def _stored_connection(token: str) -> Connection:
    return _connect(kubeconfigs.text("https://10.1.2.3:6443", CA, token=token), offline=True)


def _rotate() -> str:
    out = io.StringIO()
    call_command("rotate_keys", stdout=out, stderr=out)
    return out.getvalue()


def test_rotated_and_the_old_key_taken_away(settings: Any) -> None:
    first, second = _stored_connection("token-a"), _stored_connection("token-b")
    old, new = settings.IPAM_KEY_RING[0], random.token_urlsafe(32)
    settings.IPAM_KEY_RING = [new, old]
    events = ConnectionEvent.objects.count()
    assert _rotate() == "2 re-encrypted, 0 already encrypted with the newest key.\n"
    assert _rotate() == "0 re-encrypted, 2 already encrypted with the newest key.\n"
    settings.IPAM_KEY_RING = [new]
    for row, token in ((first, "token-a"), (second, "token-b")):
        row.refresh_from_db()
        assert connecting.cluster_access(row).token == token
    assert ConnectionEvent.objects.count() == events


def test_a_key_that_went_too_early_is_told_of_each_cluster(settings: Any) -> None:
    lost = _stored_connection("token-a")
    settings.IPAM_KEY_RING = [random.token_urlsafe(32)]
    _stored_connection("token-b")
    out = io.StringIO()
    with pytest.raises(CommandError, match="1 could not be decrypted"):
        call_command("rotate_keys", stdout=out, stderr=out)
    assert f"{lost.cluster.name}: key_missing" in out.getvalue()


def test_no_ring_at_all(settings: Any) -> None:
    settings.IPAM_KEY_RING = []
    with pytest.raises(CommandError, match="key_ring_invalid"):
        _rotate()
