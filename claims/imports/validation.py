"""The verdicts of an import's rows: against the register as it is now, and against each other.

One statement for all rows, or for some that a correction touched. What contradicts what is the rule of
claims/address_index/conflicts.py: a row is judged as the entry or claim that it would be.

new, changed, unchanged; conflict: another place, the network itself or another row has its MAC or an
address; refused: it cannot be understood, not be written by this user, or its addresses would keep the VM from
starting (claims/core/vm_import).
"""

from __future__ import annotations

from collections.abc import Collection

from claims.access import namespaces
from claims.address_index import own_addresses
from claims.address_index.conflicts import SAME_ADDRESS_CONTRADICTS, SAME_MAC_CONTRADICTS
from claims.core.vm_import import resolving
from claims.models import ImportRow, IPPool, Network, VMImport
from claims.models.imports import ImportTarget, RowVerdict
from pools.platform import database

_FEW = 200  # rows for which the planner knows best
COUNTED = ("new", "changed", "unchanged", "conflict", "refused")


def validate(vm_import: VMImport, numbers: Collection[int] | None = None) -> None:
    """Bring the verdicts of all usable rows, or of those with these numbers, up to date."""
    networks = _networks(vm_import.pk)
    ippools = IPPool.objects.filter(network__in=networks).values_list("pk", flat=True)
    user_scope = scope(vm_import)
    values = {
        "import": vm_import.pk,
        "cluster": vm_import.cluster_id,
        "every": numbers is None,
        "numbers": list(numbers or ()),
        "networks": list(networks),
        "spaces": [n.pool.space_id for n in networks.values() if n.pool],
        "ippools": list(ippools),
        "claims": vm_import.target == ImportTarget.IPAMCLAIMS,
        "declined": list(resolving.DECLINED),
        "everything": user_scope.everything,
        "namespaces": sorted(user_scope.namespaces.get(vm_import.cluster_id, ())),
        **_own_address_values(networks),
    }
    with database.hash_joins_only(many=numbers is None or len(numbers) > _FEW):
        database.fetch(_JUDGE, values)


def scope(vm_import: VMImport) -> namespaces.Scope:
    """What the import may read and write: all, or the namespaces of its user."""
    if not vm_import.limited:
        return namespaces.EVERYTHING
    return namespaces.own(vm_import.user) if vm_import.user else namespaces.Scope()


def count(vm_import: VMImport) -> dict[str, int]:
    """The rows by verdict; `skipped` only where a person left some out."""
    rows = database.rows(_COUNT, [vm_import.pk])
    rows_by_verdict = dict(rows)
    counts = {verdict: rows_by_verdict.get(verdict, 0) for verdict in COUNTED}
    if skipped := rows_by_verdict.get(RowVerdict.SKIPPED.value):
        counts["skipped"] = skipped
    return counts


_COUNT = """
    SELECT verdict, count(*) FROM claims_importrow WHERE vm_import_id = %s GROUP BY verdict
"""


def affected_numbers(vm_import: VMImport, before: ImportRow, after: ImportRow) -> list[int]:
    """The numbers of the rows that may be judged otherwise because one is another now."""
    values = {
        "import": vm_import.pk,
        "number": after.number,
        "macs": [str(row.mac) for row in (before, after) if row.mac],
        "hosts": [ip.partition("/")[0] for row in (before, after) for ip in row.ips],
        "vms": [row.vm for row in (before, after) if row.vm],
    }
    return [number for (number,) in database.rows(_TOUCHED, values, prepare=False)]


_TOUCHED = """
    SELECT number FROM claims_importrow
    WHERE vm_import_id = %(import)s AND (number = %(number)s
        OR mac = ANY(%(macs)s::text[]::macaddr[]) OR vm = ANY(%(vms)s::text[])
        OR claims_hosts(ips) && %(hosts)s::text[])
"""


def _networks(import_id: int) -> dict[int, Network]:
    ids = ImportRow.objects.filter(vm_import=import_id, usable=True).order_by()
    network_ids = ids.values_list("network_id", flat=True).distinct()
    return Network.objects.select_related("pool").in_bulk([pk for pk in network_ids if pk])


