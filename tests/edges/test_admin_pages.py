"""Pages of the admin with the demo fleet; who may open which page is in tests/security/test_policy.py."""

import pytest
from django.urls import reverse

from pools.platform.conditions import evaluation
from tests import people

pytestmark = [pytest.mark.usefixtures("demo_fleet"), pytest.mark.django_db]


@pytest.mark.exhaustive
def test_the_list_of_pools_filters_by_state_and_searches() -> None:
    client = people.browser()
    for query, names in {
        "?state=full": {"premium-ipv4"},
        "?state=draining": {"yellow-pool"},
        "?state=high": {"premium-ipv4", "blue-pool"},
        "?category=vm": {"vm-lab", "cluster_udn_tenant-blue", "cluster_udn_legacy"},
        "?q=10.40.1.1": {"blue-pool"},
        "?q=10.20.0.0/15": {"green-pool"},
        "?q=YELLOW": {"yellow-pool"},
        "?cluster=not-a-number": set(),
        "?q=10.0.0.0/33": set(),
    }.items():
        url = reverse("admin:pools_pool_changelist") + query
        result_list = client.get(url).context["cl"].result_list
        assert {pool.name for pool in result_list} == names, query


@pytest.mark.exhaustive
def test_the_start_page_lists_the_open_alerts() -> None:
    evaluation.evaluate()
    text = people.browser().get(reverse("admin:index")).content.decode()
    for line in (
        "premium-ipv4 is exhausted",
        "Environment globex/bank-7 in cluster demo-frankfurt: address allocation failed",
        "1 request is waiting for free blocks",
        "blue-pool is 93 % full",
        "10.50.0.0/20 of demo-frankfurt/yellow-pool is draining",
    ):
        assert line in text, line


def test_browsers_keep_the_catalog_of_scripts() -> None:
    answer = people.browser().get(reverse("admin:jsi18n"))
    assert "gettext" in answer.content.decode()
    assert {*answer.headers["Cache-Control"].split(", ")} == {"max-age=3600", "private"}


@pytest.mark.exhaustive
def test_the_start_page_of_somebody_without_rights_tells_nothing() -> None:
    text = people.browser(()).get(reverse("admin:index")).content.decode()
    assert "demo-frankfurt" not in text
    assert "has no permissions yet" in text
