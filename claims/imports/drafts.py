"""Imports of VMs: a file, list or form becomes a stored draft, which users correct and commit.

pools/platform/imports/lifecycle.py has what all imports share. A correction changes the values of a row, or assigns it free
addresses of its network.
"""

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_interface
from itertools import islice
from typing import Any

from django.db.models import QuerySet

from claims.access import namespaces
from claims.core.networks import static_vms, udn
from claims.core.vm_import.vm_interface import MAX_NAMES, Skipped
from claims.imports import commit, formats, mapping, rows as import_rows, validation
from claims.models import Network, VMImport, VMRow
from claims.models.imports import ImportTarget
from claims.networks import pools as network_pools
from pools.core import errors
from pools.models.imports import RowStatus
from pools.platform import database, events
from pools.platform.imports import lifecycle, rows as stored_rows, states

MOST_IPS = 32


def is_limited(user: Any, target: str) -> bool:
    """Return True if the user may import for their own namespaces only. Raises NotAllowed."""
    model = "ipamclaim" if target == ImportTarget.IPAMCLAIMS else "entry"
    everything = user.has_perm(namespaces.EVERY_NAMESPACE)
    if everything and all(user.has_perm(f"claims.{verb}_{model}") for verb in ("add", "change")):
        return False
    if not user.has_perm("claims.request_address"):
        raise errors.NotAllowed(f"This needs the permission claims.add_{model}.")
    return True


# Reasons to skip an item of a file that need a note: a user may miss such a VM among the rows.
_LEFT_OUT = {
    "template": "Templates",
    "srm_placeholder": "Placeholders of Site Recovery Manager",
    "vcls": "VMs of vSphere Cluster Services",
    "floating_address": "Floating addresses, which belong to no interface, of the VMs",
    "guest_only_interface": "Interfaces that only the guest has, of the VMs",
}


def _left_out_notes(skipped: Skipped) -> list[dict[str, str]]:
    """Return a note for each reason, with the names of the VMs that were left out."""
    notes = []
    for reason, names in skipped.names.items():
        if names and reason in _LEFT_OUT:
            vm_names = ", ".join(map(import_rows.clean, names))
            suffix = f" and more, {skipped[reason]} in all" if skipped[reason] > MAX_NAMES else ""
            message = f"{_LEFT_OUT[reason]} are left out: {vm_names}{suffix}"
            notes.append({"code": f"left_out_{reason}", "message": message})
    return notes


def correct_row(vm_import: VMImport, number: int, values: Mapping[str, Any]) -> None:
    """Change source values of a row (import_rows.TEXTS), and validate it and all rows that share a value with it.

    Raises NotFound.
    """
    row = _get_row(vm_import, number)
    before = copy.copy(row)
    problems = [
        problem for problem in row.file_problems if problem["field"].partition(".")[0] not in values
    ]
    refused = row.refused and values.keys().isdisjoint({"vm", "mac", "ips"})
    texts = {**import_rows.clean_texts(values), "problems": problems, "refused": refused}
    row.texts = row.texts | texts
    row.corrected, row.skipped = True, False
    import_rows.save_resolved([row], import_rows.Destinations(vm_import))
    validation.validate(vm_import, [before, row])
    states.mark_drafted(vm_import)


class VMImports(lifecycle.Imports[VMImport]):
    """Imports of VMs."""

    model = VMImport
    refusals = (
        errors.ImportHasBadRows,
        errors.ClusterDecides,
        errors.InvalidInput,
        errors.QuotaExceeded,
    )
    recognise = staticmethod(formats.recognise)
    correct = staticmethod(correct_row)
    write = staticmethod(commit.write)
    take_back = staticmethod(commit.take_back)
    check_not_in_use = staticmethod(commit.check_not_in_use)

    def visible(self, user: Any) -> QuerySet[VMImport]:
        """Return all imports for users who see all namespaces, and a user's own imports for others."""
        imports = super().visible(user)
        return imports if user.has_perm(namespaces.EVERY_NAMESPACE) else imports.filter(user=user)

    def admit(self, row: VMImport, user: Any) -> None:
        """Limit the import to the namespaces of a user who is limited to them, who becomes its user."""
        if is_limited(user, row.target) and not row.limited:
            row.limited, row.user = True, user
            row.save(update_fields=["limited", "user"])

    def prepare(self, row: VMImport) -> None:
        row.options = {name: getattr(row, name) for name in ("target", "namespace")} | row.options
        row.limited = row.user is not None and is_limited(row.user, row.target)
        row.mapping = mapping.parse(row.mapping, row)

    def read_small(
        self, row: VMImport, uploads: Sequence[lifecycle.Upload]
    ) -> formats.FileReading | None:
        ((name, content),) = uploads
        reading = formats.open_file(content)
        row.file_name = import_rows.clean(name, 255)
        row.format, row.rows_total = reading.format, reading.total
        is_large = sum(1 for _ in islice(reading.rows(), states.SMALL + 1)) > states.SMALL
        return None if is_large else reading

    def read(
        self,
        row: VMImport,  # noqa: ARG002  # VMs come from files only
        uploads: Sequence[lifecycle.Upload],
    ) -> formats.FileReading:
        ((_name, content),) = uploads
        return formats.open_file(content, already_counted=True)

    def store(self, row: VMImport, reading: formats.FileReading, step: lifecycle.Step) -> None:
        mapping.remember_port_groups(row)
        row.rows_total = row.rows_done = import_rows.store(row, reading.rows(), step)
        validation.validate(row)
        row.left_out = dict(reading.skipped)
        row.notes += [{"code": note.code, "message": note.message} for note in reading.notes]
        row.notes += _left_out_notes(reading.skipped)
        row.files.all().delete()
        states.mark_drafted(row, "rows_total", "rows_done", "left_out", "notes")

    def revalidate_rows(self, row: VMImport) -> None:
        import_rows.reread_rows(row)  # their networks may have changed since
        validation.validate(row)
        states.mark_drafted(row)

    def revalidate_with(self, row: VMImport, numbers: Collection[int]) -> None:
        validation.validate(row, list(row.rows.filter(number__in=numbers)))
        states.mark_drafted(row)


