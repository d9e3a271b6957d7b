"""The command palette: pages, actions and objects that the user may open."""

import pytest
from django.test import Client

from tests import factories, people

pytestmark = pytest.mark.django_db


def found(client: Client, text: str) -> dict[str, str]:
    """The links of the palette by their titles."""
    answer = client.get("/admin/search/", {"s": text, "extended": "1"})
    assert answer.status_code == 200
    return {str(result.title): str(result.link) for result in answer.context["results"]}


def test_objects_pages_and_actions() -> None:
    pool = factories.pool("10.40.0.0/20", name="blue-pool")
    factories.take(pool, factories.holder("node-7", kind="node"), cidr="10.40.0.9/32")
    client = people.browser()
    page = f"/admin/pools/pool/{pool.pk}"
    assert found(client, "blue")[str(pool)] == f"{page}/change/"
    assert found(client, "lue-po")["Allocate from blue-pool"] == f"{page}/allocate/"
    assert found(client, "allocate from blue-pool") == {
        "Allocate from blue-pool": f"{page}/allocate/"
    }
    assert "10.40.0.9/32" in found(client, "node-7")
    assert found(client, "10.40.0.9")["Who held 10.40.0.9?"] == "/admin/history/?q=10.40.0.9"
    at = found(client, "who held 10.40.0.9 at 2026-05-05")
    assert [*at.values()] == ["/admin/history/?q=10.40.0.9&at=2026-05-05"]
    migrate = found(client, "migrate 10.40.0.0/20")
    assert [*migrate.values()] == [f"{page}/migrations/?cidr=10.40.0.0%2F20"]
    assert found(client, "import vms")["Import VMs"] == "/admin/pools/import/add/?kind=vm"
    assert found(client, "address pl")["Address plan"] == "/admin/address-plan/"
    assert found(client, "zz-no")["Find zz-no"] == "/admin/find/?q=zz-no"


def test_it_shows_what_the_user_may_open() -> None:
    pool = factories.pool("10.40.0.0/20", name="blue-pool")
    factories.take(pool, factories.holder("blue-vm"))
    client = people.browser(["view_block"])
    assert [*found(client, "blue")] == ["10.40.0.1/32", "Find blue"]
    assert not found(client, "allocate from blue-pool")
    assert "Users" not in found(client, "users")
    assert not found(people.browser([]), "blue")


def test_what_a_user_may_not_see_any_more_is_gone_at_once() -> None:
    pool = factories.pool("10.40.0.0/20", name="blue-pool")
    client = people.browser()
    assert str(pool) in found(client, "blue-pool")
    pool.delete()
    assert str(pool) not in found(client, "blue-pool")
