"""Whatever makes a CIDR says what it would overlap before it is saved: forms ask for a tick, REST on demand."""

from typing import Any

import pytest
from knox.models import AuthToken

from claims.models import Network
from pools.models import AddressSpace, Cluster, Container, Pool, PoolCIDR, TokenScope
from tests import people
from tests.edges.api import Api, refused
from tests.security.requests import NETWORK

TICK = {"accept_overlaps": "1"}
GREEN = """
apiVersion: cilium.io/v2
kind: CiliumPodIPPool
metadata: {name: green}
spec: {ipv4: {cidrs: [10.9.2.0/24], maskSize: 28}}
"""


@pytest.fixture
def api() -> Api:
    """The cluster edge has 10.9.0.0/16 and 2001:db8:10::/48; prod has a pool of its own."""
    api = Api()
    for name, cidr in (("edge", "10.9.0.0/16"), ("prod", "10.4.0.0/16")):
        api.cluster(name, **({"cluster_prefix": "2001:db8:10::/48"} if name == "edge" else {}))
        part = {"mask_size": 28, "cidrs": [cidr]}
        api.create("pools/", {"cluster": name, "name": "pods", "category": "pod", "ipv4": part})
    return api


def _state() -> list[Any]:
    return [
        sorted(map(str, PoolCIDR.objects.values_list("cidr", flat=True))),
        sorted(map(str, Cluster.objects.values_list("cluster_prefix", flat=True))),
        sorted(map(str, Container.objects.values_list("cidr", flat=True))),
        sorted(Network.objects.values_list("name", flat=True)),
    ]


def _ids() -> dict[str, int]:
    prod = Cluster.objects.get(name="prod")
    return {
        "prod": prod.pk,
        "space": AddressSpace.objects.get(cluster=prod, name="").pk,
        "pool": Pool.objects.get(cluster=prod).pk,
    }


def _forms() -> dict[str, dict[str, Any]]:
    """What each page that makes CIDRs is sent, by its path."""
    rows = {"cidrs-TOTAL_FORMS": 1, "cidrs-INITIAL_FORMS": 0}
    more = {"cidrs-TOTAL_FORMS": 2, "cidrs-INITIAL_FORMS": 1, "cidrs-0-cidr": "10.4.0.0/16"}
    ids = _ids()
    pool = {"cluster": ids["prod"], "name": "blue", "category": "pod", "mask_size_v4": "28"}
    network = {"object_name": "blue", "topology": "layer2", "role": "primary"}
    return {
        "pools/pool/add/": pool | rows | {"cidrs-0-cidr": "10.9.1.0/24"},
        "pools/pool/{pool}/edit/": more | {"cidrs-1-cidr": "10.9.1.0/24", "_confirmed": "1"},
        "pools/pool/{pool}/add-cidr/": {"cidr": "10.9.1.0/24"},
        "pools/pool/{pool}/migrations/": {"cidr": "10.4.0.0/16", "to": "10.9.1.0/24", "reason": "x", "_begin": "1"},
        "pools/cluster/add/": {"name": "third", "cluster_prefix": "2001:db8:10:8000::/56"},
        "pools/cluster/{prod}/edit/": {
            "cluster_prefix": "2001:db8:10:8000::/56", "instance_gateway": "169.254.0.1", "instance_mtu": "1500",
        },
        "pools/cluster/{prod}/divide/": {"cluster_prefix": "2001:db8:10:8000::/56"},
        "pools/container/add/": {"space": ids["space"], "cidr": "10.9.0.0/20"},
        "import/": {"cluster": ids["prod"], "text": GREEN, "_commit": "1"},
        "claims/network/add/": network
        | {
            "cluster": ids["prod"], "kind": "cudn", "namespaces": "shop", "lifecycle": "Persistent",
            "subnets": "10.9.3.0/24", "_confirmed": "1",
        },
    }  # fmt: skip


PAGES = (
    "pools/pool/add/", "pools/pool/{pool}/edit/", "pools/pool/{pool}/add-cidr/", "pools/pool/{pool}/migrations/",
    "pools/cluster/add/", "pools/cluster/{prod}/edit/", "pools/cluster/{prod}/divide/", "pools/container/add/",
    "import/", "claims/network/add/",
)  # fmt: skip


