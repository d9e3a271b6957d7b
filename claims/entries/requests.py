"""Address requests of VM owners: entries for VMs in their own namespaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from claims.access import namespaces
from claims.address_index import duplicates
from claims.core.entries import EntrySpec
from claims.models import Entry, IPPool
from claims.models.ippools import EntrySource
from pools.core import errors


def check(user: Any, ippool: IPPool, specs: Sequence[EntrySpec]) -> None:
    """Check that a user may create these entries, each for a VM in a namespace of the user.

    Rule `taken-address-names-nobody` refuses addresses and MACs that are used elsewhere or by the
    network itself. Conflicts among rows that the user may see are allowed, as for administrators.
    Raises NotAllowed, InvalidInput, AlreadyAllocated, ReservedAddress.
    """
    if not user.has_perm("claims.add_entry") and not user.has_perm("claims.request_address"):
        raise errors.NotAllowed("This needs the permission claims.request_address.")
    scope = namespaces.owner_scope(user)
    problems = []
    for index, spec in enumerate(specs):
        prefix = f"{index}." if len(specs) > 1 else ""
        problems += [
            errors.FieldProblem(f"{prefix}{name}", "required", "required: select one of your VMs")
            for name in ("namespace", "vm")
            if not getattr(spec, name)
        ]
    if problems:
        raise errors.InvalidInput.all(problems)
    for spec in specs:
        namespaces.require_request(user, ippool.cluster_id, spec.namespace or "")
    for spec in specs:
        _refuse_taken(ippool, spec, scope)


def _refuse_taken(ippool: IPPool, spec: EntrySpec, scope: namespaces.Scope) -> None:
    entry_duplicates = duplicates.of_candidate(
        ippool.network,
        mac=spec.mac,
        addresses=[ip.partition("/")[0] for ip in spec.ips],
        vm=spec.vm or "",
        namespace=spec.namespace or "",
        scope=scope,
    )
    for duplicate in entry_duplicates:
        if duplicate.note:
            continue
        if any(occurrence.is_own for occurrence in duplicate.occurrences):
            raise errors.ReservedAddress(f"{duplicate.value} is reserved for the network itself.")
        if any(occurrence.type == "other" for occurrence in duplicate.occurrences):
            raise errors.AlreadyAllocated(f"{duplicate.value} is already in use.")


def may_withdraw(user: Any, entry: Entry) -> bool:
    """Return True if the user may delete the entry: any entry, or the request of an owner of its VM."""
    if user.has_perm("claims.delete_entry"):
        return True
    if entry.source != EntrySource.REQUEST or not user.has_perm("claims.request_address"):
        return False
    return namespaces.owner_scope(user).has(entry.ippool.cluster_id, entry.namespace)


def require_withdrawal(user: Any, entry: Entry) -> None:
    """Raise NotAllowed unless the user may delete the entry."""
    if not may_withdraw(user, entry):
        raise errors.NotAllowed("This needs the permission claims.delete_entry.")
