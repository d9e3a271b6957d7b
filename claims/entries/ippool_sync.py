"""Upserts IPPools from the objects of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from claims.address_index import index
from claims.core import entries as core
from claims.core import ippool, macs
from claims.entries import entries, ippools
from claims.models import Entry, IPPool
from claims.networks import networks
from pools.core import errors
from pools.models import Cluster
from pools.platform import events


def upsert_ippool(
    cluster: Cluster,
    ippool_spec: ippool.ParsedIPPool,
    *,
    uid: str,
    register_decides: bool,
    author: events.Author,
) -> IPPool:
    """Store the contents of an object; if `register_decides`, store only the object's identity.

    Entries that are equal in the object keep fields that an object does not have (their VM). Raises
    AlreadyExists if the network has another IPPool.
    """
    ippool_row = _find(cluster, ippool_spec)
    if register_decides and ippool_row is not None:
        # Problems of the object's entries do not apply to the register's entries.
        return _update_values(
            ippool_row, {"uid": uid, "gone_at": None, "problems": []}, author=author
        )
    if ippool_row is None:
        ippool_row = ippools.create(
            cluster, ippool_spec.name, ippool_spec.network_name, author=author
        )
    elif ippool_row.network.name != ippool_spec.network_name:
        _move(ippool_row, ippool_spec.network_name)
    difference, problems = compare(ippool_row, ippool_spec)
    values = {
        "uid": uid,
        "gone_at": None,
        "problems": problems,
        "name": ippool_spec.name,
        "follows_cluster": True,
    }
    if difference:
        entries.apply_diff(ippool_row, difference, values, author=author)
        return IPPool.objects.select_related("network").get(pk=ippool_row.pk)
    return _update_values(ippool_row, values, author=author)


def _find(cluster: Cluster, ippool_spec: ippool.ParsedIPPool) -> IPPool | None:
    """Find an IPPool by name, else the network's IPPool if it has no object in the cluster."""
    rows = IPPool.objects.select_related("network").filter(cluster=cluster)
    ippool_row = rows.filter(name=ippool_spec.name).first()
    if ippool_row is None:
        ippool_row = rows.filter(
            network__name=ippool_spec.network_name, follows_cluster=True, uid=""
        ).first()
    return ippool_row


def _update_values(ippool_row: IPPool, values: dict[str, Any], *, author: events.Author) -> IPPool:
    if all(getattr(ippool_row, name) == value for name, value in values.items()):
        return ippool_row
    with events.recorded_by(author):
        IPPool.objects.filter(pk=ippool_row.pk).update(**values)
        for name, value in values.items():
            setattr(ippool_row, name, value)
        ippools.update_conditions(ippool_row)
    return ippool_row


def _move(ippool_row: IPPool, network_name: str) -> None:
    """Move an IPPool to another network, and index its entries there."""
    network = networks.get_or_create(ippool_row.cluster_id, network_name)
    ippools.require_no_ippool(network, except_id=ippool_row.pk)
    rows = list(Entry.objects.filter(ippool=ippool_row))
    index.remove(entries=[row.pk for row in rows])
    ippool_row.network = network
    ippool_row.save(update_fields=["network"])
    index.write(entries=rows)


def compare(
    ippool_row: IPPool, ippool_spec: ippool.ParsedIPPool
) -> tuple[entries.EntryDiff, list[dict[str, Any]]]:
    """Return the diff from the register's entries to the object's, and the object's invalid entries.

    Only entries that differ are parsed. The object maps a MAC to all its addresses, so several entries
    of one MAC equal a key with all their addresses.
    """
    present: dict[str, list[entries.EntryRow]] = {}
    for row in entries.entry_rows(ippool_row):
        present.setdefault(row.mac, []).append(row)
    repeated = set(ippool.repeated_macs(ippool_spec.entries))
    unique = {mac: rows for mac, rows in present.items() if mac not in repeated}
    same = {key for key, value in ippool_spec.entries if _equals(unique.get(key, ()), value)}
    different = [(key, value) for key, value in ippool_spec.entries if key not in same]
    specs, problems = ippool.parse_entries(
        different, ippools.rules(ippool_row.network, observed=True)
    )
    # The object may spell an equal entry differently.
    same |= {spec.mac for spec in specs if _equals(unique.get(spec.mac, ()), list(spec.ips))}
    desired_specs = [spec for spec in specs if spec.mac not in same]
    rest = [row for mac, rows in present.items() if mac not in same for row in rows]
    return entries.difference(rest, desired_specs), ippools.limit_problems(problems)


def _equals(rows: Sequence[entries.EntryRow], value: object) -> bool:
    if not isinstance(value, list) or not all(isinstance(ip, str) for ip in value):
        return False
    registered_ips = {ip for row in rows for ip in row.ips}
    return registered_ips == set(value) and len(value) == len(registered_ips)


def keys_by_mac(object_entries: Mapping[str, object]) -> dict[str, str]:
    """Return the object's key of each MAC address; the canonical spelling if it has several."""
    keys: dict[str, str] = {}
    for key in object_entries:
        try:
            mac = macs.parse_mac(key)
        except errors.InvalidInput:
            continue
        if key == mac or mac not in keys:
            keys[mac] = key
    return keys


def same_ips(value: object, ips: Sequence[str]) -> bool:
    """Return True if an object's addresses equal `ips`, in any spelling and order."""
    try:
        return sorted(core.parse_ips(value, core.Rules())) == sorted(ips)
    except errors.InvalidInput:
        return False
