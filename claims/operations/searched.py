"""What a search looks for in the tables of VM networks (`pools.platform.search`)."""

import contextlib
from collections.abc import Iterator
from typing import Any

from django.db.models import Model, Q

from claims import models
from claims.core import macs
from claims.operations import history
from pools.core import errors
from pools.platform import search
from pools.platform.search import Searched, SearchText, Spelling

_KEYS = {"network_id": models.Network}

# In the order in which Find and the palette show them.
COLUMNS: dict[type[Model], Searched] = {
    models.Network: Searched(
        ("cluster__name", "name", "namespace", "object_name", "kind", "topology", "description"),
        arrays=("subnets", "default_gateways"),
    ),
    models.IPPool: Searched(("cluster__name", "name", "note"), keys=_KEYS),
    models.Entry: Searched(
        ("namespace", "vm", "mac", "note"),
        arrays=("ips",),
        keys={"ippool_id": models.IPPool, "ippool__network_id": models.Network},
    ),
    models.IPAMClaim: Searched(
        ("namespace", "name", "vm", "mac", "owner_pod", "note"),
        arrays=("ips", "ips_requested"),
        keys=_KEYS,
    ),
    models.Workload: Searched(
        ("namespace", "name", "mac", "node", "pods"), arrays=("ips",), keys=_KEYS
    ),
    models.NAD: Searched(("namespace", "name")),
    models.Wave: Searched(("cluster__name", "name", "note"), parts={models.WaveVM: "wave_id"}),
    models.WaveVM: Searched(("namespace", "vm", "source_vm")),
    models.Decision: Searched(
        ("cluster__name", "namespace", "name", "vm", "network", "code", "message")
    ),
    models.Membership: Searched(
        ("cluster__name", "user__username", "group__name", "namespaces", "role")
    ),
    models.ClusterOwner: Searched(
        ("connection__cluster__name", "subject", "namespace", "role", "binding")
    ),
    models.VMRow: Searched(
        json=(
            *("texts__namespace", "texts__vm", "texts__mac", "texts__port_group", "texts__note"),
            *("texts__ips", "values__namespace", "values__vm", "values__mac"),
        ),
        json_cidrs=("values__ips",),
    ),
}


def read_mac(text: str) -> Spelling | None:
    """Return how the register spells a MAC address or a part of one, in any notation; None for another text."""
    try:
        return Spelling((macs.parse_mac(text, lenient=True),))
    except errors.InvalidInput as error:
        if error.code != "mac_syntax":
            return Spelling(hint=error.message)
    spellings = macs.spellings_of_part(text)
    return Spelling(tuple(spellings)) if spellings else None


def search_events(searched: SearchText) -> Iterator[int]:
    """Yield the ids of the newest events of a MAC, an address, a VM (`namespace/name` or `name`) or a claim."""
    query = history.vm_query(searched.text)
    with contextlib.suppress(errors.InvalidInput):
        query |= Q(mac=macs.parse_mac(searched.text, lenient=True))
    if searched.network is not None:
        ips = history.address_strings(searched.network)
        query |= Q(ips__overlap=ips) if ips else Q()
    for model, extra_query in (
        (models.EntryEvent, Q()),
        (models.IPAMClaimEvent, Q(name=searched.text)),
    ):
        rows: Any = model.objects.filter(query | extra_query).order_by("-pgh_id")
        yield from rows.values_list("pgh_id", flat=True)[: search.MOST]
