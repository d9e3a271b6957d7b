"""Recognition of table columns by name, in any order and case, among any other columns.

The names also determine the kind of table: vNetwork and vInfo of RVTools (also with the names that
`-DBColumnNames` writes), the shapes of PowerCLI, the template, lists of two or three columns.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from claims.core import macs
from claims.core.vm_import import cells
from pools.core import addresses, errors, spreadsheet_cells
from pools.core.spreadsheet_cells import MAX_COLUMNS

VNETWORK = "vNetwork"
VINFO = "vInfo"
TEMPLATE = "template"
POWERCLI = "powercli"
LIST = "two-column"

_Names = dict[str, list[str]]


def _words(**texts: str) -> _Names:
    return {role: text.split() for role, text in texts.items()}


# Names of the column of each role, the best first, in English, German, French, Spanish and Japanese; blanks and
# punctuation are ignored.
_VNETWORK_NAMES = _words(
    vm="vm vnetworkvmname",
    id="vmid vnetworkvmid",
    template="template vnetworktemplate",
    power="powerstate vnetworkpowerstate",
    placeholder="srmplaceholder vnetworksrmplaceholder",
    mac="macaddress vnetworkmacaddress",
    ip="ipv4address vnetworkip4address vnetworkipv4address ipaddress",
    ip6="ipv6address vnetworkip6address vnetworkipv6address",
    network="network vnetworkname vnetworknetwork",
)
_VINFO_NAMES = _words(
    vm="vm vinfovmname",
    template="template vinfotemplate",
    power="powerstate vinfopowerstate",
    placeholder="srmplaceholder vinfosrmplaceholder",
    ip="primaryipaddress vinfoprimaryipaddress",
    network="network1 vinfonetwork1",
)
_OTHER_NAMES = _words(
    vm="vm vmname virtualmachine virtualmachinename parent name"
    " virtuellemaschine machinevirtuelle nom nomdelavm máquinavirtual nombre nombredelamv 仮想マシン 仮想マシン名",
    id="vmid",
    host="hostname server servername computername machine guestname serveur servidor",
    template="template istemplate vorlage modèle modele plantilla テンプレート",
    power="powerstate power state vmstate energiestatus betriebszustand 電源 estado état zustand status",
    mac="macaddress mac macaddresses macs macaddr hwaddress macadresse adressemac direcciónmac"
    " hwaddr macアドレス",
    ip="ipaddress ipaddresses ip ips ipv4address ipv4addresses ipv4 address addresses"
    " guestipaddress guestip primaryipaddress fixedips fixedipaddresses"
    " ipadresse ipadressen ipv4adresse adresseip adressesip adresseipv4 adressesipv4 direcciónip direccionesip"
    " direcciónipv4 ipアドレス",
    ip6="ipv6address ipv6addresses ipv6 ipv6adresse adresseipv6 adressesipv6 direcciónipv6",
    prefix="prefixlength prefix prefixlen subnetmask netmask mask subnetzmaske netzmaske masque"
    " máscara máscaradesubred",
    # The last one of the first line is used in the export of entries; a switch is what Hyper-V has.
    network="networkname network portgroup portgroupname ippoolnetworkname"
    " switchname switch netzwerk portgruppe réseau reseau groupedeports red networklabel vnicprofile ネットワーク",
    namespace="namespace targetnamespace namensraum",
    note="note notiz bemerkung remarque nota",
    origin="origin",
)
_VNETWORK_ONLY = {"srmplaceholder", "niclabel", "startsconnected", "directpathio", "ipv4address"}
_TEMPLATE_KEYS = {"vm", "macaddress", "ipaddresses"}
_NO_SIGNS = re.compile(r"[\W_]+")
_ARROWS = re.compile("->|=>|=")
_LONGEST_LINE = 2000  # characters that are looked at
_COMMENT = re.compile("#|sep=.?$", re.IGNORECASE)


@dataclass(frozen=True)
class ColumnLayout:
    """The columns of a table, from 0, by their role: vm, mac, ip, ip6, prefix, network, and so on.

    `names` are the cells of the header, to recognise a repeated header; empty without a header.
    """

    kind: str
    roles: Mapping[str, int]
    width: int = 0
    names: tuple[str, ...] = field(default=(), compare=False)

    def cell(self, row: Sequence[str], role: str) -> str:
        """Return the cell of a role, "" if the table has no such column."""
        column = self.roles.get(role)
        return "" if column is None else row[column]

    def addresses(self, row: Sequence[str]) -> list[str]:
        """Return the cells with addresses."""
        return [row[self.roles[role]] for role in ("ip", "ip6") if role in self.roles]

    @property
    def unread(self) -> list[str]:
        """The names of the columns that are not read; of RVTools, which has dozens that say nothing of addresses, none."""
        if self.kind in (VNETWORK, VINFO):
            return []
        return [
            name.strip()
            for column, name in enumerate(self.names)
            if name.strip() and column not in self.used_columns
        ]

    @cached_property
    def used_columns(self) -> frozenset[int]:
        """The columns that are read."""
        return frozenset(self.roles.values())

    def join_addresses(self, row: Sequence[str]) -> Sequence[str]:
        """Return a row of a list with the addresses of all following cells joined in one cell."""
        ip = self.roles.get("ip")
        if ip == max(self.used_columns) and len(row) > ip + 1:
            return [*row[:ip], ", ".join(cell for cell in row[ip:] if cell)]
        return row

    @property
    def rank(self) -> int:
        """Preference among several sheets or files; the lowest rank is read."""
        generic = 2 if "vm" in self.roles else 4
        return {VNETWORK: 0, TEMPLATE: 1, VINFO: 3}.get(self.kind, generic)


def recognise(header: Sequence[str]) -> ColumnLayout | None:
    """Return the layout of a header, or None if the cells are no known header.

    Raises InvalidInput `duplicate_header` if a column that is read occurs twice.
    """
    keys = [_NO_SIGNS.sub("", cell.lower()) if cell else "" for cell in header[:MAX_COLUMNS]]
    key_set = set(keys)
    kind, names = _kind(key_set)
    columns_by_role = {
        role: next((keys.index(name) for name in choices if name in keys), -1)
        for role, choices in names.items()
    }
    roles = {role: column for role, column in columns_by_role.items() if column >= 0}
    host = roles.pop("host", None)
    if host is not None and "mac" in roles:  # without MACs it may be a register of hosts
        roles.setdefault("vm", host)
    if "mac" not in roles and not {"vm", "ip"} <= roles.keys():
        return None
    _refuse_duplicates(header, keys, roles)
    if kind == POWERCLI and len([key for key in keys if key]) <= 3 and len(roles) <= 3:
        kind = LIST
    width = max((index for index, key in enumerate(keys) if key), default=-1) + 1
    return ColumnLayout(kind, roles, width, tuple(str(cell) for cell in header[:MAX_COLUMNS]))


def find_header(first: Sequence[Sequence[str]], delimiter: str) -> tuple[int, ColumnLayout] | None:
    """Return the place of the header among the first rows, from 1, and the layout; the place 0 for a list without one.

    Without a delimiter each row is one cell: a line of values with blanks between them. Raises InvalidInput
    `duplicate_header`.
    """
    for number, row in enumerate(first if delimiter else (), start=1):
        if len(row) > 1 and (layout := recognise(row)) is not None:
            return number, layout
    row = next((row for row in first if any(row) and not is_comment(row)), [])
    if not delimiter:
        return (0, LOOSE) if is_list_line(row) else None
    guessed = guess(row) if len(row) > 1 else None
    return (0, guessed) if guessed is not None and len(guessed.used_columns) > 1 else None


def is_comment(row: Sequence[str]) -> bool:
    """Return True for `#TYPE` of PowerShell, `sep=` of Excel, and comments."""
    return bool(row) and _COMMENT.match(row[0]) is not None


def _kind(key_set: set[str]) -> tuple[str, _Names]:
    if "vnetworkvmname" in key_set or (
        {"vm", "macaddress"} <= key_set and len(_VNETWORK_ONLY & key_set) >= 2
    ):
        return VNETWORK, _VNETWORK_NAMES
    if "vinfovmname" in key_set or (
        {"vm", "primaryipaddress"} <= key_set and not key_set & set(_OTHER_NAMES["mac"])
    ):
        return VINFO, _VINFO_NAMES
    return (TEMPLATE if key_set >= _TEMPLATE_KEYS else POWERCLI), _OTHER_NAMES


def _refuse_duplicates(header: Sequence[str], keys: list[str], roles: dict[str, int]) -> None:
    for column in roles.values():
        if keys.count(keys[column]) > 1:
            message = f"the column {errors.display_value(header[column])} occurs twice"
            raise errors.InvalidInput.for_field("header", "duplicate_header", message)


def guess(row: Sequence[str]) -> ColumnLayout | None:
    """Guess the layout of a list without a header from its first row.

    The columns are MAC addresses, IP addresses and names, in any order. Returns None without one of
    the first two.
    """
    found = {"mac": _find_column(row, _is_mac), "ip": _find_column(row, _has_addresses)}
    roles = {role: column for role, column in found.items() if column >= 0}
    if not roles:
        return None
    rest = [
        index for index, cell in enumerate(row[:4]) if index not in roles.values() and cell.strip()
    ]
    return ColumnLayout(LIST, roles | ({"vm": rest[0]} if rest else {}), max(len(row), 3))


LOOSE = ColumnLayout(LIST, {"vm": 0, "mac": 1, "ip": 2}, 3)


def split_line(row: Sequence[str]) -> list[str]:
    """Split a line with blanks into VM, MAC address and IP addresses, which may be in any order.

    A `#` begins a comment.
    """
    names, mac, ips = [], "", []
    line = _ARROWS.sub(" ", (row[0] if row else "").partition("#")[0])
    for part in spreadsheet_cells.split_words(line):
        if not mac and _is_mac(part):
            mac = part
        elif _has_addresses(part):
            ips.append(part)
        else:
            names.append(part)
    if not mac and names and len(names) > 1:
        mac = names.pop()  # so that the row has the problem of this MAC
    return [" ".join(names), mac, ", ".join(ips)]


def is_list_line(row: Sequence[str]) -> bool:
    """Return True if the line has a MAC address or IP addresses."""
    _, mac, ips = split_line([cell[:_LONGEST_LINE] for cell in row])
    return bool(ips) or (bool(mac) and _is_mac(mac))


def _find_column(row: Sequence[str], matches: Callable[[str], bool]) -> int:
    return next((index for index, cell in enumerate(row[:8]) if cell.strip() and matches(cell)), -1)


def _is_mac(text: str) -> bool:
    try:
        macs.parse_mac(str(text), lenient=True)
    except errors.InvalidInput as error:
        return error.code in ("multicast_mac", "zero_mac", "eui64_not_supported")
    return True


def _has_addresses(text: str) -> bool:
    parts = cells.split_cell(text)
    if not 0 < len(parts) <= cells.MAX_IN_A_CELL:
        return False
    try:
        addresses.parse_address(parts[0].partition("/")[0])
    except errors.InvalidInput as error:
        return error.code in ("leading_zero", "zone_id_not_allowed")
    return True
