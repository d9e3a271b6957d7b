"""The entry or IPAMClaim of the register that a row of an import is about: how they differ, and what it becomes."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_interface
from typing import Any

from claims.core.entries import EntrySpec
from claims.entries import entries
from claims.models import Entry, IPAMClaim, VMRow

Object = Entry | IPAMClaim


def hosts(ips: Iterable[str]) -> list[str]:
    return [ip.partition("/")[0] for ip in ips]


@dataclass(frozen=True)
class Match:
    """The entry or claim that a row is about, and how they differ; `fixed` says why it cannot be changed."""

    object: Object
    changes: list[str]
    fixed: str = ""

    @property
    def same(self) -> bool:
        return not (self.changes or self.fixed)

    @property
    def values(self) -> dict[str, Any]:
        """What an import may change of the entry or claim."""
        item = self.object
        ips = item.ips if isinstance(item, Entry) else item.ips_requested
        texts = {name: getattr(item, name) for name in ("vm", "namespace", "note")}
        return {"mac": item.mac and str(item.mac), "ips": ips, **texts}


def ips_of(item: Object) -> list[str]:
    """Return the addresses of an entry, or those that a claim was granted or else requests."""
    return item.ips if isinstance(item, Entry) else item.ips or item.ips_requested


def complete(ips: Sequence[str], registered: Collection[str]) -> list[str]:
    """Return the addresses of a row, with the registered ones of a family that it lacks, or of which it has those and others."""
    count = Counter(map(_family, ips))
    decided = {_family(ip) for ip in registered if count[_family(ip)] > 1 and ip in ips}
    kept = [ip for ip in ips if _family(ip) not in decided or ip in registered]
    return kept + [ip for ip in registered if not count[_family(ip)]]


def _family(ip: str) -> int:
    return ip_interface(ip).version


def match_entry(row: VMRow, entry: Entry) -> Match:
    changes = []
    if set(entry.ips) != set(row.ips):
        changes.append(f"addresses {', '.join(entry.ips)} become {', '.join(row.ips)}")
    if row.vm not in {"", entry.vm}:
        changes.append(f"VM {entry.vm or 'none'} becomes {row.vm}")
    if row.namespace not in {"", entry.namespace}:
        changes.append(f"namespace {entry.namespace or 'none'} becomes {row.namespace}")
    if row.note not in {"", entry.note}:
        changes.append("note")
    return Match(entry, changes)


def match_claim(row: VMRow, claim: IPAMClaim) -> Match:
    changes = []
    if row.mac and row.mac != claim.mac:
        changes.append(f"MAC {claim.mac or 'none'} becomes {row.mac}")
    if row.ips and set(hosts(row.ips)) != set(hosts(ips_of(claim))):
        requested = ", ".join(claim.ips_requested) or "none"
        changes.append(f"requested addresses {requested} become {', '.join(row.ips)}")
    if row.note not in {"", claim.note}:
        changes.append("note")
    fixed = ""
    if claim.network_id != row.network_id:
        fixed = "belongs to another network"
    elif claim.deleted_at or claim.gone_at:
        fixed = "is being deleted"
    elif changes and claim.ips:
        fixed = f"has the addresses {', '.join(claim.ips)}, which cannot be changed"
    elif changes and claim.follows_cluster:
        fixed = "belongs to the cluster: change its object there"
    return Match(claim, changes, fixed)


# --- what it becomes ---


def spec(row: VMRow) -> EntrySpec:
    return EntrySpec(row.mac or "", tuple(row.ips), row.vm, row.namespace, row.note)


def changed_entry(entry: Entry, row: VMRow) -> entries.EntryRow:
    """Return the entry with the values of the row; an empty value of the row keeps the entry's value."""
    return entries.EntryRow(
        entry.pk,
        entry.mac or "",
        tuple(row.ips),
        row.vm or entry.vm,
        row.namespace or entry.namespace,
        row.note or entry.note,
    )


def changed_claim(claim: IPAMClaim, row: VMRow) -> IPAMClaim:
    claim.mac = row.mac or claim.mac
    claim.ips_requested = list(row.ips) or claim.ips_requested
    claim.note = row.note or claim.note
    return claim
