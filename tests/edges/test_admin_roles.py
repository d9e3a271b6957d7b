"""What actions of lists do for whom; who may open which page is in tests/security/test_policy.py."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from pools.models import AllocationRequest, Block
from tests import people

pytestmark = [pytest.mark.usefixtures("demo_fleet"), pytest.mark.django_db]

ROLES = {"viewer": people.VIEWER, "operator": people.OPERATOR}


@pytest.mark.exhaustive
@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_actions_of_lists_need_their_permission(role: str) -> None:
    client = people.browser(ROLES[role])
    block = Block.objects.filter(state="cooling")[0]
    data = {"action": "end_cooldown_selected", "_selected_action": [block.pk]}
    client.post(reverse("admin:pools_block_changelist"), data)
    block.refresh_from_db()
    assert block.state == "cooling"
    request = AllocationRequest.objects.get(state="pending")
    data = {"action": "cancel", "_selected_action": [request.pk], "_confirmed": "1"}
    client.post(reverse("admin:pools_allocationrequest_changelist"), data)
    request.refresh_from_db()
    assert request.state == ("cancelled" if role == "operator" else "pending")


@pytest.mark.exhaustive
def test_nothing_is_deleted_in_bulk() -> None:
    client = people.browser()
    for name in ("pools_pool", "pools_block", "pools_cluster", "pools_event"):
        rows = client.get(reverse(f"admin:{name}_changelist")).context["cl"].result_list
        data = {"action": "delete_selected", "_selected_action": [rows[0].pk], "post": "yes"}
        client.post(reverse(f"admin:{name}_changelist"), data)
        assert type(rows[0]).objects.filter(pk=rows[0].pk).exists(), name


@pytest.mark.exhaustive
def test_the_start_page_of_somebody_without_rights_tells_nothing() -> None:
    client: Client = people.browser(())
    text = client.get(reverse("admin:index")).content.decode()
    assert "demo-frankfurt" not in text
    assert "has no permissions yet" in text