@pytest.mark.sample(5)
@pytest.mark.parametrize("path", PAGES)
def test_a_form_asks_before_it_saves_what_overlaps(api: Api, path: str) -> None:
    browser, url, sent = people.browser(), "/admin/" + path.format(**_ids()), _forms()[path]
    before = _state()
    answer = browser.post(url, sent)
    assert answer.status_code == 200, answer
    text = answer.content.decode()
    assert 'name="accept_overlaps"' in text, text
    assert "edge" in text
    assert _state() == before
    saved = browser.post(url, sent | TICK)
    assert saved.status_code == 302, saved.content.decode()
    if "migrations" not in path:  # starts with its first step
        assert _state() != before


def test_the_edit_of_a_container_asks_for_a_new_cidr_only(api: Api) -> None:
    browser = people.browser()
    row = Container.objects.create(space_id=_ids()["space"], cidr="10.9.0.0/20")
    url = f"/admin/pools/container/{row.pk}/edit/"
    assert browser.post(url, {"cidr": "10.9.0.0/20", "name": "x"}).status_code == 302
    answer = browser.post(url, {"cidr": "10.9.0.0/19", "name": "x"})
    assert 'name="accept_overlaps"' in answer.content.decode()
    assert browser.post(url, {"cidr": "10.9.0.0/19", "name": "x"} | TICK).status_code == 302
    fleet = {"cidr": "10.0.0.0/8", "name": "all"}  # has the CIDRs of every cluster
    assert browser.post("/admin/pools/container/add/", fleet).status_code == 302


CALLS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("POST", "pools/", {"cluster": "prod", "name": "blue", "category": "pod",
                        "ipv4": {"mask_size": 28, "cidrs": ["10.9.1.0/24"]}}),
    ("PATCH", "pools/{pool}/", {"ipv4": {"mask_size": 28, "cidrs": ["10.4.0.0/16", "10.9.1.0/24"]}}),
    ("POST", "pools/{pool}/cidrs/", {"cidr": "10.9.1.0/24"}),
    ("POST", "clusters/", {"name": "third", "cluster_prefix": "2001:db8:10:8000::/56"}),
    ("PATCH", "clusters/prod/", {"cluster_prefix": "2001:db8:10:8000::/56"}),
    ("POST", "containers/", {"cidr": "10.9.0.0/20", "address_space": "prod"}),
    ("POST", "containers/{container}/next-prefix/", {
        "prefix_length": 24, "purpose": "pool", "cluster": "prod", "name": "blue", "category": "pod", "mask_size": 28}),
    ("POST", "networks/", NETWORK | {"subnets": ["10.9.3.0/24"]}),
)  # fmt: skip


@pytest.mark.sample(4)
@pytest.mark.parametrize(("method", "path", "body"), CALLS, ids=[call[1] for call in CALLS])
def test_a_call_names_what_it_overlaps_and_refuses_on_demand(
    api: Api, method: str, path: str, body: dict[str, Any]
) -> None:
    container = Container.objects.create(space_id=_ids()["space"], cidr="10.9.16.0/20")
    path = path.format(**_ids(), container=container.pk)
    before = _state()
    problem = refused(api(method, f"{path}?overlaps=refuse", body), 409, "overlaps")
    assert "in edge" in problem["errors"][0]["message"]
    assert _state() == before
    saved = api(method, path, body)
    assert saved.status_code < 300, saved.content
    assert saved.headers["Warning"].startswith('299 - "')
    assert "in edge" in saved.headers["Warning"]
    assert _state() != before
    assert api(method, f"{path}?overlaps=perhaps", body).status_code == 400


def test_a_call_that_overlaps_nothing_is_not_warned(api: Api) -> None:
    body = {"cluster": "prod", "name": "blue", "category": "pod"}
    part = {"ipv4": {"mask_size": 28, "cidrs": ["10.8.0.0/16"]}}
    saved = api("POST", "pools/?overlaps=refuse", body | part)
    assert (saved.status_code, "Warning" in saved.headers) == (201, False)


def test_nothing_is_told_of_what_one_may_not_see(api: Api) -> None:
    """A token of one cluster learns nothing of another one."""
    digest = AuthToken.objects.get(user=api.user).digest
    TokenScope.objects.create(token_id=digest, level="administer", cluster_id=_ids()["prod"])
    body = {"cluster": "prod", "name": "blue", "category": "pod"}
    part = {"ipv4": {"mask_size": 28, "cidrs": ["10.9.1.0/24"]}}
    saved = api("POST", "pools/?overlaps=refuse", body | part)
    assert (saved.status_code, "Warning" in saved.headers) == (201, False), saved.content
