"""IPPools as a cluster has them: taken in, and followed where their object is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from claims.address_index import index
from claims.core import entries as core
from claims.core import ippool, macs
from claims.entries import entries, ippools
from claims.models import Entry, IPPool
from claims.networks import names
from pools.core import errors
from pools.models import Cluster
from pools.platform import events


def take_in(
    cluster: Cluster,
    ippool_spec: ippool.ParsedIPPool,
    *,
    uid: str,
    decides: bool,
    author: events.Author,
) -> IPPool:
    """Bring the register to what an object says; only the object's identity where it `decides`.

    Entries that say the same stay as they are, with what an object cannot say (their VM). Raises
    AlreadyExists when the network has another IPPool.
    """
    ippool_row = _find(cluster, ippool_spec)
    if decides and ippool_row is not None:
        # What of the object cannot be used is not the register's.
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
    """By name; or the one of the network whose own object is gone, or was never there."""
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
    with events.recorded(author):
        IPPool.objects.filter(pk=ippool_row.pk).update(**values)
        for name, value in values.items():
            setattr(ippool_row, name, value)
        ippools.keep_conditions(ippool_row)
    return ippool_row


def _move(ippool_row: IPPool, network_name: str) -> None:
    """To another network: its entries name addresses of that one now."""
    network = names.network(ippool_row.cluster_id, network_name)
    ippools.refuse_second(network, but=ippool_row.pk)
    rows = list(Entry.objects.filter(ippool=ippool_row))
    index.remove(entries=[row.pk for row in rows])
    ippool_row.network = network
    ippool_row.save(update_fields=["network"])
    index.write(entries=rows)


def compare(
    ippool_row: IPPool, ippool_spec: ippool.ParsedIPPool
) -> tuple[entries.EntryDiff, list[dict[str, str]]]:
    """What brings its entries to what an object says, and what of the object cannot be used.

    Only what differs is parsed. A map has the addresses of one MAC together, so that entries of one
    MAC say the same as a key with all their addresses.
    """
    present: dict[str, list[entries.EntryRow]] = {}
    for row in entries.entry_rows(ippool_row):
        present.setdefault(row.mac, []).append(row)
    repeated = set(ippool.repeated_macs(ippool_spec.entries))
    certain = {mac: rows for mac, rows in present.items() if mac not in repeated}
    same = {key for key, value in ippool_spec.entries if _says(certain.get(key, ()), value)}
    other = [(key, value) for key, value in ippool_spec.entries if key not in same]
    specs, problems = ippool.parse_entries(other, ippools.rules(ippool_row.network))
    # The same may be there in another spelling.
    same |= {spec.mac for spec in specs if _says(certain.get(spec.mac, ()), list(spec.ips))}
    desired_specs = [spec for spec in specs if spec.mac not in same]
    rest = [row for mac, rows in present.items() if mac not in same for row in rows]
    return entries.difference(rest, desired_specs), ippools.problems_of(problems)


def _says(rows: Sequence[entries.EntryRow], value: object) -> bool:
    if not isinstance(value, list) or not all(isinstance(ip, str) for ip in value):
        return False
    there = {ip for row in rows for ip in row.ips}
    return there == set(value) and len(value) == len(there)


def keys_of(written: Mapping[str, object]) -> dict[str, str]:
    """How an object spells its MAC addresses, by the MAC; our own spelling where it has it, too."""
    keys_by_mac: dict[str, str] = {}
    for key in written:
        try:
            mac = macs.parse_mac(key)
        except errors.InvalidInput:
            continue
        if key == mac or mac not in keys_by_mac:
            keys_by_mac[mac] = key
    return keys_by_mac


def same_ips(value: object, ips: Sequence[str]) -> bool:
    """Whether an object's addresses are these, however it spells them."""
    try:
        return sorted(core.parse_ips(value, core.Rules())) == sorted(ips)
    except errors.InvalidInput:
        return False
