"""Which column of a table of prefixes or addresses is which field, by the names of its header.

One list of names serves NetBox's exports and its import form, phpIPAM's exports and templates, and plain
spreadsheets, in English, German, French and Spanish. docs/how-to/bring-your-register.md shows the same as tables.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

from pools.core.register_import import attributes
from pools.core.spreadsheet_cells import DECORATION

PREFIX, ADDRESS, RANGE = KINDS = ("prefix", "address", "range")


def _words(text: str) -> list[str]:
    return text.split(", ")


# The field of a row -> the names of its column, in small letters and with single blanks. Of several columns of
# a field, the first in this order that has a text counts.
_NAMES = {
    "prefix": (
        "prefix, cidr, subnet, network, ipv4 network, ipv6 network, ipv4 subnet, ipv6 subnet, ipv4 netz, ipv6 netz, aggregate, network address, network prefix, ip range, "
        "range, ip block, ip network, ip subnet, ipv4 cidr, ipv6 cidr, address range, ipv4 address range, "
        "ipv6 address range, address prefix, address space, präfix, subnetz, netzwerk, netz, netzadresse, "
        "préfixe, réseau, sous réseau, adresse réseau, prefijo, red, subred, dirección de red, subnet address, subnet cidr, scopeid"
    ),
    "mask": (
        "mask, netmask, subnet mask, network mask, prefix length, prefixlen, mask length, cidr mask, "
        "bitmask, netzmaske, subnetzmaske, maske, masque, masque réseau, masque de sous réseau, "
        "máscara, máscara de red, máscara de subred, subnetmask, bm"
    ),
    "address": (
        "ip address, address, ip, ip addr, ipv4 address, ipv6 address, ipaddress, host address, "
        "ipv4, ipv6, host ip, hostaddr, ipaddr, ipv4addr, ipv6addr, ip adresse, adresse, adresse ip, dirección ip, dirección"
    ),
    "first": (
        "start address, start ip, start ip address, startrange, start addr, range start, first address, first ip, start, from, von, "
        "startadresse, erste adresse, erste ip, adresse de début, première adresse, première ip, début, "
        "dirección inicial, ip inicial, primera dirección, inicio, desde"
    ),
    "last": (
        "end address, end ip, end ip address, endrange, end addr, range end, last address, last ip, end, to, bis, endadresse, "
        "letzte adresse, letzte ip, adresse de fin, dernière adresse, dernière ip, fin, "
        "dirección final, ip final, última dirección, hasta"
    ),
    "status": "status, status name, ip state, state, ip status, ip address state, tag, zustand, statut, état, estado",
    "role": "role, role name, rolle, rôle, función, rol",
    "vrf": "vrf, vrf name, network view, namespace name, parent namespace name",
    "tenant": (
        "tenant, tenant name, customer, organization, organisation, org, company, department, kunde, "
        "mandant, firma, abteilung, client, entreprise, société, locataire, inquilino, cliente, organización, empresa"
    ),
    "site": (
        "site, location, location name, scope, scope name, section, standort, geltungsbereich, emplacement, lieu, "
        "sitio, sede, ubicación"
    ),
    "cluster": "cluster",
    "dns_name": (
        "dns name, hostname, fqdn, host name, system name, dns, host, server, server name, rechnername, "
        "gerätename, nom d hôte, nom dns, nom de machine, serveur, machine, nombre de host, nombre dns, servidor"
    ),
    "holder": (
        "holder, used by, assigned to, virtual machine, vm, device, device name, parent, user, "
        "übergeordnet, gerät, benutzer, inhaber, utilisateur, équipement, appareil, attribué à, affecté à, "
        "usuario, dispositivo, máquina virtual, asignado a"
    ),
    "owner": (
        "owner, contact, besitzer, eigentümer, verantwortlich, ansprechpartner, propriétaire, responsable, "
        "propietario, contacto"
    ),
    "interface": "interface, port, schnittstelle, interfaz",
    "pool": "pool name",
    "name": "name, network name, subnet name, netzname, nom, nombre",
    "description": (
        "description, comment, notes, purpose, beschreibung, bezeichnung, kommentar, zweck, "
        "verwendung, commentaire, libellé, objet, descripción, comentario"
    ),
    "note": (
        "note, comments, remark, remarks, kommentare, bemerkung, notiz, hinweis, commentaires, remarque, remarques, "
        "observations, notas, comentarios, observaciones"
    ),
    "mac": "mac, mac address, clientid, mac adresse, adresse mac, dirección mac",
    "vlan": "vlan, vlan number, vlan id, vlan vid",
    "gateway": (
        "gateway, is gateway, ip is gateway, is gw, default gateway, passerelle, puerta de enlace"
    ),
    "is_pool": "is pool, ispool, pool",
    "mark_utilized": "mark utilized, marked utilized, isfull, is full",
    "rir": "rir",
    "folder": "is folder, isfolder, folder",
    "tags": "tags",
    "external_id": "id",
}


_CLEAN = re.compile(r"(?:[^\w()]|_)+")
_ACCENTS = re.compile("[\u0300-\u036f]")


def _fold(name: str) -> str:
    """Return a name in small letters without accents and with single blanks."""
    if not name.isascii():
        name = _ACCENTS.sub("", unicodedata.normalize("NFKD", name))
    return _CLEAN.sub(" ", name.lower()).strip()


_FIELDS = {
    _fold(name): (field, rank)
    for field, names in _NAMES.items()
    for rank, name in enumerate(_words(names))
}
# Columns that a register computes, and that say nothing of the prefix or address itself.
_COMPUTED = set(
    _words(
        "children, utilization, depth, prefixes, size, family, created, "
        "last updated, assigned, contacts, url, marked populated, added, date added, "
        "prefix (flat), master subnet, last seen"
    )
)
# Of phpIPAM's exports, templates and database.
_PHPIPAM = set(
    _words(
        "section, ip state, ip is gateway, is gateway, master subnet, is folder, isfolder, "
        "fw object, tag, last seen, lastseen, vlan domain, host check, ip requests, subnetid, "
        "sectionid, mastersubnetid"
    )
)
# Of a range, but beside a prefix or an address rather a time.
_VAGUE = {"start", "end", "from", "to", "von", "bis", "debut", "fin", "inicio", "desde", "hasta"}
# What programs and people write into a cell that says nothing.
_UNSET = {"-", "–", "—", "n/a", "null", "noobject"}  # noqa: RUF001
_PLACE = re.compile(r"(?=.*[.:])[0-9a-fA-F.:]+(?:/[0-9.]+)?")


MENTIONS = "mentions"  # the field of what a row names beside its own addresses
# The names of two columns that have the ends of a range, in plain form.
_FIRST = re.compile(
    r"(?:^| |dhcp|ip)(?:start|begin|first|from|von|anf|erst|deb|prem|inic|prim|desde|low|min)"
)
_LAST = re.compile(r"(?:^| |dhcp|ip)(?:end|stop|last|to$|bis|letz|fin|dern|hasta|ult|high|upp|max)")
_LENGTH = re.compile("/?[0-9]{1,3}")
_REMARKS = {"description", "note", "name", "holder", "dns_name", "owner", "status", "pool"}
# The name of a column, its text, and whether it is read for something else: then only a range in it is an address.
Cell = tuple[str, str, bool]


def _are_ends(first: Cell, name: str, last: str) -> bool:
    """Return True unless an address stands beside a number of something else: *Primary DNS* and *Max hosts*."""
    is_number = not any(sign in last for sign in ".:")
    return not (is_number and any(sign in first[1] for sign in ".:")) or "dhcp" in name.lower()


@dataclass(frozen=True)
class Layout:
    """The kind of a table's rows, the columns (from 0) of each field, and by name those that are not read.

    `is_list` is True for a list without a header, of prefixes and addresses as they come. A row with texts behind its
    first `width` cells says more than the header names.
    """

    kind: str
    format: str
    columns: Mapping[str, Sequence[int]]
    ignored: Mapping[str, int] = field(default_factory=dict)
    is_list: bool = False
    width: int = 0
    names: Sequence[str] = ()  # of the columns, as the header has them

    @property
    def used_columns(self) -> frozenset[int]:
        """The columns that are read."""
        return frozenset(column for numbers in self.columns.values() for column in numbers)

    def has_more(self, cells: Sequence[str]) -> bool:
        return any(map(str.strip, cells[self.width :]))

    def values(self, cells: Sequence[str]) -> dict[str, str]:
        """Return the texts of a row by field, without the empty ones."""
        texts: dict[str, str] = {}
        for name in self.columns:
            by_column = self._texts(cells, name)
            if len(by_column) > 1 and name in {PREFIX, ADDRESS}:
                texts[name] = _join_places(name, list(by_column.values()))
            elif by_column:
                texts[name] = next(iter(by_column.values()))
            for text in (
                by_column.values() if name == PREFIX and "/" not in texts.get(name, "") else ()
            ):
                if _LENGTH.fullmatch(text):  # Subnet and CIDR
                    texts.setdefault("mask", text)
        return texts

    def others(self, cells: Sequence[str]) -> list[Cell]:
        """Return the cells of a row that have no place of it; two with the ends of a range as one."""
        found: list[Cell] = []
        before = -1
        for column, text in enumerate(cells):
            if not text or column in self._places:
                continue
            name = self.names[column] if column < len(self.names) else ""
            if (before, column) in self._ends and _are_ends(found[-1], name, text):
                first = found.pop()
                found.append((f"{first[0]} {name}", f"{first[1]}-{text}", False))
            else:
                found.append((name, text, column in self._remarks))
            before = column
        return found

    @cached_property
    def _ends(self) -> frozenset[tuple[int, int]]:
        """The pairs of columns that have the ends of a range."""
        names = [_fold(name) for name in self.names]
        firsts = [column for column, name in enumerate(names) if _FIRST.search(name)]
        lasts = [column for column, name in enumerate(names) if _LAST.search(name)]
        return frozenset(product(firsts, lasts))

    @cached_property
    def _remarks(self) -> frozenset[int]:
        # Beside addresses also the column of prefixes, which has the lines below a table.
        names = _REMARKS if self.kind == PREFIX else {*_REMARKS, PREFIX}
        return frozenset(n for name in names & self.columns.keys() for n in self.columns[name])

    @cached_property
    def _places(self) -> frozenset[int]:
        """The columns of which no text is looked through: they are read, and no remarks."""
        ends = () if self.kind == RANGE else ("first", "last")  # one without the other
        unread = frozenset(n for name in ends for n in self.columns.get(name, ()))
        return self.used_columns - self._remarks - unread

    def unlike(self, cells: Sequence[str]) -> list[str]:
        """Return the names of columns with another text than the one that is read for their field."""
        several = [name for name, numbers in self.columns.items() if len(numbers) > 1]
        values = self.values(cells) if several else {}
        return [
            self.names[column].strip()
            for name in several
            for column, text in self._texts(cells, name).items()
            if text.lower() not in values.get(name, "").lower()
        ]

    def _texts(self, cells: Sequence[str], name: str) -> dict[int, str]:
        """Return the texts of the columns of a field that have one; a VRF without a name is the global one."""
        numbers = self.columns[name]
        texts = {n: cells[n].strip(DECORATION) for n in numbers if n < len(cells)}
        unset = () if name == "vrf" else _UNSET
        return {
            column: text for column, text in texts.items() if text and text.lower() not in unset
        }

    def with_custom_fields(self, names: Mapping[str, str]) -> Layout:
        """Return the layout that also reads columns named as a custom field, by its name or its label (`names`)."""
        read = {header: names[key] for header in self.ignored if (key := clean(header)) in names}
        added = {
            f"{attributes.PREFIX}{name}": [self.ignored[header]] for header, name in read.items()
        }
        others = {header: column for header, column in self.ignored.items() if header not in read}
        return replace(self, columns={**added, **self.columns}, ignored=others) if read else self


def _join_places(field: str, texts: Sequence[str]) -> str:
    """Return the addresses, or the first prefix of each family, in one text, if columns of the field have any.

    Clouds have a column for each family, and a column *Subnet* of names beside that of prefixes.
    """
    places: dict[object, str] = {}
    for text in filter(_PLACE.fullmatch, texts):
        places.setdefault(text.partition("/")[0] if field == ADDRESS else ":" in text, text)
    return ", ".join(places.values()) or texts[0]


def clean(name: str) -> str:
    """Return a name of a column in its plain form; an attribute of Infoblox without `EA-`."""
    return _fold(name).removeprefix("ea ")


def recognise(header: Sequence[str]) -> Layout | None:
    """Return the layout of a table with this header; None if it names neither prefixes nor addresses."""
    names = [_fold(cell) for cell in header]
    custom_fields = {}
    has_place = any(_FIELDS.get(name, ("", 0))[0] in {PREFIX, ADDRESS} for name in names)
    ranked: dict[str, list[tuple[int, int]]] = defaultdict(list)
    ignored = {}
    for column, name in enumerate(names):
        if name == "type" and "namespace name" in names:  # of Nautobot's prefixes
            ranked[name].append((0, column))
        elif name in _FIELDS and not (has_place and name in _VAGUE):
            field, rank = _FIELDS[name]
            ranked[field].append((rank, column))
        elif header[column].strip().lower().startswith(attributes.PREFIX):
            custom_fields[header[column].strip()] = [column]
        elif name and name not in _COMPUTED:
            ignored[header[column].strip()] = column
    columns = {field: [column for _, column in sorted(pairs)] for field, pairs in ranked.items()}
    if {"host", "mask length"} <= set(names) and ADDRESS not in columns:  # of Nautobot's addresses
        columns[ADDRESS] = [names.index("host")]
        columns["dns_name"] = [n for n in columns["dns_name"] if n not in columns[ADDRESS]]
    kind = _kind(columns)
    if kind is None:
        return None
    register = _format(names)
    _settle_names(columns, kind, register)
    return Layout(
        kind, register, {**columns, **custom_fields}, ignored, width=len(header), names=header
    )


def has_place(cells: Sequence[str]) -> bool:
    """Return True for a row with a prefix or an address, which is no header."""
    return any(_PLAIN_ADDRESS.fullmatch(cell.strip().partition("/")[0]) for cell in cells)


def _kind(columns: Mapping[str, Sequence[int]]) -> str | None:
    if "first" in columns and "last" in columns:
        return RANGE
    if "address" in columns:
        return ADDRESS
    return PREFIX if "prefix" in columns else None


def _format(names: Sequence[str]) -> str:
    # A port of a device is that of a switch.
    if _PHPIPAM & set(names) or {"device", "port"} <= set(names):
        return "phpipam"
    has_status = not {"status", "statut", "estado"}.isdisjoint(names)
    netbox = (has_status and "vrf" in names) or "rir" in names or "scope type" in names
    return "netbox" if netbox else "spreadsheet"


def _settle_names(columns: dict[str, list[int]], kind: str, register: str) -> None:
    """Give the columns that mean different things in different registers their field."""

    def move(source: str, target: str) -> None:
        if source in columns:
            columns[target] = [*columns.get(target, ()), *columns.pop(source)]

    if kind == ADDRESS:
        move("name", "dns_name")
    elif register != "phpipam":
        move("holder", "owner")  # nobody holds a prefix or a range
    if register == "phpipam":
        # The device is the switch at whose port the host is.
        move("holder", "device")
    elif register == "spreadsheet" and kind == ADDRESS:
        move("owner", "holder")


def guess(cells: Sequence[str]) -> Layout | None:
    """Return the layout of a list without header that begins with a prefix or an address; None for others."""
    cells = split_place(cells)
    first = cells[0].strip()
    if _PLAIN_PREFIX.fullmatch(first):
        return _list(PREFIX, ("prefix", "description", "tenant"))
    if _PLAIN_ADDRESS.fullmatch(first):
        return _list(ADDRESS, ("address", "holder", "description", "tenant"))
    return None


def split_place(cells: Sequence[str]) -> Sequence[str]:
    """Return two cells for the one of a line like `10.0.0.5 web-1`, as lists of hosts are written."""
    parts = cells[0].split(maxsplit=1)
    if len(parts) < 2 or not parts[1][0].isalpha() or any(map(str.strip, cells[1:])):
        return cells
    is_place = _PLAIN_ADDRESS.fullmatch(parts[0]) or _PLAIN_PREFIX.fullmatch(parts[0])
    return parts if is_place else cells


_PLAIN_ADDRESS = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9a-fA-F]{0,4}(:[0-9a-fA-F]{0,4}){2,7}")
_PLAIN_PREFIX = re.compile(rf"(?:{_PLAIN_ADDRESS.pattern})/[0-9.]+")


def _list(kind: str, names: Sequence[str]) -> Layout:
    columns = {name: (column,) for column, name in enumerate(names)}
    return Layout(kind, "spreadsheet", columns, is_list=True, width=len(names))
