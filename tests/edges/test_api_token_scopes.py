"""A token may have a level and be limited to one cluster or one pool; what it cannot be limited for is closed."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core import management
from django.core.management import CommandError
from django.test import Client

from pools.models import Cluster, Pool, TokenScope
from pools.platform.rest import token_scopes
from tests.edges import api as apis


@pytest.fixture
def fleet() -> apis.Api:
    """The clusters `prod` and `test`, each with the pool `vms` and a block that `held` holds."""
    api = apis.Api()
    for number, cluster in enumerate(("prod", "test")):
        api.cluster(cluster)
        for name, part in (("vms", 0), ("more", 1)):
            body = {
                "cluster": cluster, "name": name, "category": "vm",
                "ipv4": {"mask_size": 32, "cidrs": [{"cidr": f"10.{number}.{part}.0/28"}]},
            }  # fmt: skip
            api.take(api.create("pools/", body)["id"], "held")
    return api


def _pool(cluster: str, name: str = "vms") -> int:
    return Pool.objects.get(cluster__name=cluster, name=name).pk


@pytest.fixture
def limited(fleet: apis.Api) -> Callable[..., Callable[..., Any]]:
    def make(level: str = "administer", to: str = "", role: str = "") -> Callable[..., Any]:
        text = token_scopes.create_token(
            apis.user(role), level=level, subject=token_scopes.parse_subject(to), description="test"
        )
        api = object.__new__(apis.Api)
        api.client = Client(headers={"Authorization": f"Token {text}"})
        return api

    return make


@pytest.mark.sample(2)
@pytest.mark.parametrize("role", ["", "administrator"])
def test_a_reading_token_changes_nothing(limited: Any, role: str) -> None:
    api = limited("read", role=role)
    assert api("GET", "pools/").json()["results"]
    assert api("GET", f"pools/{_pool('prod')}/").status_code == 200
    for method, path, body in (
        ("POST", f"pools/{_pool('prod')}/allocations/", apis.holder("a")),
        ("PATCH", f"pools/{_pool('prod')}/", {"description": "x"}),
        ("DELETE", f"pools/{_pool('prod')}/", None),
        ("POST", "clusters/", {"name": "new"}),
        ("POST", "journal/", {}),
    ):
        apis.refused(api(method, path, body), 403, "token_scope")
    assert api("POST", "clusters/prod/pool-for-pod/", {"namespace": "a"}).status_code != 403


def test_a_token_has_no_more_rights_than_its_owner(limited: Any) -> None:
    """Then the owner is the reason, and not the token, whatever its level."""
    for level in ("administer", "allocate", "read"):
        api = limited(level, role="viewer")
        answer = api("POST", f"pools/{_pool('prod')}/allocations/", apis.holder("a"))
        apis.refused(answer, 403, "permission_denied")
        answer = api("PATCH", f"pools/{_pool('prod')}/", {"description": "x"})
        apis.refused(answer, 403, "permission_denied")


@pytest.mark.exhaustive
def test_a_token_of_a_cluster(limited: Any) -> None:
    api = limited(to="prod")
    for path in ("pools/", "blocks/", "events/", "environments/", "networks/", "imports/"):
        rows = api("GET", path).json()["results"]
        assert {row["cluster"] for row in rows} <= {"prod"}, path
    assert len(api("GET", "blocks/").json()["results"]) == 2
    assert (
        len(api("GET", f"blocks/?cluster={Cluster.objects.get(name='prod').pk}").json()["results"])
        == 2
    )
    apis.refused(api("GET", "blocks/?cluster=test"), 403, "token_scope")
    apis.refused(api("GET", f"pools/{_pool('test')}/"), 404, "not_found")
    apis.refused(api("GET", "clusters/test/"), 404, "not_found")
    assert api("GET", "clusters/prod/").json()["name"] == "prod"
    assert api("PATCH", f"pools/{_pool('prod')}/", {"description": "x"}).status_code == 200
    body = {
        "name": "new", "category": "vm", "ipv4": {"mask_size": 32, "cidrs": [{"cidr": "10.9.0.0/28"}]},
    }  # fmt: skip
    assert api("POST", "pools/", {"cluster": "prod", **body}).status_code == 201
    apis.refused(api("POST", "pools/", {"cluster": "test", **body}), 403, "token_scope")
    apis.refused(api("POST", "pools/", body), 403, "token_scope")


def test_a_token_of_a_pool(limited: Any) -> None:
    api = limited("allocate", to="prod/vms")
    (block,) = api("GET", "blocks/").json()["results"]
    assert (block["cluster"], block["pool"]) == ("prod", "vms")
    assert api("GET", f"blocks/{block['id']}/").status_code == 200
    assert api("POST", f"pools/{_pool('prod')}/allocations/", apis.holder("a")).status_code == 201
    for path in (f"pools/{_pool('prod', 'more')}/", f"pools/{_pool('test')}/"):
        apis.refused(api("GET", path), 404, "not_found")
    for path in ("pools/", "clusters/prod/", "environments/", "alerts/"):
        apis.refused(api("GET", path), 403, "token_scope")
    apis.refused(api("GET", f"blocks/?pool={_pool('test')}"), 403, "token_scope")


def test_names_that_are_numbers(fleet: apis.Api, limited: Any) -> None:
    """A pool whose name is the id of another one is not that other one."""
    inside = _pool("prod")
    Pool.objects.filter(pk=_pool("prod", "more")).update(name=str(inside))
    Pool.objects.filter(pk=_pool("test")).update(name=str(inside))
    Cluster.objects.filter(name="test").update(name=str(Cluster.objects.get(name="prod").pk))
    of_pool, of_cluster = limited(to="prod/vms"), limited(to="prod")
    assert [row["pool"] for row in of_pool("GET", "blocks/").json()["results"]] == ["vms"]
    rows = of_cluster("GET", "blocks/").json()["results"]
    assert {row["cluster"] for row in rows} == {"prod"}
    other = Cluster.objects.get(name="prod").pk
    apis.refused(of_cluster("GET", f"clusters/{other}/"), 404, "not_found")


@pytest.mark.exhaustive
@pytest.mark.parametrize("subject", ["prod", "prod/vms"])
def test_what_it_was_limited_to_is_gone(limited: Any, subject: str) -> None:
    api = limited(to=subject)
    TokenScope.objects.filter(cluster__isnull=False).update(cluster=2**40)
    TokenScope.objects.filter(pool__isnull=False).update(pool=2**40)
    for path in ("blocks/", f"pools/{_pool('prod')}/", "clusters/"):
        apis.refused(api("GET", path), 403, "token_scope")


def test_a_superuser_keeps_all_rights_within_the_limit(limited: Any) -> None:
    api = limited("administer", to="prod")
    block = api("GET", "blocks/").json()["results"][0]
    body = {"force": True, "reason": "x"}
    assert api("POST", f"blocks/{block['id']}/release/", body).status_code == 200


def test_the_command(fleet: apis.Api, capsys: pytest.CaptureFixture[str]) -> None:
    name = fleet.user.username
    management.call_command("token", name, "--level=read", "--limited-to=prod/vms", "--days=3")
    text = capsys.readouterr().out.strip()
    client = Client(headers={"Authorization": f"Token {text}"})
    assert client.get(f"{apis.ROOT}blocks/").status_code == 200
    assert client.get(f"{apis.ROOT}clusters/").status_code == 403
    for option in (
        "--limited-to=nowhere",
        "--limited-to=prod/none",
        "--limited-to=a b",
        "--days=0",
    ):
        with pytest.raises(CommandError):
            management.call_command("token", name, option)
    assert TokenScope.objects.count() == 1
