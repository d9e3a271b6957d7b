"""Every page of the admin site, and each list of REST, over a register with as many rows in each large table as asked for."""

import contextlib
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin.views.main import ORDER_VAR, PAGE_VAR, SEARCH_VAR
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client, RequestFactory, override_settings
from django.urls import NoReverseMatch, reverse

from benchmarks import registers
from claims.api import urls as claims_api
from claims.models import IPPool, Network, VMImport, Workload
from claims.workloads import results
from pools.api import urls as pools_api
from pools.models import Pool
from pools.platform import search
from pools.platform.admin import lists

GOAL_MS = 150
CLUSTERS = 20
_REPEATS = 5
_NOTHING = "zz-no-such-text"
_STATEMENTS = Path(__file__).with_suffix(".sql")
_TABLES = (
    "pools_blockevent", "pools_failureevent", "pools_observedobject", "pools_drift", "pools_finding",
    "claims_entryevent", "pools_importrow", "pools_import", "claims_decision", "claims_indexentry", "claims_workload",
    "claims_entry", "claims_ipamclaim", "claims_ippool", "claims_network", "pools_block", "pools_environment",
    "pools_allocationrequest",
)  # fmt: skip
# Texts that lists find: one row, and many.
_FOUND = {
    "pools_block": ("-777777", "7-"),
    "pools_event": ("10.0.7.7", "org-7"),
    "pools_environment": ("env-777777", "org-7", "team 77"),
    "pools_allocationrequest": ("r-777777", "org-7"),
    "pools_observedobject": ("vm-777777", "vm-7"),
    "pools_drift": ("object-777777", "object-7"),
    "pools_finding": ("node-777777", "node-7"),
    "claims_entry": ("vm-777777", "vm-7", "10.0.7.7", "02:00:00:00:07:07", "ticket 77"),
    "claims_ipamclaim": ("vm-777777", "vm-7", "10.0.7.7", "02:00:00:00:07:07"),
    "claims_decision": ("vm-777777", "ns-7"),
}


def measure(rows: int) -> Iterator[dict[str, Any]]:
    """Yield the pages that take longer than the goal, then the slowest and the number of all."""
    fill(rows)
    try:
        yield from measure_pages()
    finally:
        clear()


def fill(rows: int) -> None:
    """Write `rows` rows into each large table. Foreign keys are checked once, at the end."""
    clear()
    pools = [registers.pool("10.0.0.0/8") for _ in range(CLUSTERS)]
    with connection.cursor() as cursor:
        keys = _foreign_keys()
        for table, name, _definition in keys:
            cursor.execute(f'ALTER TABLE {table} DROP CONSTRAINT "{name}"')
        for table in _TABLES:
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        cursor.execute(
            "CREATE OR REPLACE FUNCTION pg_temp.benchmark_mac(n int) RETURNS macaddr LANGUAGE sql IMMUTABLE AS"
            " $$ SELECT ('0200' || lpad(to_hex(n), 8, '0'))::macaddr $$"
        )
        cursor.execute("DROP TABLE IF EXISTS benchmark_map")
        cursor.execute(
            "CREATE TEMPORARY TABLE benchmark_map AS SELECT %s::bigint[] AS clusters, %s::bigint[] AS pools,"
            " %s::bigint[] AS spaces, NULL::bigint[] AS networks, NULL::bigint[] AS ippools,"
            " NULL::bigint[] AS imports",
            [
                [pool.cluster_id for pool in pools],
                [pool.pk for pool in pools],
                [pool.space_id for pool in pools],
            ],
        )
        for statement in _STATEMENTS.read_text().split(";\n"):
            text = statement.replace("benchmark_mac", "pg_temp.benchmark_mac")
            if text.strip():
                cursor.execute(text.replace("%(rows)s", str(rows)))
        for table in _TABLES:
            cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
        cursor.execute("ALTER TABLE pools_block DISABLE TRIGGER pools_block_recovers")  # as it was
        for table, name, definition in keys:
            cursor.execute(f'ALTER TABLE {table} ADD CONSTRAINT "{name}" {definition}')
        cursor.execute("VACUUM ANALYZE")
    results.refresh_counts()  # as a worker does every ten minutes


def clear() -> None:
    """Empty the tables that `fill` writes."""
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {', '.join(_TABLES)} CASCADE")


