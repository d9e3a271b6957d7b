"""Very many: as many statements as for few; and of pods only what is needed is kept."""

import itertools
import json
import re
from collections.abc import Callable, Iterator
from ipaddress import ip_interface
from typing import Any

import psycopg
import pytest
from django.db import connection

from claims.core.workloads.attachments import Attachment, Pod
from claims.models import NAD, IndexEntry, Network, Workload
from claims.workloads import adoption, results, running
from pools.platform import database, events
from tests.claims import worlds
from tests.claims.workloads.kubevirt import MAC, KubeVirt, attachment

MANY = 20_000


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], int]:
    """How many statements some work sends; also past Django's cursor, which its own count misses."""
    sent: list[object] = []
    execute = psycopg.Cursor.execute

    def counted(self: Any, query: Any, *values: Any, **options: Any) -> Any:
        sent.append(query)
        return execute(self, query, *values, **options)

    monkeypatch.setattr(psycopg.Cursor, "execute", counted)

    def count(work: Callable[[], object]) -> int:
        sent.clear()
        work()
        return len(sent)

    return count


_MAC = "('02:00:00:00:' || to_hex(n / 256) || ':' || to_hex(n % 256))::macaddr"
_IPS = "ARRAY['10.' || n / 65536 || '.' || n / 256 % 256 || '.' || n % 256 || '/8']"
_WORKLOADS = f"""
    INSERT INTO claims_workload (network_id, kind, namespace, name, uid, vm_uid, interface, mac, ips,
        node, phase, pods, since)
    SELECT $1, 'vmi', 'blue', 'vm-' || n, 'u-' || n, '', 'default', {_MAC}, {_IPS}, 'n', 'Running',
        '{{}}', now()
    FROM generate_series(1, $2) AS n RETURNING id
"""  # noqa: S608  # our own texts
# Four of five.
_ENTRIES = f"""
    INSERT INTO claims_entry (ippool_id, mac, ips, vm, namespace, source, note, created_at)
    SELECT $1, {_MAC}, {_IPS}, 'vm-' || n, 'blue', 'hand', '', now()
    FROM generate_series(1, $2) AS n WHERE n % 5 <> 0 RETURNING id
"""  # noqa: S608


def fill(network: Network, count: int) -> None:
    """Workloads, and entries for four of five of them."""
    ippool = worlds.ippool(network, f"ippool-{network.pk}")
    for statement, parent_pk in ((_WORKLOADS, network.pk), (_ENTRIES, ippool.pk)):
        text = statement.replace("%", "%%").replace("$1", "%s").replace("$2", "%s")
        database.rows(text, [parent_pk, count])


@pytest.mark.exhaustive
def test_results_take_as_many_statements_for_many(
    statements: Callable[[Callable[[], object]], int],
) -> None:
    few, many = worlds.network("few", subnets=("10.0.0.0/8",)), worlds.network("many", subnets=("10.0.0.0/8",))  # fmt: skip
    for network, count in ((few, 20), (many, MANY)):
        fill(network, count)
        expected = {"matching": count * 4 // 5, "unknown": count // 5, "missing": 0, "different": 0}
        assert results.result_counts(network.pk) == expected

    def page(network: Network) -> None:
        rows = results.visible_rows().filter(network=network, result="unknown")
        results.render_rows(list(rows.order_by(*results.ORDER).values()[:100]))

    for work in (page, lambda network: adoption.plan(network, result="unknown")):
        counted = [statements(lambda: work(network)) for network in (few, many)]  # noqa: B023
        assert counted[0] == counted[1] < 10


_numbers = itertools.count(1)


def pods(count: int) -> dict[str, Pod]:
    result = {}
    for number in itertools.islice(_numbers, count):
        ip = ip_interface(f"10.0.{number // 250}.{number % 250 + 2}/16")
        mac = f"02:00:00:01:{number // 256:02x}:{number % 256:02x}"
        interface = Attachment("blue/prod", "blue/prod", mac, (ip,), primary=True, by_ovn=True)
        values = ("n", "Running", "", False, "", "", True, (interface,), ())
        result[f"pod-{number}"] = Pod("blue", f"pod-{number}", f"pod-{number}", *values)
    return result


def test_taking_in_takes_as_many_statements_for_many(
    statements: Callable[[Callable[[], object]], int],
) -> None:
    network = worlds.network(subnets=("10.0.0.0/16",))
    NAD.objects.create(network=network, namespace="blue", name="prod", role="primary")

    def keep(changed: dict[str, Pod]) -> None:
        with events.recorded_by(worlds.BY):
            running.update_workloads(network.cluster_id, running.WorkloadChanges(pods=changed))

    keep(pods(3))
    few, many = pods(10), pods(200)  # so few that the table is not analysed for them
    assert statements(lambda: keep(few)) == statements(lambda: keep(many))
    assert Workload.objects.count() == IndexEntry.objects.count() == 213
    assert statements(lambda: keep(many)) < 10  # nothing changed


@pytest.mark.exhaustive
def test_of_pods_what_is_needed_is_kept(cluster: KubeVirt) -> None:
    cluster.pod("plain", {"default": {"ip_addresses": ["10.244.0.7/24"]}})
    cluster.pod("web", attachment("10.0.0.5/16"), annotations={"large": "x" * 10_000})
    vmi = cluster.vmi(cluster.vm("db"))
    cluster.launcher("virt-launcher-db-1", vmi)
    cluster.passed()
    stored = cluster.stored_manifests("Pod")
    assert set(stored) == {"web", "virt-launcher-db-1"}
    for manifest in stored.values():
        assert set(manifest["spec"]) == {"nodeName"}
        assert "managedFields" not in manifest["metadata"]
        assert "large" not in manifest["metadata"]["annotations"]
    (instance,) = cluster.stored_manifests("VirtualMachineInstance").values()
    assert instance["spec"]["domain"]["devices"]["interfaces"][0]["macAddress"] == MAC
    assert cluster.counted() == {"changed": 0, "written": 0, "failed": 0}


def test_addresses_are_joined_by_hash() -> None:
    """A nested loop over the entries without a workload would read all addresses for each of them."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT prosrc FROM pg_proc WHERE proname = 'claims_compare_workloads'")
        (statement,) = cursor.fetchone()
        values = {"network": "1", "within": "NULL::text"}
        for name, value in values.items():
            statement = re.sub(rf"\b{name}\b", value, statement)
        cursor.execute("SET LOCAL enable_nestloop = off")  # as the function does
        cursor.execute(f"EXPLAIN (FORMAT JSON) {statement}")
        ((plan,),) = cursor.fetchall()
    root = (json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]
    loops = [node for node in _nodes(root) if node["Node Type"] == "Nested Loop"]
    assert loops  # of each row with its own addresses
    for loop in loops:
        assert loop["Plans"][1]["Node Type"] == "Function Scan"


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from _nodes(part)