def _own_address_values(networks: dict[int, Network]) -> dict[str, list[object]]:
    network_addresses = [
        (pk, address) for pk, network in networks.items() for address in own_addresses.of(network)
    ]
    macs = [
        (pk, *mac_pair)
        for pk, network in networks.items()
        for mac_pair in own_addresses.macs(network).items()
    ]
    return {
        "own_networks": [pk for pk, _ in network_addresses],
        "own_firsts": [str(address.span.first) for _, address in network_addresses],
        "own_lasts": [str(address.span.last) for _, address in network_addresses],
        "own_types": [address.type for _, address in network_addresses],
        "own_names": [address.name for _, address in network_addresses],
        "own_bad": [not address.note for _, address in network_addresses],
        "own_mac_networks": [pk for pk, _, _ in macs],
        "own_macs": [mac for _, mac, _ in macs],
        "own_mac_gateways": [gateway for _, _, gateway in macs],
    }


_SEEN = "(%(everything)s OR {0}.namespace = ANY(%(namespaces)s::text[]))"

# The entry or the claim that a row speaks of, and whether it says the same already.
_KNOWN = f"""
    matches AS MATERIALIZED (
        SELECT j.number, e.id AS entry_id, NULL::bigint AS claim_id, e.ips @> j.ips
                AND e.ips <@ j.ips AND j.vm IN ('', e.vm) AND j.namespace IN ('', e.namespace)
                AND j.note IN ('', e.note) AS same,
            '' AS fixed,
            jsonb_build_object('mac', e.mac::text, 'ips', e.ips, 'vm', e.vm,
                'namespace', e.namespace, 'note', e.note) AS before,
            concat_ws('; ',
                CASE WHEN NOT (e.ips @> j.ips AND e.ips <@ j.ips) THEN
                    'addresses ' || array_to_string(e.ips, ', ') || ' become '
                    || array_to_string(j.ips, ', ') END,
                CASE WHEN j.vm NOT IN ('', e.vm) THEN
                    'VM ' || COALESCE(NULLIF(e.vm, ''), 'none') || ' becomes ' || j.vm END,
                CASE WHEN j.namespace NOT IN ('', e.namespace) THEN 'namespace '
                    || COALESCE(NULLIF(e.namespace, ''), 'none') || ' becomes ' || j.namespace END,
                CASE WHEN j.note NOT IN ('', e.note) THEN 'note' END) AS differs
        FROM j JOIN claims_ippool i ON i.network_id = j.network_id
        JOIN claims_entry e ON e.ippool_id = i.id AND e.mac = j.mac
        WHERE NOT %(claims)s AND e.ippool_id = ANY(%(ippools)s::bigint[]) AND {_SEEN.format("e")}
      UNION ALL
        SELECT j.number, NULL, c.id, s.same,
            CASE WHEN s.same THEN ''
                WHEN c.network_id <> j.network_id THEN 'is one of another network'
                WHEN c.deleted_at IS NOT NULL OR c.gone_at IS NOT NULL THEN 'is being deleted'
                WHEN c.ips <> '{{}}' THEN
                    'has its addresses (' || array_to_string(c.ips, ', ') || '), which never change'
                WHEN c.follows_cluster THEN 'is the cluster''s: change its object there' ELSE '' END,
            jsonb_build_object('mac', c.mac::text, 'ips', c.ips_requested, 'vm', c.vm,
                'namespace', c.namespace, 'note', c.note),
            concat_ws('; ',
                CASE WHEN NOT s.same_mac THEN 'MAC ' || COALESCE(c.mac::text, 'none') || ' becomes '
                    || j.mac::text END,
                CASE WHEN NOT s.same_ips THEN 'requested addresses '
                    || COALESCE(NULLIF(array_to_string(c.ips_requested, ', '), ''), 'none')
                    || ' become ' || array_to_string(j.ips, ', ') END,
                CASE WHEN j.note NOT IN ('', c.note) THEN 'note' END)
        FROM j JOIN claims_ipamclaim c ON c.namespace = j.namespace AND c.name = j.claim_name,
            LATERAL (SELECT j.mac IS NULL OR j.mac IS NOT DISTINCT FROM c.mac AS same_mac,
                j.ips = '{{}}' OR claims_hosts(j.ips) = claims_hosts(
                    CASE WHEN c.ips = '{{}}' THEN c.ips_requested ELSE c.ips END) AS same_ips) d,
            LATERAL (SELECT d.*, d.same_mac AND d.same_ips AND c.network_id = j.network_id
                AND j.note IN ('', c.note) AND c.gone_at IS NULL AND c.deleted_at IS NULL AS same) s
        WHERE %(claims)s AND c.cluster_id = %(cluster)s),
    known AS MATERIALIZED (
        SELECT DISTINCT ON (number) * FROM matches ORDER BY number, same DESC, entry_id, claim_id),
"""  # noqa: S608  # no value is formatted in

