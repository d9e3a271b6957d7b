"""Who may do what in the admin: each role against each page that changes something."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from pools.models import AllocationRequest, Block, Event, Pool
from pools.services import demo
from tests import people

pytestmark = pytest.mark.django_db

ROLES = {
    "nobody": (),
    "viewer": people.VIEWER,
    "operator": people.OPERATOR,
    "administrator": people.ADMINISTRATOR,
}
FORBIDDEN, ALLOWED = {403}, {200, 302}


@pytest.fixture(autouse=True)
def _fleet() -> None:
    demo.load()


def urls() -> dict[str, tuple[str, str]]:
    """Name of the page -> (address, the first role that may use it)."""
    pool = Pool.objects.get(name="yellow-pool")
    held = Block.objects.filter(state="held")[0].pk
    cooling = Block.objects.filter(state="cooling")[0].pk
    ranged = pool.reserved_ranges.get().pk
    return {
        "add a pool": (reverse("admin:pools_pool_add"), "operator"),
        "edit": (reverse("admin:pools_pool_edit", args=[pool.pk]), "operator"),
        "delete": (reverse("admin:pools_pool_delete", args=[pool.pk]), "operator"),
        "allocate": (reverse("admin:pools_pool_allocate", args=[pool.pk]), "operator"),
        "reserve": (reverse("admin:pools_pool_reserve", args=[pool.pk]), "operator"),
        "unreserve": (
            reverse("admin:pools_pool_unreserve", args=[pool.pk, ranged]),
            "operator",
        ),
        "add a CIDR": (reverse("admin:pools_pool_add_cidr", args=[pool.pk]), "operator"),
        "import": (reverse("admin:import"), "operator"),
        "release": (reverse("admin:pools_block_release", query={"id": held}), "operator"),
        "end a cooldown": (
            reverse("admin:pools_block_end_cooldown", query={"id": cooling}),
            "administrator",
        ),
        "add a cluster": (reverse("admin:pools_cluster_add"), "administrator"),
        "delete a cluster": (
            reverse("admin:pools_cluster_delete", args=[pool.cluster_id]),
            "administrator",
        ),
        "see a pool": (reverse("admin:pools_pool_change", args=[pool.pk]), "viewer"),
        "see its YAML": (reverse("admin:pools_pool_yaml", args=[pool.pk]), "viewer"),
        "see a block": (reverse("admin:pools_block_change", args=[held]), "viewer"),
        "see blocks": (reverse("admin:pools_block_changelist"), "viewer"),
        "see events": (reverse("admin:pools_event_changelist"), "viewer"),
        "see an event": (
            reverse("admin:pools_event_change", args=[Event.objects.all()[0].pk]),
            "viewer",
        ),
        "find": (reverse("admin:find", query={"q": "10.50.0.1"}), "viewer"),
    }


@pytest.mark.parametrize("role", ROLES)
def test_a_role_reaches_its_pages_only(role: str) -> None:
    client = people.browser(ROLES[role])
    order = list(ROLES)
    for name, (url, least) in urls().items():
        allowed = order.index(role) >= order.index(least)
        expected = ALLOWED if allowed else FORBIDDEN
        assert client.get(url).status_code in expected, (role, name)
        if not allowed:
            assert client.post(url, {}).status_code in FORBIDDEN, (role, name)


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_actions_of_lists_need_their_permission(role: str) -> None:
    client = people.browser(ROLES[role])
    block = Block.objects.filter(state="cooling")[0]
    data = {"action": "end_cooldown_selected", "_selected_action": [block.pk]}
    client.post(reverse("admin:pools_block_changelist"), data)
    block.refresh_from_db()
    assert block.state == "cooling"
    request = AllocationRequest.objects.get(state="pending")
    data = {"action": "cancel", "_selected_action": [request.pk]}
    client.post(reverse("admin:pools_allocationrequest_changelist"), data)
    request.refresh_from_db()
    assert request.state == ("cancelled" if role == "operator" else "pending")


def test_nothing_is_deleted_in_bulk() -> None:
    client = people.browser()
    for name in ("pools_pool", "pools_block", "pools_cluster", "pools_event"):
        rows = client.get(reverse(f"admin:{name}_changelist")).context["cl"].result_list
        data = {"action": "delete_selected", "_selected_action": [rows[0].pk], "post": "yes"}
        client.post(reverse(f"admin:{name}_changelist"), data)
        assert type(rows[0]).objects.filter(pk=rows[0].pk).exists(), name


def test_every_change_needs_the_token_against_forged_requests() -> None:
    strict = people.browser(enforce_csrf_checks=True)
    for name, (url, _) in urls().items():
        assert strict.post(url, {}).status_code == 403, name


def test_the_start_page_of_somebody_without_rights_tells_nothing() -> None:
    client: Client = people.browser(())
    text = client.get(reverse("admin:index")).content.decode()
    assert "demo-frankfurt" not in text
    assert "may not see the register" in text
