"""One search for lists, Find, the command palette and REST: the rows that contain a text.

The text is an address, a CIDR, a range, or a name. Each app declares what is searched of its tables; its extension adds
it to COLUMNS. PostgreSQL reads the table, which is quick up to some 100,000 rows: no index serves parts of texts.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from ipaddress import IPv6Network, ip_interface, ip_network
from operator import and_, or_
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db.models import BooleanField, F, Func, Model, Q, QuerySet, TextField, Value
from django.db.models.functions import Cast
from django.db.models.lookups import In
from django.utils.text import smart_split, unescape_string_literal
from django.utils.translation import gettext as _

from pools.core import addresses, errors

LONGEST = 253
_GROUPS = re.compile(r"(?:[0-9a-f]{1,4}:){1,7}[0-9a-f]{0,4}", re.IGNORECASE)
_OCTETS = re.compile(r"\d{1,3}(?:\.\d{1,3}){0,2}\.?")
# An address as logs and URLs show it: `[2001:db8::1]:443`, `10.0.0.7:443`, `(10.0.0.7),`, `fe80::1%eth0`.
_PASTED = re.compile(
    r"(?:[a-z]+://)?[^\w:]*+(\d+(?:\.\d+){3}|[0-9a-f]*+:[0-9a-f:.]++)(?:%\w+)?[^\w:]*+(?::\d+)?+\W*+",
    re.IGNORECASE,
)
# Where unicast addresses are; an IPv6 address elsewhere, `::beef`, is a part of one.
_UNICAST = [IPv6Network(text) for text in ("2000::/3", "fc00::/7", "fe80::/10")]


@dataclass(frozen=True)
class Spelling:
    """How the register spells a text that is no address, or what is wrong with the text."""

    texts: tuple[str, ...] = ()
    hint: str = ""


# Returns None for a text that it does not recognize. Recognizers come before CIDRs, because a MAC
# address may look like an address.
Recognizer = Callable[[str], Spelling | None]
RECOGNIZERS: list[Recognizer] = []  # filled by pools.extension


@dataclass(frozen=True)
class SearchText:
    """A parsed search text; `network` is its address (as /32 or /128) or CIDR, None for a name."""

    text: str
    network: addresses.Network | None = None
    hint: str = ""  # what is wrong with a text that looks like an address
    spellings: tuple[str, ...] = ()  # other texts that mean the same: MACs as they are stored
    is_part: bool = False  # of addresses: `10.20.5`, whose network is 10.20.5.0/24, or `::beef`

    @property
    def address(self) -> addresses.Address | None:
        """The address, if the text is a single address."""
        if self.network is None or self.network.prefixlen < self.network.max_prefixlen:
            return None
        return self.network.network_address

    @property
    def interface(self) -> addresses.Address | None:
        """The address in a text such as `10.0.0.5/24`, else the single address."""
        if self.network is None or not self.hint or "/" not in self.text:
            return self.address
        return ip_interface(self.text).ip


def parse(text: str) -> SearchText:
    """Parse a search text; never fails, as any other text is a name. A CIDR's host bits are ignored."""
    cleaned = "".join(char for char in text.strip()[:LONGEST] if char.isprintable())
    cleaned = _without_stars(unicodedata.normalize("NFC", cleaned).strip())
    try:
        address = addresses.parse_address(cleaned, source=addresses.InputSource.TEXT)
        network = ip_network(address)
        is_part = isinstance(network, IPv6Network) and not any(map(network.subnet_of, _UNICAST))
        return SearchText(cleaned, network, is_part=is_part)
    except errors.InvalidInput as error:
        hint = error.message if _looks_like_address(cleaned) else ""
    for recognize in RECOGNIZERS:
        spelling = recognize(cleaned)
        if spelling is not None:
            return SearchText(cleaned, hint=spelling.hint, spellings=spelling.texts)
    try:
        network = addresses.parse_cidr(cleaned, source=addresses.InputSource.TEXT, allow_short=True)
        return SearchText(cleaned, network)
    except errors.InvalidInput as error:
        if error.code == "host_bits_set":
            return SearchText(
                cleaned, ip_network(cleaned, strict=False), hint=_("host bits ignored")
            )
        if "/" in cleaned and _looks_like_address(cleaned):
            hint = error.message
    part = _parse_octets(cleaned) or _parse_groups(cleaned)
    if part:
        return SearchText(cleaned, part, is_part=True)
    return _parse_pasted(cleaned) or _parse_range(cleaned, hint)


def _without_stars(text: str) -> str:
    """Return a text without stars at its ends, as `10.20.*.*` and `*web*`: texts are found by any part of them."""
    part = text.lstrip("*")
    while part.endswith("*"):
        part = part.rstrip("*")
        part = part[:-1] if part.endswith((".", ":")) else part
    return part.strip() or text


