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
    cluster: Cluster, said: ippool.Written, *, uid: str, decides: bool, author: events.Author
) -> IPPool:
    """Bring the register to what an object says; only the object's identity where it `decides`.

    Entries that say the same stay as they are, with what an object cannot say (their VM). Raises
    AlreadyExists when the network has another IPPool.
    """
    found = _find(cluster, said)
    if decides and found is not None:
        # What of the object cannot be used is not the register's.
        return _known(found, {"uid": uid, "gone_at": None, "problems": []}, author=author)
    if found is None:
        found = ippools.create(cluster, said.name, said.network_name, author=author)
    elif found.network.name != said.network_name:
        _move(found, said.network_name)
    difference, problems = compare(found, said)
    values = {
        "uid": uid,
        "gone_at": None,
        "problems": problems,
        "name": said.name,
        "follows_cluster": True,
    }
    if difference:
        entries.bring(found, difference, values, author=author)
        return IPPool.objects.select_related("network").get(pk=found.pk)
    return _known(found, values, author=author)


def _find(cluster: Cluster, said: ippool.Written) -> IPPool | None:
    """By name; or the one of the network whose own object is gone, or was never there."""
    rows = IPPool.objects.select_related("network").filter(cluster=cluster)
    found = rows.filter(name=said.name).first()
    if found is None:
        found = rows.filter(network__name=said.network_name, follows_cluster=True, uid="").first()
    return found


def _known(found: IPPool, values: dict[str, Any], *, author: events.Author) -> IPPool:
    if all(getattr(found, name) == value for name, value in values.items()):
        return found
    with events.recorded(author):
        IPPool.objects.filter(pk=found.pk).update(**values)
        for name, value in values.items():
            setattr(found, name, value)
        ippools.keep_conditions(found)
    return found


def _move(found: IPPool, network_name: str) -> None:
    """To another network: its entries name addresses of that one now."""
    network = names.network(found.cluster_id, network_name)
    ippools.refuse_second(network, but=found.pk)
    rows = list(Entry.objects.filter(ippool=found))
    index.remove(entries=[row.pk for row in rows])
    found.network = network
    found.save(update_fields=["network"])
    index.write(entries=rows)


def compare(found: IPPool, said: ippool.Written) -> tuple[entries.Difference, list[dict[str, str]]]:
    """What brings its entries to what an object says, and what of the object cannot be used.

    Only what differs is parsed. A map has the addresses of one MAC together, so that entries of one
    MAC say the same as a key with all their addresses.
    """
    present: dict[str, list[entries.Known]] = {}
    for row in entries.known(found):
        present.setdefault(row.mac, []).append(row)
    repeated = set(ippool.repeated(said.entries))
    certain = {mac: rows for mac, rows in present.items() if mac not in repeated}
    same = {key for key, value in said.entries if _says(certain.get(key, ()), value)}
    other = [(key, value) for key, value in said.entries if key not in same]
    specs, problems = ippool.usable(other, ippools.rules(found.network))
    # The same may be there in another spelling.
    same |= {spec.mac for spec in specs if _says(certain.get(spec.mac, ()), list(spec.ips))}
    wanted = [spec for spec in specs if spec.mac not in same]
    rest = [row for mac, rows in present.items() if mac not in same for row in rows]
    return entries.difference(rest, wanted), ippools.problems_of(problems)


def _says(rows: Sequence[entries.Known], value: object) -> bool:
    if not isinstance(value, list) or not all(isinstance(ip, str) for ip in value):
        return False
    there = {ip for row in rows for ip in row.ips}
    return there == set(value) and len(value) == len(there)


def keys_of(written: Mapping[str, object]) -> dict[str, str]:
    """How an object spells its MAC addresses, by the MAC; our own spelling where it has it, too."""
    found: dict[str, str] = {}
    for key in written:
        try:
            mac = macs.parse_mac(key)
        except errors.InvalidInput:
            continue
        if key == mac or mac not in found:
            found[mac] = key
    return found


def same_ips(value: object, ips: Sequence[str]) -> bool:
    """Whether an object's addresses are these, however it spells them."""
    try:
        return sorted(core.parse_ips(value, core.Rules())) == sorted(ips)
    except errors.InvalidInput:
        return False