# The row as a place of the register would be: what is not the same already.
_CANDIDATES = """
    p AS MATERIALIZED (
        SELECT j.number, 0::bigint AS id, j.network_id, j.mac, j.namespace, j.vm, j.ips,
            CASE WHEN NOT %(claims)s THEN COALESCE(k.entry_id, 0) END AS entry_id,
            CASE WHEN %(claims)s THEN COALESCE(k.claim_id, 0) END AS claim_id,
            NULL::bigint AS workload_id
        FROM j LEFT JOIN known k ON k.number = j.number WHERE k.same IS NOT TRUE),
    a AS MATERIALIZED (
        SELECT number, id, network_id, mac, namespace, vm, entry_id, claim_id, workload_id,
            split_part(unnest(ips), '/', 1)::inet AS address
        FROM p),
"""

_HITS = f"""
    hits AS MATERIALIZED (
        SELECT p.number, 'duplicate_mac' AS code, p.mac::text AS value, min(q.id) AS place
        FROM p JOIN claims_place q ON q.network_id = p.network_id AND q.mac = p.mac
        WHERE q.network_id = ANY(%(networks)s::bigint[]) AND {SAME_MAC_CONTRADICTS}
        GROUP BY p.number, p.mac
      UNION ALL
        SELECT p.number, 'duplicate_ip', host(p.address), min(q.id)
        FROM a AS p JOIN claims_place q ON q.network_id = p.network_id AND q.address = p.address
        WHERE q.network_id = ANY(%(networks)s::bigint[]) AND {SAME_ADDRESS_CONTRADICTS}
            AND (p.entry_id IS NULL OR q.entry_id IS DISTINCT FROM p.entry_id)
        GROUP BY p.number, p.address),
    own AS MATERIALIZED (
        SELECT * FROM unnest(%(own_networks)s::bigint[], %(own_firsts)s::text[]::inet[],
                %(own_lasts)s::text[]::inet[], %(own_types)s::text[], %(own_names)s::text[],
                %(own_bad)s::boolean[]) AS o(network_id, first, last, type, name, bad)),
    against AS (
        SELECT h.number, true AS bad, h.code, CASE WHEN {_SEEN.format("q")} THEN
            h.value || ' is that of ' || CASE
                WHEN q.entry_id IS NOT NULL THEN 'the entry ' || q.mac::text
                WHEN q.claim_id IS NOT NULL THEN 'the IPAMClaim ' || c.namespace || '/' || c.name
                ELSE CASE w.kind WHEN 'pod' THEN 'the running pod ' ELSE 'the running VM ' END
                    || w.namespace || '/' || w.name END
            || CASE WHEN q.vm <> '' AND q.entry_id IS NOT NULL
                    THEN ' (VM ' || concat_ws('/', NULLIF(q.namespace, ''), q.vm) || ')' ELSE '' END
            || '.' ELSE h.value || ' is in use already.' END AS message
        FROM hits h JOIN claims_place q ON q.id = h.place
        LEFT JOIN claims_ipamclaim c ON c.id = q.claim_id
        LEFT JOIN claims_workload w ON w.id = q.workload_id
      UNION ALL
        SELECT a.number, o.bad, o.type, CASE o.type
            WHEN 'gateway' THEN host(a.address) || ' is the gateway of the network.'
            WHEN 'infrastructure' THEN
                host(a.address) || ' is in the infrastructure subnet ' || o.name || '.'
            WHEN 'reserved_subnet' THEN host(a.address) || ' is in the reserved subnet ' || o.name
                || ', for those who ask for an address of it.'
            ELSE host(a.address) || ' is in a reserved range'
                || CASE WHEN %(everything)s THEN ' (' || o.name || ').' ELSE '.' END END
        FROM a JOIN own o ON o.network_id = a.network_id AND a.address BETWEEN o.first AND o.last
      UNION ALL
        SELECT p.number, true, 'gateway_mac',
            p.mac::text || ' is the MAC address of the network''s gateway ' || o.gateway || '.'
        FROM p JOIN unnest(%(own_mac_networks)s::bigint[], %(own_macs)s::text[]::macaddr[],
            %(own_mac_gateways)s::text[]) AS o(network_id, mac, gateway)
            ON o.network_id = p.network_id AND o.mac = p.mac
      UNION ALL
        SELECT a.number, true, 'already_allocated', CASE WHEN %(everything)s THEN
            host(a.address) || ' is held by ' || b.holder_kind || ' ' || b.holder_id || '.'
            ELSE host(a.address) || ' is in use already.' END
        FROM a JOIN claims_network n ON n.id = a.network_id
        JOIN pools_pool o ON o.id = n.pool_id
        JOIN pools_block b ON b.space_id = o.space_id AND b.cidr = a.address::cidr
        WHERE b.space_id = ANY(%(spaces)s::bigint[]) AND b.state = 'held'
            AND b.holder_kind NOT IN ('vm', 'mac', 'pod')
      UNION ALL
        SELECT j.number, false, 'no_nad', 'The namespace ' || j.namespace || ' has no network'
            || ' attachment definition of ' || n.name || ': the network does not serve it.'
        FROM j JOIN claims_network n ON n.id = j.network_id
        WHERE j.namespace <> ''
            AND EXISTS (SELECT FROM claims_nad d WHERE d.network_id = n.id)
            AND NOT EXISTS (SELECT FROM claims_nad d
                WHERE d.network_id = n.id AND d.namespace = j.namespace)
      UNION ALL
        SELECT number, true, 'claim_fixed', 'The IPAMClaim ' || fixed || '.'
        FROM known WHERE fixed <> ''
      UNION ALL
        SELECT number, false, 'differs', 'The register says something else: ' || differs || '.'
        FROM known WHERE NOT same AND fixed = ''),
"""  # noqa: S608

