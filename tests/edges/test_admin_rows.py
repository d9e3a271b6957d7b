"""Pages of single rows lead on: to what they name, to what can be done, to the API's answer."""

import html
import re
from typing import Any

import pytest
from django.urls import reverse

from pools.core import errors
from pools.models import AllocationRequest, Block, Cluster, Environment, Now, PoolCIDR
from pools.register.allocator import requests
from tests import factories, people


def change(row: Any) -> str:
    return reverse(f"admin:pools_{row._meta.model_name}_change", args=[row.pk])


def text(url: str, permissions: Any = None) -> str:
    answer = people.browser(permissions).get(url)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.fixture
def waiting() -> AllocationRequest:
    """A request of acme/shop, whose pool of two addresses has none left."""
    pool = factories.pool("10.0.0.0/31")
    factories.take(pool, org="acme", env="shop")
    factories.take(pool)
    block_demand = factories.demand(factories.holder("vm-late"), org="acme", env="shop")
    with pytest.raises(errors.IpamError):
        requests.allocate(pool.pk, block_demand, author=factories.BY)
    allocation = requests.allocate(pool.pk, block_demand, author=factories.BY, wait=True)
    assert isinstance(allocation, AllocationRequest)
    return allocation


def test_an_environment_tells_what_it_lacks_and_holds(waiting: AllocationRequest) -> None:
    page = text(change(Environment.objects.get()))
    assert "Address allocation failed" in page
    assert change(waiting) in page
    assert change(Block.objects.get(env="shop", state="held")) in page


def test_a_request_is_cancelled_on_its_page(waiting: AllocationRequest) -> None:
    browser = people.browser()
    page = browser.get(change(waiting)).content.decode()
    form = re.search(
        r'<form method="post" action="(/admin/pools/alloc.*?)">.*?</form>', page, re.DOTALL
    )
    assert form is not None
    fields = dict(re.findall(r'name="(action|_selected_action|index)" value="(.*?)"', form[0]))
    browser.post(form[1], fields)
    waiting.refresh_from_db()
    assert waiting.state == "pending"  # the page asks first
    browser.post(form[1], fields | {"_confirmed": "1"})
    waiting.refresh_from_db()
    assert waiting.state == "cancelled"
    assert "Cancel the request" not in browser.get(change(waiting)).content.decode()


def test_who_may_only_look_gets_no_form(waiting: AllocationRequest) -> None:
    page = text(change(waiting), people.VIEWER)
    assert "Cancel the request" not in page
    assert "Add a CIDR" not in page


def test_the_history_of_an_environment_is_found(waiting: AllocationRequest) -> None:
    environment = Environment.objects.get()
    answer = people.browser().get(reverse("admin:pools_environment_history", args=[environment.pk]))
    assert "vm-late" in text(answer.headers["Location"])


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", [Environment, AllocationRequest, Block, Cluster])
def test_the_call_that_is_shown_answers(kind: Any, waiting: AllocationRequest) -> None:
    browser = people.browser()
    page = browser.get(change(kind.objects.order_by("pk").first())).content.decode()
    call = re.search(r"http://testserver(/api/v1/.*?)'", html.unescape(page))
    assert call is not None
    answer = browser.get(call[1])
    assert answer.status_code == 200
    document = answer.json()
    assert len(document["results"]) == 1 if "results" in document else document["id"]


def test_a_free_block_of_the_map_leads_to_its_form() -> None:
    pool = factories.pool("10.0.0.0/29", "fd00::/125")
    held = factories.take(pool, family=4)
    page = reverse("admin:pools_pool_change", args=[pool.pk])
    form = reverse("admin:pools_pool_allocate", args=[pool.pk])
    leads = re.findall(rf'href="({form}\?exact=.*?)"', text(page))
    assert f"{form}?exact=10.0.0.6/32" in leads
    assert f"{form}?exact={held['cidr']}" not in leads
    assert form not in text(page, people.VIEWER)
    for exact, family in (("10.0.0.6/32", "4"), ("fd00::7/128", "6")):
        shown = people.browser().get(f"{form}?exact={exact}").context["form"]
        assert (shown["exact"].value(), shown["family"].value()) == (exact, family)


@pytest.mark.parametrize("values", [{"pending": "addition"}, {"orphaned_at": Now()}])
def test_the_map_of_a_cidr_that_allocates_nothing_has_no_free_block(values: Any) -> None:
    pool = factories.pool("10.0.0.0/24", category="pod", mask=28)
    PoolCIDR.objects.update(**values)
    answer = people.browser().get(change(pool))
    (drawn,) = answer.context["maps"]
    assert (drawn.view.totals["reserved"], drawn.view.totals["free"]) == (16, 0)
    assert reverse("admin:pools_pool_allocate", args=[pool.pk]) + "?exact" not in str(drawn.svg)


def test_free_blocks_near_an_address_lead_there_too() -> None:
    pool = factories.pool("10.0.0.0/29")
    form = reverse("admin:pools_pool_allocate", args=[pool.pk])
    result = reverse("admin:find", query={"q": "10.0.0.1"})
    assert f"{form}?exact=10.0.0.2/32" in html.unescape(text(result)).replace("%2F", "/")
    assert form not in text(result, people.VIEWER)


@pytest.mark.parametrize("name", ["import", "pools_pool_add"])
def test_a_form_for_pools_asks_for_a_cluster_first(name: str) -> None:
    url = reverse(f"admin:{name}")
    assert "no cluster exists yet" in text(url)
    factories.cluster()
    assert "no cluster exists yet" not in text(url)
