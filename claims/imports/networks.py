"""The network of an import that names none: the only one whose subnets hold all of its addresses."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from itertools import islice
from typing import Any

from claims.access import namespaces
from claims.imports.uploads import Upload
from claims.models import NAD, Network
from claims.networks import networks
from pools.core import addresses

MOST_ROWS_READ = 2_000  # rows; those behind them are judged in the draft
CHOSEN_CODE = "network_by_addresses"


def find_by_addresses(upload: Upload, user: Any) -> Network | None:
    """Of those that the user sees and that can hold static VMs; None when not just one has room.

    Raises InvalidInput for what cannot be read.
    """
    scope = namespaces.scope(user)
    nads = namespaces.visible(NAD.objects.all(), scope)
    rows = namespaces.visible(Network.objects.filter(networks.fitting_query(nads)), scope)
    subnets_by_network = {row: [ip_network(text) for text in row.subnets] for row in rows}
    has_addresses = False
    for address in _addresses(upload):
        has_addresses = True
        subnets_by_network = {
            row: subnets
            for row, subnets in subnets_by_network.items()
            if any(address.version == subnet.version and address in subnet for subnet in subnets)
        }
        if not subnets_by_network:
            return None
    return (
        next(iter(subnets_by_network)) if has_addresses and len(subnets_by_network) == 1 else None
    )


def _addresses(upload: Upload) -> Iterator[addresses.Address]:
    """Those that can be read."""
    unique_addresses: dict[addresses.Address, None] = {}
    for row in islice(upload.open().rows(), MOST_ROWS_READ):
        for text in row.ips:
            try:
                unique_addresses[ip_address(text.partition("/")[0])] = None
            except ValueError:
                continue
    yield from unique_addresses


def network_note(network: Network) -> dict[str, str]:
    """What the draft says of it."""
    message = (
        f"no network was chosen: {network.name} is the only one that can hold static VMs and has all of"
        " these addresses in its subnets"
    )
    return {"code": CHOSEN_CODE, "message": message}
