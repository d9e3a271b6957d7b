"""What is known of a starting VM: settings, registrations (five indexed statements), its manifest, the log of decisions."""

import contextlib
import dataclasses
import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.db.models import Q, QuerySet

from claims.access import namespaces
from claims.core import macs
from claims.core.ipamclaims import ipamclaim
from claims.core.networks import udn
from claims.core.networks.static_vms import DeclinedError
from claims.core.resources import VM as RESOURCE
from claims.core.workloads import mutation, network_selection, vm_addresses, vm_objects
from claims.core.workloads.mutation import Settings
from claims.core.workloads.vm_addresses import (
    VM,
    AddressChoice,
    Claim,
    Interface,
    MACEntry,
    PrimaryNetwork,
    Registrations,
    UnusableEntry,
)
from claims.models import NAD, Decision, Entry, IPAMClaim, Network, NetworkSettings
from claims.models.networks import Annotation
from pools.core import errors, redaction
from pools.models import Cluster, Now, ObservedObject
from pools.platform import database, events

NO_REGISTRATIONS = Registrations()
MOST = 20  # registrations of each kind; more of one VM are ambiguous


def settings(cluster_id: int) -> Settings:
    """Return the webhook settings of the cluster, or the defaults."""
    row = settings_of_cluster(cluster_id)
    return Settings(
        addresses=row.annotation == Annotation.ADDRESSES,
        nad_namespace=row.default_nad_namespace,
        nad_name=row.default_nad_name,
    )


def observed_vm(cluster_id: int, vm: VM, *, vmi_uid: str = "") -> VM:
    """Return the VM with the interface of its observed objects.

    The VMI of the pod (by its uid) has precedence, then the VM, then any VMI of the name. If none of them
    has a MAC, the one that the pod requests is used.
    """
    rows = ObservedObject.objects.filter(
        cluster_id=cluster_id,
        kind__in=[vm_objects.VM, vm_objects.VMI],
        namespace=vm.namespace,
        name=vm.name,
    ).values_list("kind", "uid", "manifest", "missed_at")[:MOST]
    # One that a list did not contain any more is likely an older one of the same name.
    ordered_rows = sorted(
        rows,
        key=lambda row: (row[1] != vmi_uid, row[3] is not None, row[0] != vm_objects.VM, row[1]),
    )
    if not ordered_rows:
        return vm
    interface = vm_objects.interface(ordered_rows[0][2])
    if interface is not None and interface.mac is None and vm.interface is not None:
        interface = Interface(interface.name, vm.interface.mac)
    return dataclasses.replace(vm, observed=True, interface=interface)


def registrations(cluster_id: int, vm: VM) -> Registrations:
    """Return the primary networks of the VM's namespace, and the entries and claims that may be the VM's."""
    nads = list(
        NAD.objects.filter(
            network__cluster_id=cluster_id,
            namespace=vm.namespace,
            role=udn.PRIMARY,
            network__gone_at=None,
        )
        .select_related("network__ippool")
        .order_by("name", "pk")[:MOST]
    )
    return Registrations(
        networks=tuple(
            primary_network(
                nad.network,
                nad=str(nad),
                persistent=nad.allow_persistent_ips,
                subnets=nad.subnets,
            )
            for nad in nads
        ),
        entries=_entries(cluster_id, vm, nads),
        claims=_claims(cluster_id, vm, nads),
        unusable=tuple(_unusable_entries(vm, nads)),
    )


def primary_network(
    network: Network, *, nad: str, persistent: bool, subnets: Sequence[str] = ()
) -> PrimaryNetwork:
    """Return a network as the primary one of a namespace, with `subnets` in place of its own."""
    return PrimaryNetwork(
        name=network.name,
        nad=nad,
        topology=network.topology,
        role=udn.PRIMARY,
        persistent=persistent,
        subnets=tuple(subnets or network.subnets),
        default_gateways=tuple(network.default_gateways),
        reserved_subnets=tuple(network.reserved_subnets),
        infrastructure_subnets=tuple(network.infrastructure_subnets),
        exclude_subnets=tuple(network.exclude_subnets),
        join_subnets=tuple(network.join_subnets),
    )


def _entries(cluster_id: int, vm: VM, nads: Sequence[NAD]) -> tuple[MACEntry, ...]:
    condition: Any = Q(namespace=vm.namespace, vm=vm.name)
    if vm.interface and vm.interface.mac:
        # With columns of one table on both sides of the OR, PostgreSQL combines two indexes.
        pools = [nad.network.ippool.pk for nad in nads if hasattr(nad.network, "ippool")]
        condition |= Q(ippool__in=pools, mac=vm.interface.mac)
    rows = Entry.objects.filter(condition, ippool__cluster_id=cluster_id, ippool__gone_at=None)
    return _mac_entries(rows)


