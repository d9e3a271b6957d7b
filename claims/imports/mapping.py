"""Network mapping of an import: the network and the namespace of each port group.

Beside it: choice of the network for an import without one: the only network whose subnets contain all
addresses.
"""

from collections.abc import Iterator, Mapping
from ipaddress import ip_address, ip_network
from itertools import islice
from typing import Any

from django.db.models import Count

from claims.access import namespaces
from claims.imports import formats, rows
from claims.models import NAD, Network, PortGroup, VMImport
from claims.networks import networks
from pools.core import addresses, errors, holders
from pools.models.imports import RowStatus
from pools.platform.imports import lifecycle

MOST_PORT_GROUPS = 1_000


def parse(
    values: Mapping[str, Any], vm_import: VMImport, *, field: str = "mapping"
) -> dict[str, dict[str, Any]]:
    """Validate a mapping of an import and return it in its stored form.

    Networks of another cluster, or outside of the scope of the import, are unknown. Raises InvalidInput:
    wrong_type, too_many, unknown_field, unknown_network, k8s_name.
    """
    mappings = {
        name: parse_destination(destination, f"{field}.{errors.display_value(name)}")
        for name, destination in values.items()
    }
    if len(mappings) > MOST_PORT_GROUPS:
        message = f"at most {MOST_PORT_GROUPS} port groups"
        raise errors.InvalidInput.for_field(field, "too_many", message)
    networks_of_cluster = Network.objects.filter(cluster=vm_import.cluster)
    visible_networks = namespaces.visible(networks_of_cluster, namespaces.import_scope(vm_import))
    network_ids = [destination.get("network") for destination in mappings.values()]
    valid_ids = [
        network_id
        for network_id in network_ids
        if isinstance(network_id, int) and 0 < network_id < 1 << 62
    ]
    networks = set(visible_networks.filter(pk__in=valid_ids).values_list("pk", flat=True))
    stored_mapping: dict[str, dict[str, Any]] = {}
    for name, destination in mappings.items():
        path = f"{field}.{errors.display_value(name)}"
        network, namespace = destination.get("network"), destination.get("namespace") or ""
        if network is not None and (type(network) is not int or network not in networks):
            message = f"the cluster {vm_import.cluster} has no such network"
            raise errors.InvalidInput.for_field(
                f"{path}.network", "unknown_network", message, network
            )
        if namespace:
            holders.parse_label(namespace, field=f"{path}.namespace")
        key = rows.clean(name)
        stored_mapping[key] = {"network": network, "namespace": namespace}
    return stored_mapping


def parse_destination(value: object, path: str) -> Mapping[str, Any]:
    """Return the destination of a port group as an object; a network id alone is accepted, too.

    Raises InvalidInput wrong_type.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return {"network": value}
    if not isinstance(value, Mapping) or value.keys() - {"network", "namespace"}:
        message = 'a network id or an object {"network": id, "namespace": name} is expected'
        raise errors.InvalidInput.for_field(path, "wrong_type", message, value)
    return value


def remember_port_groups(vm_import: VMImport) -> None:
    """Store the mapping for the next import of the cluster; a mapping of a VM owner is not stored."""
    group_rows = [
        PortGroup(
            cluster_id=vm_import.cluster_id,
            name=name,
            network_id=destination["network"],
            namespace=destination["namespace"],
        )
        for name, destination in vm_import.mapping.items()
        if destination["network"] and name
    ]
    if group_rows and not vm_import.limited:
        PortGroup.objects.bulk_create(
            group_rows,
            update_conflicts=True,
            unique_fields=["cluster", "name"],
            update_fields=["network", "namespace"],
        )


def port_groups(vm_import: VMImport) -> list[dict[str, Any]]:
    """Return the port groups of an import, the number of their rows, and their destination.

    `[{"name", "rows", "network", "namespace"}]`; `network` is None for a port group without a mapping.
    """
    destinations = rows.Destinations(vm_import)
    groups = []
    counts = vm_import.rows.order_by().values_list("texts__port_group").annotate(count=Count("*"))
    for name, count in counts.order_by("texts__port_group")[:MOST_PORT_GROUPS]:
        destination = destinations.find(name)
        groups.append(
            {
                "name": name,
                "rows": count,
                "network": destination.network.pk if destination else None,
                "namespace": destination.namespace if destination else "",
            }
        )
    return groups


def without_namespace(vm_import: VMImport) -> int:
    """Return the number of rows to write, or refused for it, that have no namespace and would get that of the import."""
    rows = vm_import.rows.filter(values__namespace="", texts__namespace="", values__network__gt=0)
    return rows.exclude(status__in=[RowStatus.LEFT_OUT, RowStatus.UNCHANGED]).count()


MOST_ROWS_READ = 2_000  # later rows are validated in the draft
CHOSEN_CODE = "network_by_addresses"


def find_by_addresses(upload: lifecycle.Upload, user: Any) -> Network | None:
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


def _addresses(upload: lifecycle.Upload) -> Iterator[addresses.Address]:
    """Yield the valid addresses of the first rows."""
    unique_addresses: dict[addresses.Address, None] = {}
    for row in islice(formats.open_file(upload[1]).rows(), MOST_ROWS_READ):
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
