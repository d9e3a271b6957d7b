"""Readers of IPPool and IPAMClaim manifests; each entry and each claim is a row.

Repeated keys arrive as pools.core.object_reader.Repeated (pools.platform.documents); each occurrence is
a row with the problem `duplicate_key`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from claims.core import ippool
from claims.core.ipamclaims import ipamclaim
from claims.core.vm_import import cells, vm_interface
from claims.core.vm_import.vm_interface import VMInterface, problem
from pools.core import errors
from pools.core.errors import FieldProblem
from pools.core.object_reader import RepeatedKey

Json = Mapping[str, Any]


def kind_of(manifest: object) -> str:
    """Return IPPool or IPAMClaim, or "" for another object."""
    kind = manifest.get("kind") if isinstance(manifest, Mapping) else None
    return kind if isinstance(kind, str) and kind in (ippool.KIND, ipamclaim.KIND) else ""


def objects(documents: Sequence[object]) -> list[object]:
    """Return the documents, with lists (`kubectl get -o yaml`) replaced by their items."""
    listed: list[object] = []
    for document in documents:
        items = document.get("items") if isinstance(document, Mapping) else None
        listed += items if isinstance(items, list) else [document]
    return listed


def rows(manifests: Sequence[object]) -> Iterator[VMInterface]:
    """Yield the entries and claims; `row` counts from 1 over all objects.

    Any other object is a refused row, so that no object of a file is silently ignored.
    """
    number = 1
    for manifest in manifests:
        for interface in _rows(number, manifest):
            yield interface
            number = interface.row + 1


def _rows(number: int, manifest: object) -> Iterator[VMInterface]:
    kind = kind_of(manifest)
    if not isinstance(manifest, Mapping) or not kind:
        message = f"an {ippool.KIND} or an {ipamclaim.KIND} is expected"
        actual_kind = manifest.get("kind", "") if isinstance(manifest, Mapping) else ""
        wrong = problem("kind", "unsupported_kind", message, actual_kind)
        yield VMInterface(number, "", "", (), problems=(wrong,), refused=True)
        return
    try:
        if kind == ippool.KIND:
            yield from _entries(number, manifest)
        else:
            yield _claim(number, ipamclaim.parse(manifest))
    except errors.InvalidInput as error:
        yield VMInterface(number, "", "", (), problems=error.problems, refused=True)


def _entries(number: int, manifest: Json) -> Iterator[VMInterface]:
    pool = ippool.parse(manifest)
    counted: dict[str, int] = {}
    for key, _ in pool.entries:
        counted[key] = counted.get(key, 0) + 1
    for offset, (key, value) in enumerate(pool.entries):
        problems: tuple[FieldProblem, ...] = ()
        if counted[key] > 1:
            message = f"the object has this key {counted[key]} times"
            problems = (problem("mac", "duplicate_key", message, key),)
        yield _entry(number + offset, key, value, pool.network_name, problems)


def _entry(
    row: int, mac: str, value: object, network: str, problems: tuple[FieldProblem, ...]
) -> VMInterface:
    listed_ips = value if isinstance(value, list) and not isinstance(value, RepeatedKey) else None
    if listed_ips is None or not all(isinstance(ip, str) for ip in listed_ips):
        message = 'a list of addresses is expected, such as ["10.0.0.5/24"]'
        problems = (*problems, *cells.parse_mac(mac), problem("ips", "wrong_type", message, value))
        return VMInterface(row, "", mac, (), network, problems=problems, refused=True)
    ips = cells.parse_addresses(*listed_ips, aside=False)
    return cells.read_interface(row, "", mac, ips, remarks=problems, port_group=network)


def _claim(row: int, claim: ipamclaim.Claim) -> VMInterface:
    """Return the row of a claim, with the requested or else the granted addresses; the MAC is optional."""
    ips = claim.ips_requested or claim.ips
    problems = claim.problems
    if not ips:
        problems = (*problems, vm_interface.NO_ADDRESS)
    return VMInterface(
        row,
        claim.vm,
        claim.mac or "",
        ips,
        claim.network,
        claim.namespace,
        note=f"IPAMClaim {claim.name}",
        problems=problems,
        refused=bool(claim.problems),
    )