def _mac_entries(rows: QuerySet[Entry]) -> tuple[MACEntry, ...]:
    return tuple(
        MACEntry(
            network=row.ippool.network.name,
            mac=row.mac,
            ips=tuple(row.ips),
            vm=row.vm,
            namespace=row.namespace,
            ippool=row.ippool.name,
        )
        for row in rows.select_related("ippool__network").order_by("pk")[:MOST]
    )


def _unusable_entries(vm: VM, nads: Sequence[NAD]) -> Iterator[UnusableEntry]:
    """Yield the invalid entries of the VM's MAC, which the register could not ingest from IPPools."""
    mac = vm.interface.mac if vm.interface else None
    ippools = [nad.network.ippool for nad in nads if hasattr(nad.network, "ippool")]
    for ippool in ippools if mac else ():
        for problem in ippool.problems if ippool.gone_at is None else ():
            with contextlib.suppress(errors.InvalidInput):
                if macs.parse_mac(problem["mac"]) == mac:
                    yield UnusableEntry(ippool.network.name, mac, ippool.name, problem["message"])


def _claims(cluster_id: int, vm: VM, nads: Sequence[NAD]) -> tuple[Claim, ...]:
    """Return the claims of the VM, those that request its MAC, and those with the name of its claim."""
    network_names = {nad.network.name for nad in nads} | (
        {vm.interface.name} if vm.interface else set()
    )
    names = {
        ipamclaim.compose_key(vm.name, network_name)
        for network_name in network_names
        if network_name
    }
    condition = Q(vm=vm.name) | Q(name__in=names)
    if vm.interface and vm.interface.mac:
        condition |= Q(vm="", mac=vm.interface.mac)
    rows = IPAMClaim.objects.filter(
        condition,
        cluster_id=cluster_id,
        network__in=[nad.network_id for nad in nads],
        namespace=vm.namespace,
        gone_at=None,
    )
    return _vm_claims(rows)


def _vm_claims(rows: QuerySet[IPAMClaim]) -> tuple[Claim, ...]:
    return tuple(
        Claim(
            network=row.network.name,
            name=row.name,
            vm=row.vm,
            mac=row.mac,
            requested=tuple(row.ips_requested),
            ips=tuple(row.ips),
            in_cluster=bool(row.uid),
        )
        for row in rows.select_related("network").order_by("pk")[:MOST]
    )


log = logging.getLogger(__name__)

WAIT_MS = 300  # timeout of the insert; the API server waits for the response meanwhile
_LONGEST_VALUES = {
    field.name: field.max_length for field in Decision._meta.fields if field.max_length
}
_AT_ONCE = 10_000


def record_decision(cluster_id: int, **values: Any) -> None:
    """Record one decision; `values` are the fields of a Decision. A failure is only logged."""
    shown_values = redaction.redact_values(values)
    truncated_values = {
        key: _storable(value)[: _LONGEST_VALUES.get(key)] if isinstance(value, str) else value
        for key, value in shown_values.items()
    }
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT set_config('statement_timeout', %(ms)s, true),"
                    " set_config('lock_timeout', %(ms)s, true)",
                    {"ms": str(WAIT_MS)},
                )
            Decision.objects.create(cluster_id=cluster_id, at=Now(), **truncated_values)
    except DatabaseError as error:
        log.warning("a webhook decision was not recorded: %s", error)


def _storable(text: str) -> str:
    """Return a text without what PostgreSQL refuses: NUL and halves of surrogate pairs, as JSON may escape them."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def delete_old_decisions(days: int) -> int:
    """Delete decisions older than `days`, and return their number; 0 keeps all decisions."""
    if days <= 0:
        return 0
    deleted = 0
    while True:
        old = Decision.objects.filter(at__lt=Now() - timedelta(days=days)).order_by("at")
        ids = list(old.values_list("pk", flat=True)[:_AT_ONCE])
        deleted += Decision.objects.filter(pk__in=ids).delete()[0]
        if len(ids) < _AT_ONCE:
            return deleted


def settings_of_cluster(cluster_id: int) -> NetworkSettings:
    """Return the cluster's settings, or an unsaved row with the defaults."""
    row = NetworkSettings.objects.filter(cluster=cluster_id).first()
    return row or NetworkSettings(cluster_id=cluster_id)


