"""Validation of an import's rows, against the current register and against each other.

A row is validated as the entry or claim that it would become, by the functions that forms and REST call
(claims/address_index/duplicates.py); each table is read once for all rows, or for those that a correction affects.

The status of a row is new, changed, unchanged, conflict or invalid. Conflict: another index entry, the
network itself or another row has its MAC or an address. Invalid: the row cannot be parsed, its user may not
write it, or its addresses would keep the VM from starting (claims/core/vm_import).
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from django.db.models import F, Q

from claims.access import namespaces
from claims.address_index import block_sync, duplicates
from claims.core.networks import kept_addresses, static_vms, udn
from claims.imports import matches, rows as import_rows
from claims.models import NAD, Entry, IPAMClaim, Network, VMImport, VMRow, Workload
from claims.models.imports import ImportTarget
from claims.models.workloads import WorkloadKind
from pools.models.imports import RowStatus
from pools.platform import database
from pools.platform.imports import rows as stored_rows

KEPT = "kept_address"  # what the entry or claim has completes the row
_MOST_SHOWN = 10
_Reason = tuple[str, str, bool]  # code, message, and whether the row is a conflict for it


def validate(vm_import: VMImport, changed: Sequence[VMRow] | None = None) -> None:
    """Update the status of all rows, or of those that share a value with `changed` rows (as they were and are)."""
    if changed is None:
        rows = checked = list(vm_import.rows)
    else:
        checked = _rows_sharing(vm_import, changed)
        import_rows.save_resolved(checked, import_rows.Destinations(vm_import))
        numbered = {row.number: row for row in _rows_sharing(vm_import, checked)}
        rows = list((numbered | {row.number: row for row in checked}).values())
    before = [_result(row) for row in checked]
    _Validation(vm_import, rows).run(checked)
    stored_rows.save_results(
        row for row, result in zip(checked, before, strict=True) if _result(row) != result
    )


def _is_decided(row: VMRow) -> bool:
    """Return True if the register does not decide the row's status."""
    return bool(row.skipped or row.verdict)


def _result(row: VMRow) -> tuple[Any, ...]:
    return row.status, row.reasons, row.object_id, row.before


def _rows_sharing(vm_import: VMImport, rows: Sequence[VMRow]) -> list[VMRow]:
    """Return these rows of an import, and all that share a MAC, an address or a VM with one."""
    shared = Q(number__in=[row.number for row in rows])
    shared |= Q(values__mac__in=[row.mac for row in rows if row.mac])
    shared |= Q(values__vm__in=[row.vm for row in rows if row.vm])
    hosts = [host for row in rows for host in matches.hosts(row.ips)]
    with_host = database.rows(_WITH_HOST, [vm_import.pk, hosts], prepare=False)
    shared |= Q(number__in=[number for (number,) in with_host])
    return list(vm_import.rows.filter(shared))


# Without prefix lengths, in which the networks of a segment may differ.
_WITH_HOST = """
    SELECT number FROM pools_importrow, jsonb_array_elements_text(values -> 'ips') AS ip
    WHERE source_import_id = %s AND split_part(ip, '/', 1) = ANY(%s)
"""


