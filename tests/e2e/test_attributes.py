"""Custom fields, tags and DNS names, and the webhook that subscribes to events, in a browser."""

import pytest

from pools.models import Block, Cluster, CustomField, CustomFieldType, Pool, WebhookTarget
from pools.register.demo import demo
from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)
LONG_LINK = "https://changes.example.org/" + "CHG-0012345/" * 12


def _pool(name: str) -> Pool:
    return Pool.objects.get(cluster__name=demo.FRANKFURT, name=name)


def test_a_custom_field_is_defined_set_and_filtered_by(visit: Visit) -> None:
    page = visit.page
    visit.open("/admin/pools/customfield/add/")
    page.get_by_label("Name").fill("zone")
    page.locator("[name=label]").fill("Zone")
    page.select_option("select[name=type]", label="choice")
    page.get_by_label("Choices").fill("inner\nouter")
    page.get_by_label("Pools", exact=True).check()
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("Custom field Zone was added.").wait_for()

    pool = _pool("yellow-pool")
    visit.open(f"/admin/pools/pool/{pool.pk}/edit/")
    page.get_by_label("Tags").fill("Production, team net")
    page.get_by_label("Owner").fill("net@example.org")
    page.get_by_label("Zone").select_option("outer")
    page.get_by_role("button", name="Save", exact=True).click()
    section = page.locator("#attributes")
    section.get_by_text("team-net").wait_for()
    assert "outer" in section.inner_text()

    for query in ("tag=team-net", "cf_zone=outer", "owner=net@example.org"):
        visit.open(f"/admin/pools/pool/?{query}")
        assert page.locator("#result_list tbody tr").count() == 1, query
        assert "yellow-pool" in page.locator("#result_list tbody").inner_text()


def test_an_address_gets_a_dns_name(visit: Visit) -> None:
    page = visit.page
    block = Block.objects.filter(pool=_pool("vm-lab"), state="held").earliest("cidr")
    visit.open(f"/admin/pools/block/{block.pk}/change/")
    visit.click_in_menu("DNS name")
    field = page.get_by_label("DNS name")
    field.fill("web_1")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("alert").first.wait_for()
    field.fill("Web-1.example.org.")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_text("The DNS name was saved.").wait_for()
    page.get_by_text("web-1.example.org", exact=True).wait_for()


def test_a_webhook_subscribes_to_events_of_a_cluster(visit: Visit) -> None:
    page = visit.page
    visit.open("/admin/pools/webhooktarget/add/")
    page.get_by_label("Name").fill("cmdb")
    page.get_by_label("URL").fill("https://cmdb.example.org/hooks")
    page.get_by_label("Send alerts").uncheck()
    page.get_by_label("Events", exact=True).fill("pool\nblock.released")
    page.get_by_label("Clusters", exact=True).fill(demo.FRANKFURT)
    page.get_by_role("button", name="Add", exact=True).click()
    page.locator("#secret").wait_for()
    page.get_by_role("link", name="Done").click()
    page.get_by_text("No messages sent yet").wait_for()
    target = WebhookTarget.objects.get()
    assert (target.alerts, target.codes) == (False, [])
    assert target.event_types == ["block.released", "pool"]
    assert target.clusters == [Cluster.objects.get(name=demo.FRANKFURT).pk]


@pytest.mark.parametrize("visit", [390], indirect=True)
def test_pages_with_attributes_fit_a_narrow_screen(visit: Visit) -> None:
    CustomField.objects.create(
        name="order",
        label="Order",
        type=CustomFieldType.LINK,
        object_types=["cluster", "pool", "cidr", "network"],
    )
    pool = _pool("yellow-pool")
    for row in (pool, pool.cluster):
        row.tags = ["production", *(f"a-tag-with-a-long-name-{number}" for number in range(9))]
        row.custom_fields = {"order": LONG_LINK}
        row.save()
    for path in (
        f"pools/cluster/{pool.cluster_id}/change/",
        f"pools/pool/{pool.pk}/change/",
        f"pools/pool/{pool.pk}/edit/",
        "pools/pool/?columns=tags",
        "pools/poolcidr/",
        "pools/customfield/",
    ):
        visit.open(f"/admin/{path}")
        assert not visit.scrolls_sideways(), path
