"""The MACs and addresses that a change of index entries affects; their conflicts are checked again."""

from __future__ import annotations

from dataclasses import dataclass, field

Name = tuple[str, str]  # kind and id of a holder


@dataclass
class ChangedKeys:
    """MACs and addresses by network id; each address with its former holders."""

    macs: dict[int, set[str]] = field(default_factory=dict)
    addresses: dict[int, dict[str, set[Name]]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.macs or self.addresses)

    def add(
        self, network_id: int, mac: str | None, address: str | None, former: Name | None
    ) -> None:
        """Add the keys of an index entry that is created or deleted; `former` held its address so far."""
        if mac:
            self.macs.setdefault(network_id, set()).add(mac)
        if address:
            formers = self.addresses.setdefault(network_id, {}).setdefault(address, set())
            if former:
                formers.add(former)

    @property
    def networks(self) -> set[int]:
        return {*self.macs, *self.addresses}
