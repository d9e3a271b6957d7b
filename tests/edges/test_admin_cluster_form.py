"""The form of a cluster: what PATCH changes, errors beside the field, nothing overwritten."""

from typing import Any

import pytest
from django.urls import reverse

from pools.models import Cluster, Event, Pool
from tests import factories, people
from tests.edges.api import PREFIX


def _url(cluster: Cluster) -> str:
    return reverse("admin:pools_cluster_edit", args=[cluster.pk])


def _data(cluster: Cluster, **values: Any) -> dict[str, Any]:
    unchanged = {
        "description": cluster.description,
        "instance_gateway": str(cluster.instance_gateway),
        "instance_mtu": cluster.instance_mtu,
        "instance_dns": "\n".join(map(str, cluster.instance_dns)),
        "cluster_prefix": str(cluster.cluster_prefix or ""),
        "version": cluster.version,
    }
    return unchanged | values


def _post(cluster: Cluster, **values: Any) -> Any:
    return people.browser().post(_url(cluster), _data(cluster, **values))


def test_every_field_of_patch_can_be_changed() -> None:
    cluster = factories.cluster()
    page = people.browser().get(reverse("admin:pools_cluster_change", args=[cluster.pk]))
    assert _url(cluster) in page.content.decode()
    answer = _post(
        cluster, description="Rack 7", instance_gateway=" fe80::2 ", instance_mtu="1400",
        instance_dns="2001:db8::53\n\n2001:db8::54", cluster_prefix=PREFIX,
    )  # fmt: skip
    assert answer["Location"] == reverse("admin:pools_cluster_change", args=[cluster.pk])
    cluster.refresh_from_db()
    assert (cluster.description, cluster.instance_mtu) == ("Rack 7", 1400)
    assert (str(cluster.instance_gateway), str(cluster.cluster_prefix)) == ("fe80::2", PREFIX)
    assert [str(server) for server in cluster.instance_dns] == ["2001:db8::53", "2001:db8::54"]
    assert set(Pool.objects.values_list("name", flat=True)) == {"nodes", "instances"}
    event = Event.objects.filter(type="cluster.changed").latest("id")
    assert event.actor.startswith("person-")


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("values", "field", "says"),
    [
        ({"description": "a\nb"}, "description", "U+000A"),
        ({"instance_gateway": "fe80::zz"}, "instance_gateway", "address"),
        ({"instance_gateway": ""}, "instance_gateway", "required"),
        ({"instance_mtu": "1279"}, "instance_mtu", "1280"),
        ({"instance_mtu": "many"}, "instance_mtu", "whole number"),
        ({"instance_dns": "2001:db8::53\n10.0.0"}, "instance_dns", "Line 2: "),
        ({"instance_dns": "\n".join(f"2001:db8::{n}" for n in range(1, 18))}, "instance_dns", "16"),
        ({"cluster_prefix": "10.0.0.0/16"}, "cluster_prefix", "IPv6"),
        ({"cluster_prefix": "2001:db8::1/48"}, "cluster_prefix", "did you mean"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_an_error_stands_beside_its_field_and_input_is_kept(
    values: dict[str, str], field: str, says: str
) -> None:
    cluster = factories.cluster()
    answer = _post(cluster, **{"description": "typed before", **values})
    assert any(says in text for text in answer.context["form"].errors[field])
    assert (
        values[field].splitlines()[-1:] == answer.context["form"][field].value().splitlines()[-1:]
    )
    cluster.refresh_from_db()
    assert (cluster.description, cluster.version) == ("", 1)


@pytest.mark.exhaustive
def test_a_prefix_that_is_divided_stays() -> None:
    cluster = factories.cluster()
    _post(cluster, cluster_prefix=PREFIX)
    cluster.refresh_from_db()
    assert _post(cluster, cluster_prefix="2001:db8:99::/48", description="x").status_code == 302
    cluster.refresh_from_db()
    assert (str(cluster.cluster_prefix), cluster.description) == (PREFIX, "x")
    Pool.objects.all().delete()  # now it may be another, but not none
    assert "required" in str(_post(cluster, cluster_prefix="").context["form"].errors)
    assert _post(cluster, cluster_prefix="2001:db8:99::/48").status_code == 302


def test_a_prefix_needs_the_permission_to_add_pools() -> None:
    cluster = factories.cluster()
    browser = people.browser(["view_cluster", "change_cluster"])
    assert browser.post(_url(cluster), _data(cluster, cluster_prefix=PREFIX)).status_code == 302
    cluster.refresh_from_db()
    assert cluster.cluster_prefix is None
    assert people.browser(people.OPERATOR).get(_url(cluster)).status_code == 403


def test_what_stays_the_same_is_no_event() -> None:
    cluster = factories.cluster()
    before = Event.objects.count()
    assert _post(cluster).status_code == 302
    assert Event.objects.count() == before