def _parse_pasted(text: str) -> SearchText | None:
    match = _PASTED.fullmatch(text)
    try:
        address = (
            addresses.parse_address(match[1], source=addresses.InputSource.TEXT) if match else None
        )
    except errors.InvalidInput:
        return None
    return SearchText(str(address), ip_network(address)) if address else None


def _parse_range(text: str, hint: str) -> SearchText:
    try:
        span = addresses.parse_range(text, source=addresses.InputSource.TEXT)
    except errors.InvalidInput:
        return SearchText(text, hint=hint)
    hint = _("the smallest CIDR that contains the range")
    return SearchText(text, _enclosing(span), hint=hint)


def _parse_octets(text: str) -> addresses.Network | None:
    """Return the CIDR of the first octets of an IPv4 address, `10.20.5` or `10.`; None for another text."""
    if "." not in text or not _OCTETS.fullmatch(text):
        return None
    octets = text.rstrip(".").split(".")
    try:
        return ip_network(f"{'.'.join([*octets, '0', '0', '0'][:4])}/{8 * len(octets)}")
    except ValueError:
        return None


def _parse_groups(text: str) -> addresses.Network | None:
    """Return the CIDR of the first groups of an IPv6 address, `2001:db8:10` or `fd00:`; None for another text."""
    groups = text.rstrip(":").split(":")
    # Groups of two digits are rather the beginning of a MAC address.
    if not _GROUPS.fullmatch(text) or len(groups) > 7 or max(map(len, groups)) < 3:
        return None
    return ip_network(f"{':'.join(groups)}::/{16 * len(groups)}")


def _enclosing(span: addresses.AddressRange) -> addresses.Network:
    """Return the smallest CIDR that contains a range."""
    shared = span.first.max_prefixlen - (int(span.first) ^ int(span.last)).bit_length()
    return ip_network((span.first, shared), strict=False)


def _looks_like_address(text: str) -> bool:
    return bool(text) and text[0] in "0123456789abcdefABCDEF:" and ("." in text or ":" in text)


# --- rows -----------------------------------------------------------------------------------------

MOST = 10_000  # found events
FEW = 5_000  # rows whose ids a statement names; where more match, the table is read again


@dataclass(frozen=True)
class Searched:
    """What is searched of a table.

    `texts` are names, MACs and other texts, in the order in which pages join them by slashes (`org`, `env`).
    `cidrs` have an address or a CIDR, `arrays` lists of addresses. `keys` have the id of a row of another
    searched table, whose texts are searched too. `json` and `json_cidrs` are values of JSON columns, by their path: texts
    or lists of texts, and addresses, CIDRs or lists of them. `parts` are searched tables with rows inside of a row, by
    the column with its id.
    """

    texts: tuple[str, ...] = ()
    cidrs: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()
    json: tuple[str, ...] = ()
    json_cidrs: tuple[str, ...] = ()
    keys: Mapping[str, type[Model]] = field(default_factory=dict)
    parts: Mapping[type[Model], str] = field(default_factory=dict)


COLUMNS: dict[type[Model], Searched] = {}  # filled by pools.extension


class _Contains(Func):
    """True if one of some lists has an address inside of a CIDR, or a CIDR around an address."""

    # `10.0.0.5/24` is an address with the prefix length of its network, `10.0.0.0/24` a CIDR.
    template = """EXISTS (SELECT FROM (SELECT %(expressions)s) AS s (list, searched), unnest(s.list) AS text,
        LATERAL (SELECT CASE WHEN text::inet = network(text::inet) THEN text::inet
                             ELSE host(text::inet)::inet END) AS a (address)
        WHERE a.address %(operator)s s.searched::inet)"""
    output_field = BooleanField()


class _JSONTexts(Func):
    """The text of a value of a JSON column, or the texts of a list, as a list."""

    template = "ARRAY(SELECT jsonb_path_query(%(expressions)s, '$[*]') #>> '{}')"
    output_field = ArrayField(TextField())


def matching(rows: QuerySet[Any], text: str) -> QuerySet[Any]:
    """Return the rows that contain a text, each of its words, or its address; of a CIDR what is inside or equal.

    If nothing is inside of a CIDR, these are the rows with a CIDR around it.
    """
    searched = parse(text)
    if not searched.text:
        return rows.none()
    conditions = [_condition(rows.model, searched)]
    if searched.network is not None and searched.address is None and not searched.is_part:
        conditions.append(_condition(rows.model, searched, around=True))
    for condition in conditions:
        matches: QuerySet[Any] = _with_texts(rows).filter(condition)
        ids = list(matches.order_by().values_list("pk", flat=True)[: FEW + 1])  # reads the table
        if ids:
            return matches if len(ids) > FEW else rows.filter(pk__in=ids)
    return rows.none()


