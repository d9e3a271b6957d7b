"""What an input of a CIDR says while somebody types, and what its button offers."""

from ipaddress import ip_network
from typing import Any

import pytest
from django.test import Client

from pools.core.observed.uses import Role
from pools.models import AddressSpace, Cluster, Container
from tests import factories, people
from tests.claims import worlds
from tests.observed import rows


@pytest.fixture
def browser() -> Client:
    return people.browser()


@pytest.fixture
def cluster() -> Cluster:
    """A cluster with a VM network, a pool, a Service range and a node, beside another cluster."""
    cluster = factories.cluster()
    worlds.network("cluster_udn_blue", subnets=("10.128.0.0/16",), of=cluster)
    factories.pool("10.4.0.0/16", within=cluster, category="pod", mask=24, name="pods")
    rows.observed(cluster, Role.SERVICES, "172.30.0.0/16", name="kubernetes-services")
    rows.observed(cluster, Role.NODE, "192.0.2.7/32", name="worker-7")
    factories.cluster(cluster_prefix=ip_network("2001:db8:10::/48"))
    return cluster


def _checked(browser: Client, **values: Any) -> str:
    answer = browser.get("/admin/cidrs/check/", values)
    assert answer.status_code == 200
    return answer.content.decode()


def _checked_pool(browser: Client, cluster: Cluster, *cidrs: str, **more: Any) -> str:
    fields = {f"cidrs-{number}-cidr": cidr for number, cidr in enumerate(cidrs)}
    return _checked(browser, cluster=cluster.pk, category="pod", pool="", **fields, **more)


@pytest.mark.parametrize(
    ("cidr", "told"),
    [
        ("10.128.0.0/20", "cluster_udn_blue"),
        ("172.30.0.0/24", "kubernetes-services"),
        ("192.0.2.0/24", "worker-7"),
        ("2001:db8:10:7::/64", "cluster prefix"),
    ],
)
def test_a_pool_form_names_what_the_cidr_overlaps(
    browser: Client, cluster: Cluster, cidr: str, told: str
) -> None:
    text = _checked_pool(browser, cluster, "10.77.0.0/16", cidr)
    assert told in text
    assert 'name="accept_overlaps"' in text
    assert "Nothing was saved" not in text
    ticked = _checked_pool(browser, cluster, cidr, accept_overlaps="1")
    assert "checked" in ticked


def test_what_the_register_refuses_has_no_tick(browser: Client, cluster: Cluster) -> None:
    text = _checked_pool(browser, cluster, "10.4.8.0/21")
    assert "This cannot be saved" in text
    assert "pods" in text
    assert 'name="accept_overlaps"' not in text


def test_what_is_typed_in_part_says_nothing(browser: Client, cluster: Cluster) -> None:
    for cidr in ("", "10.128", "10.128.0.0", "10.128.0.0/99", "x\0y", "10.77.0.0/16"):
        assert _checked_pool(browser, cluster, cidr).strip() == ""
    unknown = {"cluster": "none", "category": "pod", "cidrs-0-cidr": "10.128.0.0/20"}
    assert _checked(browser, **unknown).strip() == ""
    assert _checked(browser, **{"cidrs-0-cidr": "10.128.0.0/20"}).strip() == ""


def test_host_bits_are_told_with_what_the_network_overlaps(
    browser: Client, cluster: Cluster
) -> None:
    text = _checked_pool(browser, cluster, "10.128.1.0/20")
    assert "did you mean 10.128.0.0/20?" in text
    assert "cluster_udn_blue" in text


def test_each_form_compares_for_the_owner_it_makes(browser: Client, cluster: Cluster) -> None:
    pool = cluster.pools.get(name="pods")
    text = _checked(browser, pool=pool.pk, cidr="10.128.0.0/20")
    assert "cluster_udn_blue" in text
    assert _checked(browser, pool=pool.pk, cidr="10.4.0.0/20").strip() == ""  # its own
    text = _checked(browser, pool=pool.pk, to="10.128.0.0/20")
    assert "cluster_udn_blue" in text
    space = AddressSpace.objects.get(cluster=cluster, name="")
    assert "cluster_udn_blue" in _checked(browser, space=space.pk, cidr="10.128.0.0/20")
    assert _checked(browser, space="", cidr="10.128.0.0/20").strip() == ""  # the fleet has all
    text = _checked(browser, cluster=cluster.pk, subnets="fd00::/64\n10.4.0.0/24")
    assert "pods" in text
    text = _checked(browser, cluster=cluster.pk, cluster_prefix="2001:db8:10:8000::/56")
    assert "cluster prefix" in text


def test_the_own_cluster_is_named_first_however_many_others_there_are(
    browser: Client, cluster: Cluster
) -> None:
    for _ in range(25):
        factories.pool("10.128.0.0/14", category="pod", mask=24)
    text = _checked_pool(browser, cluster, "10.128.0.0/20")
    assert text.index("cluster_udn_blue") < text.index("10.128.0.0/14")


def _free(browser: Client, **values: Any) -> str:
    return browser.get("/admin/cidrs/free/", values).content.decode()


def test_free_cidrs_are_offered_as_buttons(browser: Client, cluster: Cluster) -> None:
    assert "No network container" in _free(browser, length=20, cluster=cluster.pk)
    Container.objects.create(cidr="10.128.0.0/9", name="company")
    text = _free(browser, length=16, cluster=cluster.pk)
    assert 'data-fill="10.129.0.0/16"' in text
    assert "10.128.0.0" not in text
    assert "company" in text
    pool = cluster.pools.get(name="pods")
    assert 'data-fill="10.129.0.0/16"' in _free(browser, length=16, pool=pool.pk)
    assert "No network container is larger than a /4." in _free(
        browser, length=4, cluster=cluster.pk
    )
    for length in ("", "0", "129", "x"):
        assert "from 1 to 128" in _free(browser, length=length)


def test_the_next_free_address_of_a_pool(browser: Client) -> None:
    pool = factories.pool("192.0.2.0/30", category="ipv4")
    url = f"/admin/pools/pool/{pool.pk}/"
    for page in ("allocate", "reserve"):
        assert f'data-free="{url}free/"' in browser.get(f"{url}{page}/").content.decode()
    assert browser.get(f"{url}free/").json() == {"addresses": ["192.0.2.1"]}
    factories.drain(pool)
    assert "problem" in browser.get(f"{url}free/").json()