# Rows against each other: also those that nobody asks about now.
_INSIDE = """
    twice AS MATERIALIZED (
        SELECT network_id, mac, min(number) AS first, array_agg(line ORDER BY number) AS lines,
            count(DISTINCT said) AS said
        FROM r WHERE mac IS NOT NULL GROUP BY network_id, mac HAVING count(*) > 1),
    named_twice AS MATERIALIZED (
        SELECT namespace, claim_name, min(number) AS first,
            array_agg(line ORDER BY number) AS lines, count(DISTINCT said) AS said
        FROM r WHERE claim_name <> '' GROUP BY namespace, claim_name HAVING count(*) > 1),
    addressed_twice AS MATERIALIZED (
        SELECT network_id, address, array_agg(DISTINCT line) AS lines
        FROM (SELECT network_id, mac, namespace, vm, line,
                split_part(unnest(ips), '/', 1)::inet AS address FROM r) x
        GROUP BY network_id, address
        HAVING count(*) > 1 AND count(DISTINCT COALESCE(mac::text, namespace || '/' || vm)) > 1),
    called_twice AS MATERIALIZED (
        SELECT namespace, vm, array_agg(DISTINCT source_vm) AS sources
        FROM r WHERE vm <> '' GROUP BY namespace, vm HAVING count(DISTINCT source_vm) > 1),
    inside AS (
        SELECT j.number, t.said > 1 AS bad,
            CASE WHEN t.said > 1 THEN 'mac_twice_in_file' ELSE 'repeated_row' END AS code,
            CASE WHEN t.said > 1 THEN 'The MAC address stands in rows '
                    || array_to_string(t.lines[1:10], ', ') || ', with other values.'
                ELSE 'Row ' || t.lines[1] || ' says the same.' END AS message
        FROM j JOIN twice t ON t.network_id = j.network_id AND t.mac = j.mac
        WHERE t.said > 1 OR j.number <> t.first
      UNION ALL
        SELECT j.number, t.said > 1,
            CASE WHEN t.said > 1 THEN 'claim_twice_in_file' ELSE 'repeated_row' END,
            CASE WHEN t.said > 1 THEN 'The IPAMClaim ' || t.claim_name || ' stands for rows '
                    || array_to_string(t.lines[1:10], ', ') || '.'
                ELSE 'Row ' || t.lines[1] || ' says the same.' END
        FROM j JOIN named_twice t ON t.namespace = j.namespace AND t.claim_name = j.claim_name
        WHERE t.said > 1 OR j.number <> t.first
      UNION ALL
        SELECT DISTINCT a.number, true, 'ip_twice_in_file',
            host(a.address) || ' stands in rows ' || array_to_string(t.lines[1:10], ', ') || '.'
        FROM a JOIN addressed_twice t ON t.network_id = a.network_id AND t.address = a.address
      UNION ALL
        SELECT j.number, true, 'vm_name_collision', 'Several VMs would be called ' || j.vm || ': '
            || array_to_string(t.sources[1:10], ', ') || '.'
        FROM j JOIN called_twice t ON t.namespace = j.namespace AND t.vm = j.vm),
"""

