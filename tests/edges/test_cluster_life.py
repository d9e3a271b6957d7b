"""From a kubeconfig to a healthy cluster and back, with the handlers of this installation."""

from pools.clusters.reconcile import registry
from pools.models import Connection
from tests.edges import api as apis
from tests.kube import gateways
from tests.kube.fake import FakeCluster
from tests.reconcile import small

PLACE = "clusters/prod/connection/"


def _pass() -> None:
    small.reconcile(Connection.objects.get(), *registry.HANDLERS)


def test_a_cluster_s_life(fake: FakeCluster) -> None:
    fake.put(gateways.pool("green", "10.20.0.0/16"))
    api = apis.Api()
    api.cluster()
    assert api("PUT", PLACE, {"kubeconfig": fake.kubeconfig()}).status_code == 201
    assert api("POST", f"{PLACE}test/", {}).json()["succeeded"]
    _pass()
    healthy = api("GET", PLACE).json()
    assert (healthy["state"], healthy["objects"], healthy["error"]) == ("healthy", 1, None)
    (run,) = api("GET", "clusters/prod/runs/").json()["results"]
    assert run["succeeded"]
    assert run["kinds"]["CiliumPodIPPool"]["seen"] == 1
    assert api("GET", "clusters/prod/objects/").json()["results"][0]["name"] == "green"
    assert api("GET", "pools/?name=green").json()["results"][0]["cluster"] == "prod"

    fake.kube_system_uid = "another"
    _pass()
    assert api("GET", PLACE).json()["state"] == "identity-changed"
    fake.kube_system_uid = healthy["identity"]
    fake.revoke(fake.token)
    _pass()
    assert api("GET", PLACE).json()["state"] == "unauthorized"
    token = fake.user("next", [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
    assert api("PUT", PLACE, {"kubeconfig": fake.kubeconfig(token)}).status_code == 200
    _pass()
    assert api("GET", PLACE).json()["state"] == "healthy"
    fake.remove("customresourcedefinitions", "ciliumnodes.cilium.io")
    _pass()
    unserved = api("GET", PLACE).json()
    assert unserved["state"] == "healthy"  # a kind that is not served is no fault
    assert sorted(healthy["served"].keys() - unserved["served"].keys()) == ["CiliumNode"]

    assert api("DELETE", PLACE).status_code == 204
    assert api("GET", "clusters/prod/objects/").json()["results"] == []
    assert api("GET", "pools/?name=green").json()["results"][0]["name"] == "green"
    assert not fake.log.writes or {write.path for write in fake.log.writes} == {
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    }