def best_first(rows: QuerySet[Any], text: str, most: int) -> list[Any]:
    """Return at most `most` rows of a search, first those with a column that is the text.

    The others are in no order: PostgreSQL stops reading as soon as it has them.
    """
    name = parse(text).text
    columns = COLUMNS[rows.model]
    if "/" in name:  # `org/env`, two columns
        whole = Q(searched_text__icontains=f"/{name}/")
    else:
        spellings = {name, name.lower(), name.upper()}
        texts = [Cast(F(column), TextField()) for column in (*columns.texts, *columns.cidrs)]
        whole = reduce(or_, (Q(In(column, spellings)) for column in texts))
    first = rows.alias(searched_text=_joined(columns)).filter(whole).order_by("pk")[:most]
    return list(dict.fromkeys([*first, *rows.order_by()[:most]]))[:most]


def describe(row: Model) -> str:
    """Return what is searched of a row, but for what its name says: the texts that a search may have found."""
    columns = COLUMNS[type(row)]
    paths = (*columns.texts, *columns.cidrs, *columns.arrays)
    values = [reduce(_attribute, path.split("__"), row) for path in paths]
    texts = [
        ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        for value in values
        if value
    ]
    name = str(row)
    return " · ".join(text for text in dict.fromkeys(texts) if text not in name)


def _attribute(value: Any, name: str) -> Any:
    """Return a value of a related row; None if there is no such row."""
    return getattr(value, name, None)


def _with_texts(rows: QuerySet[Any]) -> QuerySet[Any]:
    columns = COLUMNS[rows.model]
    names = Searched(columns.texts, json=columns.json)
    searched: QuerySet[Any] = rows.alias(
        searched_text=_joined(columns), searched_names=_joined(names)
    )
    return searched


def _joined(columns: Searched) -> Func:
    """Return the searched columns of a row as one text, between slashes."""
    values: list[Any] = [F(name) for name in (*columns.texts, *columns.cidrs)]
    lists: list[Any] = [F(name) for name in columns.arrays]
    lists += [_JSONTexts(F(name)) for name in (*columns.json, *columns.json_cidrs)]
    values += [
        Func(array, Value("/"), function="array_to_string", output_field=TextField())
        for array in lists
    ]
    ends = Value("")  # a slash before the first and after the last
    return Func(Value("/"), ends, *values, ends, function="concat_ws", output_field=TextField())


def _condition(model: type[Model], searched: SearchText, *, around: bool = False) -> Q:
    if searched.network is not None and not searched.is_part:
        return _address_condition(model, searched, around=around)
    words = reduce(and_, (_word_condition(model, word) for word in _words(searched.text)))
    return reduce(or_, (Q(searched_text__icontains=text) for text in searched.spellings), words)


def _words(text: str) -> Iterator[str]:
    """Yield the words of a text; quotes keep words together, as in Django's search."""
    for word in smart_split(text):
        quoted = len(word) > 2 and word[0] in "\"'" and word[-1] == word[0]
        yield unescape_string_literal(word) if quoted else word


def _word_condition(model: type[Model], word: str) -> Q:
    columns = COLUMNS[model]
    condition = Q(searched_text__icontains=word)
    if "/" in word:  # `shop/web`, a part of each
        parts = [part for part in word.split("/") if part]
        if parts:
            condition |= reduce(and_, (Q(searched_text__icontains=part) for part in parts))
    for name, other in columns.keys.items():
        rows = _with_texts(other._base_manager.all()).filter(searched_text__icontains=word)
        condition |= Q(**{f"{name}__in": rows.values("pk")})
    for part, name in columns.parts.items():
        rows = _with_texts(part._base_manager.all()).filter(searched_text__icontains=word)
        condition |= Q(pk__in=rows.values(name))
    return condition


def _address_condition(model: type[Model], searched: SearchText, *, around: bool) -> Q:
    columns = COLUMNS[model]
    contains = around or searched.address is not None
    lookup = "net_contains_or_equals" if contains else "net_contained_or_equal"
    condition = Q(searched_names__icontains=searched.text)  # such as a reason or a note
    for name in columns.cidrs:
        condition |= Q(**{f"{name}__{lookup}": str(searched.network)})
    value = str(searched.interface or searched.network)
    operator = ">>=" if around or searched.interface is not None else "<<="
    lists: list[Any] = [F(name) for name in columns.arrays]
    lists += [_JSONTexts(F(name)) for name in columns.json_cidrs]
    if lists:
        joined = reduce(lambda one, other: Func(one, other, function="array_cat"), lists)
        condition |= Q(_Contains(joined, Value(value), operator=operator))
    for part, name in columns.parts.items():
        rows = _with_texts(part._base_manager.all()).filter(
            _address_condition(part, searched, around=around)
        )
        condition |= Q(pk__in=rows.values(name))
    return condition
