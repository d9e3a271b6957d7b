"""One search for lists, Find, the command palette and REST: the rows that contain a text.

Each app declares what is searched of its tables; its extension adds it to COLUMNS. PostgreSQL reads the table, which is
quick up to some 100,000 rows: no index serves parts of texts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db.models import BooleanField, F, Func, Model, Q, QuerySet, TextField, Value
from django.db.models.functions import Cast
from django.db.models.lookups import In
from django.utils.text import smart_split, unescape_string_literal

from pools.platform import search_text
from pools.platform.search_text import SearchText

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
    searched = search_text.parse(text)
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
    name = search_text.parse(text).text
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
