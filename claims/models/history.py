"""Event tables of VM networks, written by triggers.

They are built like those of pools/models/history.py and share their sequence of event numbers.
"""

from __future__ import annotations

from typing import Any

import pghistory
import pgtrigger
from django.contrib.postgres.indexes import GinIndex
from django.db import models

from claims.models.access import Membership
from claims.models.imports import VMImport, Wave
from claims.models.ipamclaims import IPAMClaim
from claims.models.ippools import Entry, IPPool
from claims.models.networks import Network
from claims.models.settings import NetworkSettings
from pools.models.history import APPEND_ONLY, create_event_model, event_number_field


def _whole_life(model: type[models.Model], fields: list[str]) -> Any:
    # Triggers run once for each statement, because an IPPool may have a hundred thousand entries.
    return create_event_model(
        model,
        pghistory.InsertEvent("created", level=pghistory.Statement),
        pghistory.UpdateEvent("changed", level=pghistory.Statement),
        pghistory.DeleteEvent("deleted", level=pghistory.Statement),
        fields=fields,
    )


_NetworkEvent: Any = _whole_life(
    Network,
    [
        "cluster", "name", "kind", "topology", "role", "lifecycle", "subnets", "default_gateways",
        "reserved_subnets", "infrastructure_subnets", "applied", "gone_at",
    ],
)  # fmt: skip


class NetworkEvent(_NetworkEvent):  # type: ignore[misc]  # made at run time
    pgh_id = event_number_field()


_IPPoolEvent: Any = _whole_life(IPPool, ["cluster", "network", "name", "note", "gone_at"])


class IPPoolEvent(_IPPoolEvent):  # type: ignore[misc]  # made at run time
    pgh_id = event_number_field()

    class Meta:
        triggers = [APPEND_ONLY]
        indexes = [models.Index(fields=["pgh_obj", "pgh_id"], name="ippool_event_object")]


_EntryEvent: Any = _whole_life(Entry, ["ippool", "mac", "ips", "vm", "namespace", "source", "note"])


class EntryEvent(_EntryEvent):  # type: ignore[misc]  # made at run time
    pgh_id = event_number_field()

    class Meta:
        triggers = [APPEND_ONLY]
        indexes = [
            models.Index(fields=["pgh_obj", "pgh_id"], name="entry_event_object"),
            models.Index(fields=["mac", "pgh_id"], name="entry_event_mac"),
            models.Index(fields=["namespace", "vm", "pgh_id"], name="entry_event_vm"),
            models.Index(fields=["vm", "pgh_id"], name="entry_event_vm_name"),
            GinIndex(fields=["ips"], name="entry_event_ips"),
        ]


_IPAMClaimEvent: Any = _whole_life(
    IPAMClaim,
    [
        "cluster", "network", "namespace", "name", "mac", "ips_requested", "vm", "vm_uid", "ips",
        "owner_pod", "deleted_at", "gone_at",
    ],
)  # fmt: skip


class IPAMClaimEvent(_IPAMClaimEvent):  # type: ignore[misc]  # made at run time
    pgh_id = event_number_field()

    class Meta:
        triggers = [APPEND_ONLY]
        indexes = [
            models.Index(fields=["pgh_obj", "pgh_id"], name="ipamclaim_event_object"),
            models.Index(fields=["namespace", "vm", "pgh_id"], name="ipamclaim_event_vm"),
            models.Index(fields=["vm", "pgh_id"], name="ipamclaim_event_vm_name"),
            models.Index(fields=["mac", "pgh_id"], name="ipamclaim_event_mac"),
            models.Index(fields=["name", "pgh_id"], name="ipamclaim_event_name"),
            GinIndex(fields=["ips"], name="ipamclaim_event_ips"),
        ]


_MembershipEvent: Any = _whole_life(Membership, ["user", "group", "cluster", "namespaces", "role"])


class MembershipEvent(_MembershipEvent):  # type: ignore[misc]  # made at run time
    pgh_id = event_number_field()


_NetworkSettingsEvent: Any = _whole_life(
    NetworkSettings, ["cluster", "annotation", "default_nad_namespace", "default_nad_name"]
)


class NetworkSettingsEvent(_NetworkSettingsEvent):  # type: ignore[misc]  # made at run time
    pgh_id = event_number_field()


_VMImportEvent: Any = create_event_model(
    VMImport,
    # One event for each outcome of an import; its rows hold the details.
    pghistory.InsertEvent("created"),
    pghistory.UpdateEvent(
        "changed",
        condition=pgtrigger.Q(
            old__status__df=pgtrigger.F("new__status"),
            new__status__in=["drafted", "committed", "undone", "cancelled", "failed"],
        ),
    ),
    fields=["cluster", "network", "target", "format", "file_name", "status", "counts"],
)


class VMImportEvent(_VMImportEvent):  # type: ignore[misc]  # made at run time
    pgh_id = event_number_field()

    class Meta:
        triggers = [APPEND_ONLY]
        indexes = [models.Index(fields=["pgh_obj", "pgh_id"], name="vm_import_event_object")]


_WaveEvent: Any = _whole_life(Wave, ["cluster", "name", "planned_at", "note"])


class WaveEvent(_WaveEvent):  # type: ignore[misc]  # made at run time
    pgh_id = event_number_field()


ALL: tuple[Any, ...] = (
    NetworkEvent,
    IPPoolEvent,
    EntryEvent,
    IPAMClaimEvent,
    MembershipEvent,
    NetworkSettingsEvent,
    VMImportEvent,
    WaveEvent,
)