def _foreign_keys() -> list[tuple[str, str, str]]:
    """Return (table, name, definition) of the foreign keys of the large tables."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE contype = 'f' AND conrelid::regclass::text = ANY(%s)",
            [list(_TABLES)],
        )
        return cursor.fetchall()


def measure_pages() -> Iterator[dict[str, Any]]:
    """Measure the pages of a register that is filled."""
    user = get_user_model().objects.get(username="admin")
    client = Client()
    client.force_login(user)
    times: dict[str, float] = {}
    with override_settings(ALLOWED_HOSTS=["*"]):
        for url in dict.fromkeys(
            (*_overview_urls(), *_list_urls(user), *_page_urls(), *_rest_urls())
        ):
            times[url] = _median_ms(client, url)
            if times[url] > GOAL_MS:
                yield {"name": "admin_page", "url": url, "ms": round(times[url])}
    yield {
        "name": "admin_lists", "pages": len(times), "ms": round(max(times.values())),
        "median_ms": round(statistics.median(times.values())), "floor_ms": round(_count_ms()),
        "goal_at_most": GOAL_MS, "met": max(times.values()) <= GOAL_MS,
    }  # fmt: skip


def _overview_urls() -> Iterator[str]:
    """Yield the pages that are no changelist, and the large tables on pages of single objects."""
    network, vm_import = Network.objects.order_by("pk")[3], VMImport.objects.order_by("pk")[3]
    ippool = IPPool.objects.get(network=network)
    pool = Pool.objects.order_by("pk")[3]
    workloads = reverse("admin:claims_workload_changelist")
    yield reverse("admin:index")
    yield from (reverse(f"admin:{name}") for name in ("nodes", "preflight"))
    yield reverse("admin:claims_ipamclaim_problems")
    for text in (
        "vm-777777", "ns-7", "env-77", "10.0.7.7", "0.3.77", "20.3.7", "::beef", "02:00:00:00:07:07", "34:56", _NOTHING,
    ):  # fmt: skip
        yield reverse("admin:find", query={"q": text})
    yield workloads
    yield reverse("admin:claims_workload_changelist", query={"cluster": network.cluster_id})
    for result in ("", "matching", "missing", "different", "unknown"):
        yield reverse(
            "admin:claims_workload_changelist", query={"network": network.pk, "result": result}
        )
    yield reverse("admin:claims_network_change", args=[network.pk])
    yield reverse("admin:pools_pool_change", args=[pool.pk])
    yield reverse("admin:pools_cluster_change", args=[network.cluster_id])
    for url in (
        reverse("admin:pools_import_change", args=[vm_import.pk]),
        reverse("admin:claims_ippool_change", args=[ippool.pk]),
        reverse("admin:claims_ippool_entries", args=[ippool.pk]),
    ):
        yield url
        yield from (f"{url}?q={text}" for text in ("vm-777", "vlan7", "10.0.7", _NOTHING))


def _list_urls(user: Any) -> Iterator[str]:
    """Yield each list: as it opens, by each column, page 2 and the last, with each filter, searched."""
    for model, model_admin in admin.site._registry.items():
        if model is Workload or not isinstance(model_admin, lists.ListAdmin):
            continue
        label = model._meta.label_lower.replace(".", "_")
        url = reverse(f"admin:{label}_changelist")
        request = RequestFactory().get(url)
        request.user = user
        changelist = model_admin.get_changelist_instance(request)
        queries: list[tuple[str, Any]] = [
            (ORDER_VAR, f"{sign}{number}")
            for number, column in enumerate(changelist.list_display)
            if column in changelist.sortable_by and changelist.get_ordering_field(column)
            for sign in ("", "-")
        ]
        last = changelist.paginator.num_pages
        queries += [(PAGE_VAR, number) for number in sorted({2, last}) if 1 < number <= last]
        for spec in changelist.filter_specs:
            values = [value for value, _label in getattr(spec, "lookup_choices", ())]
            queries += [
                (spec.parameter_name, value) for value in dict.fromkeys([*values[:1], *values[-1:]])
            ]
        if model in search.COLUMNS:
            queries += [(SEARCH_VAR, text) for text in (*_FOUND.get(label, ("net-7",)), _NOTHING)]
        yield url
        yield from (f"{url}?{urlencode([query])}" for query in queries)


def _page_urls() -> Iterator[str]:
    """Yield the other pages of each list, its export, and each page of its fourth row."""
    for model, model_admin in admin.site._registry.items():
        if not isinstance(model_admin, lists.ListAdmin):
            continue
        name = f"admin:{model._meta.label_lower.replace('.', '_')}"
        row = model._default_manager.order_by("pk")[3:4].first()
        wanted = [(page.name, []) for page in model_admin.list_pages]
        wanted += [(page.name, [row.pk]) for page in model_admin.row_pages if row]
        wanted += [("export", [])] if model_admin.exported else []
        for page, ids in wanted:
            with contextlib.suppress(NoReverseMatch):  # it needs one id more
                yield reverse(f"{name}_{page}", args=ids)


def _rest_urls() -> Iterator[str]:
    """Yield the resources of REST without an argument: the first page of each list."""
    for namespace, urls in (("api", pools_api), ("claims-api", claims_api)):
        for pattern in urls.urlpatterns:
            if not pattern.pattern.converters:
                yield reverse(f"{namespace}:{pattern.name}")


def _median_ms(client: Client, url: str) -> float:
    """Return the median of five; a slow page is loaded less often."""
    taken: list[float] = []
    while len(taken) < _REPEATS and sum(taken) < 2_000:
        begun = time.perf_counter()
        answer = client.get(url)
        taken.append((time.perf_counter() - begun) * 1000)
        if answer.status_code >= 500:  # a form may need more than the row, and a button a POST
            raise RuntimeError(f"{url}: {answer.status_code}")
    return statistics.median(taken)


def _count_ms() -> float:
    """Return how long PostgreSQL counts one of the large tables, as a measure of the machine."""
    begun = time.perf_counter()
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pools_finding")
    return (time.perf_counter() - begun) * 1000
