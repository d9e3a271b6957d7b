"""Check that the database has the constraints, indexes and foreign keys of the models.

The rules of a model are created on an empty temporary table of the same name, in a transaction that is
rolled back. Then the text that PostgreSQL gives for both tables is compared, so that a rule with the
right name and a weaker condition is found too. A restored database has each rule as PostgreSQL parsed its
own text, which flattens nested ANDs; therefore each rule is created a second time from that text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.apps import apps
from django.db import connection, models, transaction

from pools.platform.checks import checks
from pools.sql import statements


@dataclass
class _Table:
    """The rules that the database has for one table; columns are given by their numbers."""

    constraints: dict[str, tuple[str, bool]] = field(default_factory=dict)  # text, valid
    indexes: dict[str, tuple[str, bool]] = field(default_factory=dict)
    unique: set[int] = field(default_factory=set)  # columns with a valid unique index of their own
    indexed: set[int] = field(
        default_factory=set
    )  # first columns of valid indexes without a condition
    foreign: dict[int, tuple[str, bool]] = field(default_factory=dict)  # table, valid
    columns: dict[str, tuple[int, bool]] = field(default_factory=dict)  # number, not null


def _find(_step: Any) -> Iterator[checks.Violation]:
    table_models = [
        model
        for model in apps.get_models(include_auto_created=True)
        if model._meta.managed and not model._meta.proxy
    ]
    tables = _tables("WHERE relnamespace = 'public'::regnamespace")
    for model in table_models:
        checks.check_time()
        name = model._meta.db_table
        table = tables.get(name)
        if table is None:
            yield checks.Violation(f"The table {name} is missing")
            continue
        yield from (checks.Violation(text) for text in _columns(model, table))
        yield from (checks.Violation(text) for text in _rules(model, table))


def _columns(model: type[models.Model], table: _Table) -> Iterator[str]:
    for column in model._meta.local_concrete_fields:
        name = f"{model._meta.db_table}.{column.column}"
        number, not_null = table.columns.get(str(column.column), (0, False))
        if not number:
            yield f"The column {name} is missing"
            continue
        if not column.null and not not_null:
            yield f"The column {name} may be null"
        if column.unique and number not in table.unique:
            yield f"The column {name} has no valid unique index"
        elif getattr(column, "db_index", False) and number not in table.indexed:
            yield f"The column {name} has no valid index"
        if column.remote_field and getattr(column, "db_constraint", False):
            yield from _foreign(
                name, column.remote_field.model, *table.foreign.get(number, ("", False))
            )


def _foreign(
    name: str, target: type[models.Model], target_table: str, valid: bool
) -> Iterator[str]:
    expected = target._meta.db_table
    if target_table != expected:
        yield f"The foreign key {name} to {expected} is missing"
    elif not valid:
        yield f"The foreign key {name} to {expected} is not validated"


def _rules(model: type[models.Model], table: _Table) -> Iterator[str]:
    name = model._meta.db_table
    original, restored = _rules_of_model(model)
    for kind, actual, expected, after_restore in (
        ("constraint", table.constraints, original.constraints, restored.constraints),
        ("index", table.indexes, original.indexes, restored.indexes),
    ):
        for rule, (text, _) in expected.items():
            if kind == "index" and rule in original.constraints:
                continue  # PostgreSQL creates and drops it with its constraint
            if rule not in actual:
                yield f"The {kind} {rule} of {name} is missing"
            elif not actual[rule][1]:
                yield f"The {kind} {rule} of {name} is not valid: rows may contradict it"
            elif actual[rule][0] not in {text, after_restore[rule][0]}:
                yield f"The {kind} {rule} of {name} says {actual[rule][0]} instead of {text}"


def _rules_of_model(model: type[models.Model]) -> tuple[_Table, _Table]:
    """Return the constraints and indexes that the model names, as this PostgreSQL writes them after they
    are created from the model, and after they are created from that text, as a restore does.
    """
    editor = connection.SchemaEditorClass(connection, collect_sql=True)
    statements = [
        str(statement)
        for rule in (*model._meta.constraints, *model._meta.indexes)
        if (statement := rule.create_sql(model, editor)) is not None
    ]
    if not statements:
        return _Table(), _Table()
    name = connection.ops.quote_name(model._meta.db_table)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"CREATE TEMPORARY TABLE {name} (LIKE public.{name})")
        for statement in statements:
            cursor.execute(statement)
        original = _tables(_TEMPORARY)[model._meta.db_table]
        cursor.execute(_TEXTS, {"table": model._meta.db_table})
        for drop, create in cursor.fetchall():
            cursor.execute(drop)
            cursor.execute(create)
        restored = _tables(_TEMPORARY)[model._meta.db_table]
        transaction.set_rollback(True)
    return original, restored


_TEMPORARY = "WHERE relnamespace = pg_my_temp_schema()"
_TEXTS = statements.read("pools/rules_of_temporary_table")


def _tables(where: str) -> dict[str, _Table]:
    """Return the tables of a schema by name."""
    tables: dict[str, _Table] = {}
    with connection.cursor() as cursor:
        for statement, take in (
            (_COLUMNS, _take_column),
            (_CONSTRAINTS, _take_constraint),
            (_INDEXES, _take_index),
        ):
            cursor.execute(statement.replace("WHERE true", where))
            for name, *row in cursor.fetchall():
                take(tables.setdefault(name, _Table()), *row)
    return tables


def _take_column(table: _Table, name: str, number: int, not_null: bool) -> None:
    table.columns[name] = (number, not_null)


def _take_constraint(
    table: _Table,
    name: str,
    kind: str,
    text: str,
    valid: bool,
    columns: list[int],
    target_table: str | None,
) -> None:
    if kind == "f" and len(columns) == 1:
        table.foreign[columns[0]] = (target_table or "", valid)
    elif kind in "cxu":
        table.constraints[name] = (text, valid)


def _take_index(
    table: _Table, name: str, text: str, valid: bool, unique: bool, columns: list[int], whole: bool
) -> None:
    # The texts of the temporary table and of the real one differ in the schema.
    table.indexes[name] = (re.sub(r" ON \S+ USING ", " USING ", text), valid)
    if valid and whole:
        table.indexed.add(columns[0])
        if unique and len(columns) == 1:
            table.unique.add(columns[0])


_COLUMNS = """
    SELECT t.relname, a.attname, a.attnum, a.attnotnull
    FROM (SELECT * FROM pg_class WHERE true AND relkind IN ('r', 'p')) t
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
"""
_CONSTRAINTS = """
    SELECT t.relname, c.conname, c.contype, pg_get_constraintdef(c.oid), c.convalidated,
        c.conkey::int[], f.relname
    FROM (SELECT * FROM pg_class WHERE true AND relkind IN ('r', 'p')) t
    JOIN pg_constraint c ON c.conrelid = t.oid LEFT JOIN pg_class f ON f.oid = c.confrelid
"""
_INDEXES = """
    SELECT t.relname, n.relname, pg_get_indexdef(i.indexrelid),
        i.indisvalid AND i.indisready AND i.indislive, i.indisunique, i.indkey::int2[]::int[],
        i.indpred IS NULL
    FROM (SELECT * FROM pg_class WHERE true AND relkind IN ('r', 'p')) t
    JOIN pg_index i ON i.indrelid = t.oid JOIN pg_class n ON n.oid = i.indexrelid
"""

CHECK = checks.Check(
    code="constraints",
    invariants="address-has-one-holder, canonical-addresses, one-answer-per-key,"
    " cidrs-never-overlap, mac-has-one-owner, one-worker-for-a-cluster",
    proves="Every table, column, foreign key, constraint and index of the models is in the database,"
    " valid, and says what the model says.",
    find=_find,
)
