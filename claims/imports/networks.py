"""Choice of the network for an import without one: the only network whose subnets contain all addresses."""

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

MOST_ROWS_READ = 2_000  # later rows are validated in the draft
CHOSEN_CODE = "network_by_addresses"


def find_by_addresses(upload: Upload, user: Any) -> Network | None:
    """Return the only network whose subnets contain all addresses of the upload, else None.

    Candidates are the networks in the user's scope that can hold static VMs. Raises InvalidInput for an
    unreadable upload.
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
    """Yield the valid addresses of the first rows."""
    unique_addresses: dict[addresses.Address, None] = {}
    for row in islice(upload.open().rows(), MOST_ROWS_READ):
        for text in row.ips:
            try:
                unique_addresses[ip_address(text.partition("/")[0])] = None
            except ValueError:
                continue
    yield from unique_addresses


def network_note(network: Network) -> dict[str, str]:
    """Return the note of the draft about the chosen network."""
    message = (
        f"no network was specified: {network.name} was chosen, the only network for static VMs whose"
        " subnets contain all of these addresses"
    )
    return {"code": CHOSEN_CODE, "message": message}
