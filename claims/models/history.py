"""Event tables of VM networks, written by triggers.

They are built like those of pools/models/history.py and share their sequence of event numbers.
"""

from collections.abc import Sequence
from typing import Any

import pghistory
from django.contrib.postgres.indexes import GinIndex
from django.db import models

from claims.models.cluster_owners import Membership
from claims.models.imports import Wave
from claims.models.networks import Entry, IPPool, Network, NetworkSettings
from claims.models.workloads import IPAMClaim
from pools.models.attributes import ATTRIBUTES
from pools.models.history import create_event_model, search_indexes


def _whole_life(
    model: type[models.Model], fields: list[str], indexes: Sequence[models.Index] = ()
) -> Any:
    # Triggers run once for each statement, because an IPPool may have a hundred thousand entries.
    return create_event_model(
        model,
        pghistory.InsertEvent("created", level=pghistory.Statement),
        pghistory.UpdateEvent("changed", level=pghistory.Statement),
        pghistory.DeleteEvent("deleted", level=pghistory.Statement),
        fields=fields,
        indexes=indexes,
    )


NetworkEvent = _whole_life(
    Network,
    [
        "cluster", "name", "kind", "topology", "role", "lifecycle", "subnets", "default_gateways",
        "reserved_subnets", "infrastructure_subnets", "namespace_selector", "description", "applied",
        "gone_at", *ATTRIBUTES,
    ],
)  # fmt: skip

IPPoolEvent = _whole_life(
    IPPool,
    ["cluster", "network", "name", "note", "gone_at"],
    indexes=[models.Index(fields=["pgh_obj", "pgh_id"], name="ippool_event_object")],
)

EntryEvent = _whole_life(
    Entry,
    ["ippool", "mac", "ips", "vm", "namespace", "source", "note"],
    indexes=[
        models.Index(fields=["pgh_obj", "pgh_id"], name="entry_event_object"),
        models.Index(fields=["mac", "pgh_id"], name="entry_event_mac"),
        models.Index(fields=["namespace", "vm", "pgh_id"], name="entry_event_vm"),
        models.Index(fields=["vm", "pgh_id"], name="entry_event_vm_name"),
        GinIndex(fields=["ips"], name="entry_event_ips"),
        *search_indexes("entry_event"),
    ],
)

IPAMClaimEvent = _whole_life(
    IPAMClaim,
    [
        "cluster", "network", "namespace", "name", "mac", "ips_requested", "vm", "vm_uid", "ips",
        "owner_pod", "deleted_at", "gone_at", "note",
    ],
    indexes=[
        models.Index(fields=["pgh_obj", "pgh_id"], name="ipamclaim_event_object"),
        models.Index(fields=["namespace", "vm", "pgh_id"], name="ipamclaim_event_vm"),
        models.Index(fields=["vm", "pgh_id"], name="ipamclaim_event_vm_name"),
        models.Index(fields=["mac", "pgh_id"], name="ipamclaim_event_mac"),
        models.Index(fields=["name", "pgh_id"], name="ipamclaim_event_name"),
        GinIndex(fields=["ips"], name="ipamclaim_event_ips"),
        *search_indexes("ipamclaim_event", "vm_uid"),
    ],
)  # fmt: skip

MembershipEvent = _whole_life(Membership, ["user", "group", "cluster", "namespaces", "role"])

NetworkSettingsEvent = _whole_life(
    NetworkSettings, ["cluster", "annotation", "default_nad_namespace", "default_nad_name"]
)

WaveEvent = _whole_life(Wave, ["cluster", "name", "planned_at", "note"])
