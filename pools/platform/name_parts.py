"""Searches for parts of names in tables of a million rows, by an index of n-grams (`ngram_index`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from django.db import connection
from django.db.models import Model, Q, QuerySet

from pools.models.fields import NGrams
from pools.platform import database

# Rows that are read in their order first: what is frequent is found there, and its n-grams would have
# a million rows.
READ_FIRST = 20_000


def first_keys(
    rows: QuerySet[Any], part: str, columns: Sequence[str], order: Sequence[str], most: int
) -> Q:
    """Return the filter for the first rows of which a column contains `part`, by the columns of `order`.

    `order` are the columns of an index that has `columns`, too. The plans do not depend on statistics.
    """
    ordered = rows.order_by(*order).values_list(*order)
    contains = reduce(or_, (Q(**{f"{column}__contains": part}) for column in columns))
    keys = _among_first(ordered, part, columns, most)
    if len(keys) < most and ordered[READ_FIRST : READ_FIRST + 1]:
        with database.planner_settings(
            enable_seqscan="off", enable_indexscan="off", enable_indexonlyscan="off"
        ):
            keys = list(with_part(ordered, part).filter(contains)[:most])
    return reduce(or_, (Q(**dict(zip(order, key, strict=True))) for key in set(keys)), Q(pk__in=[]))


def narrow(rows: QuerySet[Any], columns: Sequence[str], text: str) -> QuerySet[Any]:
    """Return the rows of which one of the columns may contain each word of a text; all without an index of them."""
    indexed = _ngrams(rows.model)
    if indexed is not None and {*columns} <= {*indexed.columns}:
        for word in _WORDS.findall(text):
            rows = with_part(rows, word)
    return rows


# A word without its quotes: a part of what Django's search looks for.
_WORDS = re.compile(r"[^\s\"'\\]+")


def with_part(rows: QuerySet[Any], part: str) -> QuerySet[Any]:
    """Return the rows that have all n-grams of `part`: those that contain it, and some more.

    PostgreSQL and Python agree on the upper case of ASCII only; other n-grams are left out.
    """
    ngrams = {part[i : i + 3] for i in range(max(len(part) - 2, 1))}
    wanted = sorted(ngram.upper() for ngram in ngrams if ngram.isascii() and len(ngram) > 1)
    if not wanted:
        return rows
    narrowed: QuerySet[Any] = rows.alias(ngrams=_ngrams(rows.model)).filter(ngrams__contains=wanted)
    return narrowed


def _ngrams(model: type[Model]) -> NGrams | None:
    """Return the expression of the model's index of n-grams."""
    expressions = (expression for index in model._meta.indexes for expression in index.expressions)
    return next((found for found in expressions if isinstance(found, NGrams)), None)


def _among_first(
    ordered: QuerySet[Any], part: str, columns: Sequence[str], most: int
) -> list[tuple[Any, ...]]:
    statement, values = ordered[:READ_FIRST].query.sql_with_params()
    condition = " OR ".join(f"strpos({column}, %s) > 0" for column in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT * FROM ({statement}) AS first_rows WHERE {condition} LIMIT %s",  # noqa: S608  # names of columns
            [*values, *[part] * len(columns), most],
        )
        return list(cursor.fetchall())