_JUDGE = f"""
    WITH r AS MATERIALIZED (
        SELECT number, "row" AS line, network_id, mac, vm, namespace, ips, claim_name, source_vm,
            note, problems <> '[]' AND EXISTS (SELECT FROM jsonb_array_elements(problems) x
                WHERE x ->> 'code' = ANY(%(declined)s::text[])) AS declined, concat_ws(chr(31), network_id, mac, ips, namespace, vm) AS said
        FROM claims_importrow WHERE vm_import_id = %(import)s AND usable AND NOT skipped),
    j AS MATERIALIZED (
        SELECT * FROM r WHERE %(every)s OR number = ANY(%(numbers)s::int[])),
    {_KNOWN} {_CANDIDATES} {_HITS} {_INSIDE}
    told AS MATERIALIZED (
        SELECT number, bool_or(bad) AS bad, bool_or(code = 'repeated_row') AS repeated,
            jsonb_agg(DISTINCT jsonb_build_object('code', code, 'message', message)) AS reasons
        FROM (SELECT * FROM against
              UNION ALL
              SELECT i.* FROM inside i LEFT JOIN known k ON k.number = i.number
              WHERE k.same IS NOT TRUE) x
        GROUP BY number),
    judged AS MATERIALIZED (
        SELECT j.number, k.entry_id, k.claim_id,
            CASE WHEN k.same IS NOT TRUE THEN k.before END AS before,
            CASE WHEN k.same THEN 'unchanged' WHEN j.declined THEN 'refused' WHEN t.bad THEN 'conflict'
                WHEN t.repeated THEN 'unchanged' WHEN k.number IS NULL THEN 'new'
                WHEN %(everything)s THEN 'changed' ELSE 'refused' END AS verdict,
            CASE WHEN k.same OR k.number IS NULL OR %(everything)s THEN '[]'::jsonb
                ELSE '[{{"code": "permission_denied", "message":
                    "It is registered with other values, which only an operator changes."}}]' END
            || COALESCE(t.reasons, '[]')
            AS reasons
        FROM j LEFT JOIN known k ON k.number = j.number LEFT JOIN told t ON t.number = j.number)
    UPDATE claims_importrow w SET verdict = judged.verdict, reasons = judged.reasons || w.problems,
        entry_id = judged.entry_id, claim_id = judged.claim_id, before = judged.before
    FROM judged
    WHERE w.vm_import_id = %(import)s AND w.number = judged.number
        AND (w.verdict, w.reasons, w.entry_id, w.claim_id, w.before) IS DISTINCT FROM
            (judged.verdict, judged.reasons || w.problems, judged.entry_id, judged.claim_id,
             judged.before)
    RETURNING w.number
"""  # noqa: S608