class _Validation:
    """The rows of an import whose status the register decides, with what it has of them."""

    def __init__(self, vm_import: VMImport, rows: Sequence[VMRow]) -> None:
        undecided = [row for row in rows if not _is_decided(row)]
        self.cluster_id = vm_import.cluster_id
        self.claims = vm_import.target == ImportTarget.IPAMCLAIMS
        self.match: Callable[[VMRow, Any], matches.Match] = (
            matches.match_claim if self.claims else matches.match_entry
        )
        self.scope = namespaces.import_scope(vm_import)
        network_ids = {row.network_id for row in undecided}
        self.networks = Network.objects.select_related("pool", "ippool").in_bulk(network_ids)
        # A network may be gone since a row was resolved that is only compared.
        self.rows = [row for row in undecided if row.network_id in self.networks]
        self.lacking = {static_vms.MISSING, *(() if self.claims else (import_rows.NO_ADDRESS,))}
        self.incomplete = self.lacking | {static_vms.TOO_MANY}

    def run(self, checked: Sequence[VMRow]) -> None:
        """Set the results of these rows."""
        undecided = [row for row in checked if not _is_decided(row)]
        objects = self._objects(undecided)
        self._complete(undecided, objects)
        self.matches = {
            row.number: min(
                (self.match(row, item) for item in items), key=lambda match: not match.same
            )
            for row in undecided
            if (items := objects.get(self._key(row)))
        }
        self.reasons: dict[int, set[_Reason]] = defaultdict(set)
        self.checked = {row.number for row in undecided if not self._is_same(row)}
        different = [row for row in undecided if row.number in self.checked]
        self._compare_with_register(different)
        self._find_unserved(undecided)
        self._compare_with_rows()
        for row in checked:
            if _is_decided(row):
                row.status = RowStatus.LEFT_OUT if row.skipped else row.verdict
                row.reasons, row.object_id, row.before = row.problems, None, None
            else:
                self._set_result(row)

    # --- what the register has of a row -----------------------------------------------------------

    def _key(self, row: VMRow) -> Hashable:
        return (row.namespace, row.claim_name) if self.claims else (row.network_id, row.mac)

    def _objects(self, rows: Sequence[VMRow]) -> dict[Hashable, list[matches.Object]]:
        """Return the entries that the user may see, or the claims, by the key of their rows; the oldest first."""
        objects: dict[Hashable, list[matches.Object]] = {}
        if self.claims:
            names = {row.claim_name for row in rows}
            claims = IPAMClaim.objects.filter(cluster=self.cluster_id, name__in=names)
            for claim in claims:
                objects.setdefault((claim.namespace, claim.name), []).append(claim)
            return objects
        macs = {row.mac for row in rows}
        entries = Entry.objects.filter(ippool__network__in=self.networks, mac__in=macs)
        for entry in entries.annotate(network_id=F("ippool__network")).order_by("pk"):
            if self.scope.has(self.cluster_id, entry.namespace):
                objects.setdefault((entry.network_id, str(entry.mac)), []).append(entry)
        return objects

    def _complete(
        self, rows: Iterable[VMRow], objects: dict[Hashable, list[matches.Object]]
    ) -> None:
        """Complete rows that lack an address, or have several of a family, by what their entry or claim has.

        So a file that was corrected and imported changes nothing when it comes again.
        """
        completed = []
        for row in rows:
            others = [problem for problem in row.problems if problem["code"] not in self.incomplete]
            item = next(iter(objects.get(self._key(row), ())), None)
            if item is None or len(others) == len(row.problems):
                continue
            if isinstance(item, IPAMClaim) and (item.gone_at or item.network_id != row.network_id):
                continue
            registered = matches.ips_of(item)
            ips = matches.complete(row.ips, registered)
            if ips != row.ips:
                kept = [ip for ip in ips if ip not in row.ips] or registered
                message = f"The registered address {', '.join(kept)} is kept."
                subnets = udn.readable_networks(self.networks[row.network_id].subnets)
                families = {subnet.version for subnet in subnets}
                declined = import_rows.declined_reasons(ips, families)
                row.ips = ips
                row.problems = [
                    {"code": code, "message": text} for code, text in [(KEPT, message), *declined]
                ] + others
                completed.append(row)
        stored_rows.save(completed)

    def _is_same(self, row: VMRow) -> bool:
        match = self.matches.get(row.number)
        return match is not None and match.same

    def _add(self, row: VMRow, code: str, message: str, *, bad: bool = True) -> None:
        self.reasons[row.number].add((code, message, bad))

    # --- conflicts with the register --------------------------------------------------------------

    def _compare_with_register(self, rows: Sequence[VMRow]) -> None:
        """Add the duplicates that the entries or claims would have, and how they differ from the registered ones."""
        duplicates_of_rows = duplicates.of_candidates([self._candidate(row) for row in rows])
        others = [other for row in duplicates_of_rows for each in row for other in each.occurrences]
        workloads = [other.id for other in others if other.id and other.type == "workload"]
        pods = Workload.objects.filter(pk__in=workloads, kind=WorkloadKind.POD)
        self.pods = set(pods.values_list("pk", flat=True))
        for row, row_duplicates in zip(rows, duplicates_of_rows, strict=True):
            for duplicate in row_duplicates:
                for code, message in self._conflicts(duplicate):
                    self._add(row, code, message, bad=not duplicate.note)
            match = self.matches.get(row.number)
            if match and match.fixed:
                self._add(row, "claim_fixed", f"The IPAMClaim {match.fixed}.")
            elif match:
                message = f"The registered values differ: {'; '.join(match.changes)}."
                self._add(row, "differs", message, bad=False)

    def _candidate(self, row: VMRow) -> duplicates.Candidate:
        match = self.matches.get(row.number)
        object_id = match.object.pk if match else 0
        return duplicates.Candidate(
            self.networks[row.network_id],
            row.mac,
            matches.hosts(row.ips),
            vm=row.vm,
            namespace=row.namespace,
            entry_id=None if self.claims else object_id,
            claim_id=object_id if self.claims else None,
        )

    def _conflicts(self, duplicate: duplicates.Duplicate) -> Iterator[tuple[str, str]]:
        """Yield code and message of what a duplicate conflicts with; of index entries the first one."""
        value, everything = duplicate.value, self.scope.everything
        users = []
        for other in duplicate.occurrences:
            name = other.description or other.name
            if other.type == "block":
                place = f" on {other.description}" if other.description else ""
                user = f"held by {other.name}{place}" if everything else "already in use"
                yield "already_allocated", f"{value} is {user}."
            elif not other.is_own:
                users.append(self._user(other))
            elif duplicate.kind == duplicates.MAC:
                yield f"{other.type}_mac", f"{value} is the MAC address of {name}."
            elif other.type == kept_addresses.RESERVED_RANGE:
                shown = f" ({name})" if everything else ""
                yield other.type, f"{value} is in a reserved range{shown}."
            else:
                yield other.type, f"{value} is {name}."
        if users:
            yield f"duplicate_{duplicate.kind}", f"{value} is already {users[0]}."

    def _user(self, other: duplicates.Occurrence) -> str:
        """Return who uses a value, if the import's user may see them."""
        if not self.scope.has(self.cluster_id, other.namespace):
            return "in use"
        if other.type == "entry":
            vm = f" (VM {_name(other.namespace, other.vm)})" if other.vm else ""
            return f"used by the entry {other.mac}{vm}"
        kind = {"ipamclaim": "IPAMClaim", "vm_template": "VM"}.get(other.type, "running VM")
        kind = "running pod" if other.type == "workload" and other.id in self.pods else kind
        return f"used by the {kind} {other.namespace}/{other.name}"

    def _find_unserved(self, rows: Iterable[VMRow]) -> None:
        """Add a warning to rows whose network is gone, or has NADs and none in their namespace."""
        namespaces_of_networks = defaultdict(set)
        nads = NAD.objects.filter(network__in=self.networks)
        for network_id, namespace in nads.values_list("network", "namespace"):
            namespaces_of_networks[network_id].add(namespace)
        for row in rows:
            served = namespaces_of_networks.get(row.network_id, ())
            if self.networks[row.network_id].gone_at:
                message = (
                    f"The network {self.networks[row.network_id].name} was deleted in the cluster."
                )
                self._add(row, "gone", message, bad=False)
            if row.namespace and served and row.namespace not in served:
                message = (
                    f"The namespace {row.namespace} has no network attachment definition of"
                    f" {self.networks[row.network_id].name}: the network does not serve it. Use a namespace that it"
                    " serves, or label this one so that the network selects it."
                )
                self._add(row, "no_nad", message, bad=False)

    # --- conflicts with other rows ----------------------------------------------------------------

    def _compare_with_rows(self) -> None:
        """Add to the rows that are checked what other rows of the import contradict or repeat."""
        segment_ids = {pk: pk for pk in self.networks}
        for pk, peer in block_sync.shared_networks(self.networks.values()):
            segment_ids[pk] = min(segment_ids[pk], peer)
        with_macs = [row for row in self.rows if row.mac]
        by_mac = _groups(with_macs, lambda row: [(segment_ids[row.network_id], row.mac)])
        for rows in by_mac.values():
            message = f"Duplicate MAC address in rows {_lines(rows)}, with different values."
            self._add_repetition(rows, "mac_twice_in_file", message)
        of_claims = [row for row in self.rows if row.claim_name]
        by_claim = _groups(of_claims, lambda row: [(row.namespace, row.claim_name)])
        for (_, name), rows in by_claim.items():
            message = f"The IPAMClaim {name} would belong to several rows: {_lines(rows)}."
            self._add_repetition(rows, "claim_twice_in_file", message)
        by_address = _groups(
            self.rows,
            lambda row: [(segment_ids[row.network_id], host) for host in matches.hosts(row.ips)],
        )
        for (_, host), rows in by_address.items():
            if len({row.mac or (row.namespace, row.vm) for row in rows}) > 1:
                message = f"Duplicate address {host} in rows {_lines(rows)}."
                self._add_to_all(rows, "ip_twice_in_file", message)
        self._compare_vms()

    def _compare_vms(self) -> None:
        named = [row for row in self.rows if row.vm]
        rows_by_vm = _groups(named, lambda row: [(row.namespace, row.vm)])
        crowded_vms = self._crowded_vms([row for row in named if self._is_primary(row)])
        for (namespace, vm), rows in rows_by_vm.items():
            sources = sorted({_source(row) for row in rows})
            if len(sources) > 1:
                message = f"Several VMs would be named {vm}: {', '.join(sources[:_MOST_SHOWN])}."
                self._add_to_all(rows, "vm_name_collision", message)
            elif (namespace, vm) in crowded_vms:
                primary = [row for row in rows if self._is_primary(row)]
                several = len({(row.network_id, row.mac) for row in primary}) > 1
                message = (
                    f"The VM {_name(namespace, vm)} would have several interfaces on primary networks (rows"
                    f" {_lines(primary)}{'' if several else ', and what is registered'}); a VM has one: leave the"
                    " others out, or map them to a secondary network."
                )
                self._add_to_all(primary, "several_primary_interfaces", message)

    def _add_to_all(
        self, rows: Iterable[VMRow], code: str, message: str, *, bad: bool = True
    ) -> None:
        for row in rows:
            if row.number in self.checked:
                self._add(row, code, message, bad=bad)

    def _add_repetition(self, rows: Sequence[VMRow], code: str, message: str) -> None:
        """Add a reason to rows of one MAC or claim that contradict each other, or that repeat the first one."""
        if len({(row.network_id, row.mac, *row.ips, row.namespace, row.vm) for row in rows}) > 1:
            self._add_to_all(rows, code, message)
            return
        message = f"Repeats row {rows[0].line}."
        self._add_to_all(rows[1:], "repeated_row", message, bad=False)

    def _is_primary(self, row: VMRow) -> bool:
        return self.networks[row.network_id].role == "primary"

    def _crowded_vms(self, rows: Iterable[VMRow]) -> set[tuple[str, str]]:
        """Return the VMs that would have several interfaces on primary networks: in `rows`, and as registered."""
        interfaces: defaultdict[tuple[str, str], set[tuple[int, str | None]]] = defaultdict(set)
        for row in rows:
            interfaces[row.namespace, row.vm].add((row.network_id, row.mac))
        vms = {vm for _, vm in interfaces}
        entries = Entry.objects.filter(
            ippool__cluster=self.cluster_id, ippool__network__role="primary", vm__in=vms
        )
        registered = [*entries.values_list("namespace", "vm", "ippool__network", "mac")]
        claims = IPAMClaim.objects.filter(cluster=self.cluster_id, network__role="primary")
        claims = claims.filter(vm__in=vms, gone_at=None, deleted_at=None)
        if self.claims:
            claims = claims.exclude(pk__in=[match.object.pk for match in self.matches.values()])
        registered += claims.values_list("namespace", "vm", "network", "mac")
        for namespace, vm, network_id, mac in registered:
            interfaces[namespace, vm].add((network_id, mac))
        return {
            key
            for key, pairs in interfaces.items()
            if len({pk for pk, _ in pairs}) > 1 or len({mac for _, mac in pairs if mac}) > 1
        }

    # --- results ----------------------------------------------------------------------------------

    def _set_result(self, row: VMRow) -> None:
        reasons = sorted(self.reasons.get(row.number, ()))
        match, everything = self.matches.get(row.number), self.scope.everything
        same = self._is_same(row)
        row.reasons = [{"code": code, "message": message} for code, message, _ in reasons]
        row.reasons += row.problems
        if match and not (same or everything):
            message = "The registered values differ; only an operator can change them."
            row.reasons.insert(0, {"code": "permission_denied", "message": message})
        row.object_id = match.object.pk if match else None
        row.before = match.values if match and not same else None
        codes = {problem["code"] for problem in row.problems}
        if same:
            row.status = RowStatus.UNCHANGED
        elif not codes.isdisjoint({*import_rows.DECLINED, *self.lacking}):
            row.status = RowStatus.INVALID
        elif any(bad for _, _, bad in reasons):
            row.status = RowStatus.CONFLICT
        elif any(code == "repeated_row" for code, _, _ in reasons):
            row.status = RowStatus.UNCHANGED
        elif match is None:
            row.status = RowStatus.NEW
        else:
            row.status = RowStatus.CHANGED if everything else RowStatus.INVALID


_Key = TypeVar("_Key", bound=Hashable)


def _groups(
    rows: Iterable[VMRow], keys: Callable[[VMRow], Iterable[_Key]]
) -> dict[_Key, list[VMRow]]:
    groups: defaultdict[_Key, list[VMRow]] = defaultdict(list)
    for row in rows:
        for key in keys(row):
            groups[key].append(row)
    return groups


def _source(row: VMRow) -> str:
    return f"{row.source_vm} ({row.source_id})" if row.source_id else str(row.source_vm)


def _name(*parts: str) -> str:
    return "/".join(filter(None, parts))


def _lines(rows: Iterable[VMRow]) -> str:
    return ", ".join(map(str, sorted({row.line for row in rows})[:_MOST_SHOWN]))