def change_settings(
    cluster: Cluster,
    values: Mapping[str, Any],
    *,
    author: events.Author,
    version: database.Version = None,
) -> NetworkSettings:
    """Change settings; keys of `values` are `annotation`, `default_nad_namespace`, `default_nad_name`.

    Raises VersionMismatch.
    """
    with events.recorded_by(author):
        NetworkSettings.objects.get_or_create(cluster=cluster)
        row = NetworkSettings.objects.select_for_update().get(cluster=cluster)
        database.require_version(row, version)
        for name, value in values.items():
            setattr(row, name, value)
        database.save(row)
    return row


INTERFACE = "default"  # name of the pod network in the VM's spec
_ABSENT = {"no_entry", "entry_of_another_vm", "claim_of_another_vm"}


def vm_manifest(
    network: Network,
    *,
    vm: str,
    namespace: str,
    mac: str | None = None,
    scope: namespaces.Scope = namespaces.EVERYTHING,
) -> dict[str, Any]:
    """Return the manifest of a VM with the MAC and the addresses of its entry or claim.

    Raises NotFound (code no_entry) if neither exists in the scope; Conflict with the code not_primary, or
    with a code of vm_addresses.choose if OVN-Kubernetes would refuse the addresses.
    """
    if network.role not in {udn.PRIMARY, ""}:
        raise _conflict_error("not_primary", f"the network {network.name} is not a primary network")
    machine = VM(namespace, vm, observed=True, interface=Interface(INTERFACE, mac))
    try:
        choice = vm_addresses.choose(machine, _registrations(network, machine, scope))
    except DeclinedError as declined:
        if declined.code in _ABSENT:
            not_found = errors.NotFound(
                f"{namespace}/{vm} has no address in {network.name} yet; the manifest appears once"
                " there is one."
            )
            not_found.code = "no_entry"
            raise not_found from declined
        raise _conflict_error(declined.code, declined.message) from declined
    return _manifest(machine, choice, settings(network.cluster_id))


def _conflict_error(code: str, message: str) -> errors.Conflict:
    error = errors.Conflict(errors.sentence(message))
    error.code = code
    return error


def _registrations(network: Network, machine: VM, scope: namespaces.Scope) -> Registrations:
    """Return the registrations of the VM in the scope; the namespace need not have a NAD yet."""
    nad = NAD.objects.filter(network=network, namespace=machine.namespace).first()
    condition = Q(namespace=machine.namespace, vm=machine.name)
    mac = machine.interface.mac if machine.interface else None
    if mac:
        condition |= Q(mac=mac)
    entries = namespaces.visible(Entry.objects.filter(condition, ippool__network=network), scope)
    claims = namespaces.visible(
        IPAMClaim.objects.filter(
            network=network, namespace=machine.namespace, vm=machine.name, gone_at=None
        ),
        scope,
    )
    return Registrations(
        networks=(
            primary_network(
                network,
                nad=str(nad or ""),
                persistent=nad.allow_persistent_ips if nad else network.lifecycle == "Persistent",
            ),
        ),
        entries=_mac_entries(entries),
        # The manifest is of a VM that does not exist yet: its claim is as good as in the cluster.
        claims=tuple(
            dataclasses.replace(claim, requested=claim.requested or claim.ips, in_cluster=True)
            for claim in _vm_claims(claims)
        ),
    )


def _manifest(machine: VM, choice: AddressChoice, settings: mutation.Settings) -> dict[str, Any]:
    if settings.addresses:
        bare = [network_selection.strip_prefix(text) for text in choice.ips]
        name = network_selection.ADDRESSES
        value = network_selection.render_addresses({INTERFACE: bare})
    else:
        # The webhook adds the name of the claim to the pod.
        element = dataclasses.replace(mutation.selection_element(choice, settings), claim="")
        name, value = network_selection.DEFAULT_NETWORK, network_selection.render([element])
    mac = choice.mac or (machine.interface.mac if machine.interface else None)
    interface = {"name": INTERFACE, "binding": {"name": "l2bridge"}}
    if mac:
        interface["macAddress"] = mac
    return {
        "apiVersion": RESOURCE.api_version,
        "kind": RESOURCE.kind,
        "metadata": {"name": machine.name, "namespace": machine.namespace},
        "spec": {
            "runStrategy": "Always",
            "template": {
                "metadata": {"annotations": {name: value}},
                "spec": {
                    "domain": {
                        "memory": {"guest": "2Gi"},
                        "devices": {"interfaces": [interface]},
                    },
                    "networks": [{"name": INTERFACE, "pod": {}}],
                },
            },
        },
    }