IMPORTS = VMImports()


# --- changes of a draft ---------------------------------------------------------------------------


def change_mapping(
    import_id: int,
    values: Mapping[str, Any],
    *,
    author: events.Author,
    user: Any = None,
    version: database.Version = None,
) -> VMImport:
    """Change the network, namespace and mapping of a draft, and resolve and validate all rows again.

    The keys of `values` are `network` (a Network or None), `namespace` and `mapping`; `mapping` is merged
    into the existing one. Raises ImportState, InvalidInput, NotAllowed, VersionMismatch.
    """
    with IMPORTS.changing(import_id, author=author, user=user) as vm_import:
        database.require_version(vm_import, version)
        vm_import.network = values.get("network", vm_import.network)
        vm_import.namespace = values.get("namespace", vm_import.namespace)
        vm_import.mapping |= mapping.parse(values.get("mapping", {}), vm_import)
        vm_import.save(update_fields=["options", "mapping"])
        mapping.remember_port_groups(vm_import)
        IMPORTS.revalidate_rows(vm_import)
    return IMPORTS.get(import_id)


def assign_free_addresses(
    import_id: int, number: int, *, author: events.Author, user: Any = None
) -> VMRow:
    """Assign a row the lowest free address of each family that it lacks.

    A row that has an address of each family of its network gets new addresses instead. The addresses
    are not reserved before the commit. Raises NotFound, ImportState, NotAllowed, Conflict (the row has no network),
    PoolExhausted.
    """
    with IMPORTS.changing(import_id, author=author, user=user) as vm_import:
        row = _get_row(vm_import, number)
        network = Network.objects.filter(pk=row.network_id or 0).first()
        if network is None or not udn.readable_networks(network.subnets):
            raise errors.Conflict("The row is not mapped to a network with subnets.")
        ips = list(row.ips) if _missing_families(row.ips, network) else []
        free = _free_addresses(vm_import, network, excluded_number=number)
        missing = _missing_families(ips, network)
        ips += [next(free[version]) for version in sorted(free) if version in missing]
        correct_row(vm_import, number, {"ips": ips})
    return _get_row(vm_import, number)


def assign_missing_families(import_id: int, *, author: events.Author, user: Any = None) -> VMImport:
    """Assign the lowest free address of the missing family to all rows with one family on a dual-stack
    network.

    Raises ImportState, NotAllowed, PoolExhausted.
    """
    with IMPORTS.changing(import_id, author=author, user=user) as vm_import:
        completed = list(rows_lacking_family(vm_import).order_by("number"))
        networks = Network.objects.in_bulk({row.network_id for row in completed})
        free = {pk: _free_addresses(vm_import, network) for pk, network in networks.items()}
        for row in completed:
            if row.network_id in networks:
                missing = sorted(_missing_families(row.ips, networks[row.network_id]))
                added = [next(free[row.network_id][version]) for version in missing]
                row.source_ips = [*row.source_ips, *added]
                row.corrected = True
        stored_rows.save(completed)
        IMPORTS.revalidate_rows(vm_import)
    return IMPORTS.get(import_id)


def rows_lacking_family(vm_import: VMImport) -> QuerySet[VMRow]:
    """Return the rows that `assign_missing_families` completes."""
    return vm_import.rows.filter(
        status=RowStatus.INVALID, problems__contains=[{"code": static_vms.MISSING}]
    )


def _missing_families(ips: Iterable[str], network: Network) -> set[int]:
    families: set[int] = {subnet.version for subnet in udn.readable_networks(network.subnets)}
    return families - {ip_interface(text).version for text in ips}


def _free_addresses(
    vm_import: VMImport, network: Network, *, excluded_number: int = 0
) -> dict[int, Iterator[str]]:
    """Return by family an iterator over the addresses that neither the register nor the import uses.

    Addresses of the row `excluded_number` count as free. The iterators raise PoolExhausted.
    """
    # Rows that cannot be parsed or have no network: what their texts name.
    others = vm_import.rows.filter(values__ips=[]).exclude(number=excluded_number)
    named = [address for row in others for address in import_rows.addresses_in_use(row)]
    return {
        version: network_pools.unused_addresses_of_family(
            network,
            subnets,
            import_id=vm_import.pk,
            row_number=excluded_number,
            named=[int(address) for address in named if address.version == version],
        )
        for version, subnets in network_pools.subnets_by_family(network).items()
    }


def _get_row(vm_import: VMImport, number: int) -> VMRow:
    row: VMRow | None = vm_import.rows.filter(number=number).first()
    if row is None:
        raise errors.NotFound(f"The import has no row {number}.")
    return row
