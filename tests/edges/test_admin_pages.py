"""Every page of the admin answers, empty and with the demo fleet; nothing without a login."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.urls import get_resolver, reverse

from pools.models import AllocationRequest, Block, Cluster, Environment, Event, Pool
from pools.platform.conditions import evaluation
from pools.register.demo import demo
from tests import factories, people

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db

LISTS = (
    "pools_pool",
    "pools_block",
    "pools_cluster",
    "pools_environment",
    "pools_allocationrequest",
    "pools_event",
    "auth_user",
    "auth_group",
    "knox_authtoken",
)
OPEN = {
    "login", "account_login", "jsi18n", "mfa_login_webauthn",
}  # fmt: skip


def pages() -> list[str]:
    plain = [reverse(f"admin:{name}_changelist") for name in LISTS]
    plain += [reverse(f"admin:{name}") for name in ("index", "find", "import")]
    plain += [reverse("admin:pools_pool_add"), reverse("admin:pools_cluster_add")]
    return [*plain, reverse("admin:knox_authtoken_create")]


def pages_of_rows() -> list[str]:
    result = [
        reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])
        for row in (
            *Pool.objects.all(),
            *Cluster.objects.all(),
            *Block.objects.filter(state="held")[:2],
            *Block.objects.filter(state="cooling")[:2],
            *Environment.objects.all()[:2],
            *AllocationRequest.objects.all(),
            *Event.objects.all()[:3],
            *Event.objects.filter(type__startswith="pool.")[:3],
            *Event.objects.filter(type__startswith="cluster.")[:1],
            *Event.objects.filter(type__endswith="_failed")[:1],
        )
    ]
    pool = Pool.objects.get(name="yellow-pool")
    names = ("edit", "delete", "allocate", "reserve", "add_cidr")
    result += [reverse(f"admin:pools_pool_{name}", args=[pool.pk]) for name in names]
    ranged = pool.reserved_ranges.get()
    result.append(reverse("admin:pools_pool_unreserve", args=[pool.pk, ranged.pk]))
    result.append(reverse("admin:pools_cluster_delete", args=[pool.cluster_id]))
    result.append(reverse("admin:pools_cluster_divide", args=[pool.cluster_id]))
    held, cooling = (Block.objects.filter(state=state)[0] for state in ("held", "cooling"))
    result.append(reverse("admin:pools_block_release", query={"id": held.pk}))
    result.append(reverse("admin:pools_block_end_cooldown", query={"id": cooling.pk}))
    return result


@pytest.mark.parametrize("loaded", [False, True], ids=["empty", "demo"])
def test_every_page_answers(loaded: bool) -> None:
    client = people.browser()
    if loaded:
        demo.load()
    for url in pages() + (pages_of_rows() if loaded else []):
        assert client.get(url).status_code == 200, url


@pytest.mark.exhaustive
def test_the_list_of_pools_filters_by_state_and_searches() -> None:
    demo.load()
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
    demo.load()
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


def admin_urls(resolver: Any = None, prefix: str = "/") -> Iterator[tuple[str, str]]:
    for entry in (resolver or get_resolver()).url_patterns:
        route = prefix + str(entry.pattern)
        if hasattr(entry, "url_patterns"):
            yield from admin_urls(entry, route)
        elif route.startswith("/admin/"):
            yield entry.name or "", route


@pytest.mark.exhaustive
def test_nothing_without_a_login(client: Any) -> None:
    urls = list(admin_urls())
    assert len(urls) > 60
    for name, route in urls:
        url = route.replace("<path:object_id>", "1").replace("<id>", "1")
        for part in (
            "<int:pool_id>",
            "<int:range_id>",
            "<int:cluster_id>",
            "<int:content_type_id>",
        ):
            url = url.replace(part, "1")
        url = url.replace("<path:object_id>", "1").replace("<path:url>", "x").split("(?P")[0]
        for ask in (client.get, client.post):
            answer = ask(url)
            open_to_all = name in OPEN or answer.status_code == 404
            assert open_to_all or answer.status_code == 302, (name, url, answer.status_code)
            if answer.status_code == 302:
                assert answer["Location"].startswith("/admin/"), url


@pytest.mark.exhaustive
def test_what_others_wrote_is_escaped() -> None:
    evil = '<script>alert("x")</script>'
    pool = factories.pool("10.0.0.0/29", description=evil)
    block = factories.take(pool, factories.holder(evil), org=evil, env=evil)
    factories.drain(pool)
    client = people.browser()
    find = reverse("admin:find", query={"q": evil})
    for url in (
        reverse("admin:index"),
        reverse("admin:pools_pool_change", args=[pool.pk]),
        reverse("admin:pools_block_change", args=[block["id"]]),
        reverse("admin:pools_block_changelist"),
        reverse("admin:pools_event_changelist"),
        reverse("admin:pools_environment_changelist"),
        reverse("admin:pools_pool_delete", args=[pool.pk]),
        find,
    ):
        text = client.get(url).content.decode()
        assert evil not in text, url
    assert "&lt;script&gt;" in client.get(find).content.decode()


def test_browsers_keep_the_catalog_of_scripts() -> None:
    answer = people.browser().get(reverse("admin:jsi18n"))
    assert "gettext" in answer.content.decode()
    assert {*answer.headers["Cache-Control"].split(", ")} == {"max-age=3600", "private"}
