"""What is done from the admin goes through the services, with the person's name on the event."""

from typing import Any

import pytest
from django.urls import reverse

from pools.models import AllocationRequest, Block, Event, Pool
from tests import factories, people


@pytest.fixture(autouse=True)
def _no_broker(settings: Any) -> None:
    """Tasks that are sent after a release run in place: here is no broker."""
    settings.CELERY_TASK_ALWAYS_EAGER = True


def messages(answer: Any) -> str:
    return " | ".join(str(message) for message in answer.wsgi_request._messages)


def post(url: str, data: dict[str, Any], permissions: Any = None) -> Any:
    return people.browser(permissions).post(url, data)


def page(name: str, pool: Pool) -> str:
    return reverse(f"admin:pools_pool_{name}", args=[pool.pk])


def shown(block: Block) -> dict[str, Any]:
    """What the confirmation page of a release posts."""
    return {
        "id": block.pk,
        f"holder-kind-{block.pk}": block.holder_kind,
        f"holder-id-{block.pk}": block.holder_id,
        f"holder-uid-{block.pk}": block.holder_uid,
    }


def test_allocate_the_next_and_the_exact_one() -> None:
    pool = factories.pool("10.0.0.0/24")
    holder = {"kind": "vm", "family": "4", "org": "o", "env": "e"}
    answer = post(page("allocate", pool), {**holder, "id": "vm-1"})
    assert "10.0.0.1 was allocated to vm-1" in messages(answer)
    post(page("allocate", pool), {**holder, "id": "vm-2", "exact": " 10.0.0.77 "})
    block = Block.objects.get(cidr="10.0.0.77/32")
    assert (block.holder_id, block.org, block.env) == ("vm-2", "o", "e")
    event = Event.objects.filter(holder_id="vm-2").get()
    assert event.actor.startswith("person-")


def test_an_exhausted_pool_is_told_or_waited_for() -> None:
    pool = factories.pool("10.0.0.0/32")
    factories.take(pool)
    data = {"kind": "vm", "family": "4", "id": "vm-late"}
    answer = post(page("allocate", pool), data)
    assert "no block left" in str(answer.context["form"].errors)
    assert Event.objects.filter(type="block.allocation_failed").count() == 1
    post(page("allocate", pool), {**data, "wait": "on"})
    assert AllocationRequest.objects.get().holder_id == "vm-late"


def test_release_asks_whether_the_holder_is_still_the_same() -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=0)
    first = factories.row(factories.take(pool, factories.holder("vm-old")))
    before = shown(first)
    Block.objects.filter(pk=first.pk).update(holder_id="vm-new")
    answer = post(reverse("admin:pools_block_release"), before, people.OPERATOR)
    assert "has another holder now" in messages(answer)
    assert factories.row({"id": first.pk}).state == "held"  # type: ignore[typeddict-item]
    now = shown(Block.objects.get(pk=first.pk))
    post(reverse("admin:pools_block_release"), now, people.OPERATOR)
    assert Block.objects.get(pk=first.pk).state == "available"


def test_a_forced_release_needs_a_reason_and_the_permission() -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=60)
    block = factories.row(factories.take(pool))
    stale = {**shown(block), f"holder-id-{block.pk}": "somebody else", "force": "on"}
    url = reverse("admin:pools_block_release")
    answer = post(url, stale, people.ADMINISTRATOR)
    assert "Enter a reason" in str(answer.context["form"].errors["reason"])
    post(url, {**stale, "reason": "gone"}, people.OPERATOR)
    block.refresh_from_db()
    assert block.state == "held"
    post(url, {**stale, "reason": "the host burnt down"}, people.ADMINISTRATOR)
    block.refresh_from_db()
    assert block.state == "cooling"
    event = Event.objects.filter(type="reclaimed").get()
    assert event.reason == "the host burnt down"


def test_a_reason_alone_does_not_make_a_release_a_reclaim() -> None:
    block = factories.row(factories.take(factories.pool("10.0.0.0/32")))
    data = {**shown(block), "reason": "on request"}
    post(reverse("admin:pools_block_release"), data, people.ADMINISTRATOR)
    assert list(Event.objects.filter(type__in=["released", "reclaimed"])) == list(
        Event.objects.filter(type="released", reason="on request")
    )


def test_ending_a_cooldown_needs_a_reason() -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=3600)
    block = factories.take(pool)
    factories.give_back(block)
    url = reverse("admin:pools_block_end_cooldown")
    assert post(url, {"id": block["id"]}).status_code == 200
    assert factories.row(block).state == "cooling"
    post(url, {"id": block["id"], "reason": "needed today"})
    assert factories.row(block).state == "available"


@pytest.mark.exhaustive
def test_reserve_shows_the_holders_first() -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.take(pool, factories.holder("vm-inside"))
    data = {"range": "10.0.0.0/25", "reason": "new gateways"}
    answer = post(page("reserve", pool), data)
    assert "vm-inside" in answer.content.decode()
    assert not pool.reserved_ranges.exists()
    post(page("reserve", pool), {**data, "_confirmed": "1"})
    reserved = pool.reserved_ranges.get()
    assert (str(reserved), reserved.reason) == ("10.0.0.0-10.0.0.127", "new gateways")
    url = reverse("admin:pools_pool_unreserve", args=[pool.pk, reserved.pk])
    post(url, {})
    assert not pool.reserved_ranges.exists()


def test_add_a_cidr_with_its_ranges() -> None:
    pool = factories.pool("10.0.0.0/24")
    data = {"cidr": "10.1.0.0/24", "reserved": "10.1.0.0/28"}
    post(page("add_cidr", pool), data)
    assert str(pool.cidrs.last()) == "10.1.0.0/24"
    answer = post(page("add_cidr", pool), {"cidr": "10.1.0.0/16"})
    assert "overlaps 10.1.0.0/24" in str(answer.context["form"].errors["cidr"])


def test_a_cluster_prefix_is_shown_divided_before_it_is() -> None:
    url = reverse("admin:pools_cluster_add")
    data = {"name": "prod", "cluster_prefix": "2001:db8:10::/48"}
    text = post(url, {**data, "_preview": "1"}).content.decode()
    assert "2001:db8:10::/64" in text
    assert "2001:db8:10:1::/64" in text
    assert not Pool.objects.exists()
    post(url, data)
    assert set(Pool.objects.values_list("name", flat=True)) == {"nodes", "instances"}
    assert "A cluster named prod already exists" in post(url, data).content.decode()
    wrong = {"name": "b", "cluster_prefix": "2001:db8:20::/65"}
    assert "at least /64" in str(post(url, wrong).context["form"].errors["cluster_prefix"])
