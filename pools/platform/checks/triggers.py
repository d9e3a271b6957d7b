"""The rules that are triggers and functions: there, switched on, and as they are written here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from typing import Any

import pgtrigger
from django.db import connection

from pools.models import Recovery
from pools.platform.checks import checks

PACKAGES: list[str] = []  # where the SQL of the apps stands; filled by pools.extension

_FUNCTION = re.compile(
    r"^CREATE (?:OR REPLACE )?FUNCTION (\w+)\s*\(.*?\bAS \$\$(.*?)\$\$", re.MULTILINE | re.DOTALL
)
_TRIGGER = re.compile(r"^CREATE TRIGGER (\w+)\s.*?\bON (\w+)", re.MULTILINE | re.DOTALL)
_VIEW = re.compile(r"^CREATE OR REPLACE VIEW (\w+)", re.MULTILINE)
# `compile` writes the function that all triggers ask, and then the trigger's own.
_OWN_FUNCTION = re.compile(r"FUNCTION (\S+)\(\)\s+RETURNS TRIGGER AS \$\$(.*?)\$\$", re.DOTALL)
_ON = {"O", "A"}  # of pg_trigger.tgenabled: for everybody who writes
# On only while the register recovers from a backup (pools/sql/recovery.sql).
_IN_RECOVERY = "pools_block_recovers"


def _find(_at: Any) -> Iterator[checks.Violation]:
    triggers, functions, views = _installed()
    for text in (
        *_of_models(triggers, functions),
        *_of_files(triggers, functions),
        *(f"The view {one} is missing" for one in _named(_VIEW) if one not in views),
    ):
        yield checks.Violation(text)


Triggers = dict[tuple[str, str], tuple[str, str | None]]  # (table, name): switch, comment
Functions = dict[str, set[str]]  # name: its bodies


def _installed() -> tuple[Triggers, Functions, set[str]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname, t.tgname, t.tgenabled, obj_description(t.oid) FROM pg_trigger t"
            " JOIN pg_class c ON c.oid = t.tgrelid"
            " WHERE NOT t.tgisinternal AND c.relnamespace = 'public'::regnamespace"
        )
        triggers = {(table, name): (on, comment) for table, name, on, comment in cursor.fetchall()}
        cursor.execute(
            "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
        )
        functions: Functions = {}
        for name, body in cursor.fetchall():
            functions.setdefault(name, set()).add(_plain(body))
        cursor.execute(
            "SELECT relname FROM pg_class"
            " WHERE relkind = 'v' AND relnamespace = 'public'::regnamespace"
        )
        return triggers, functions, {name for (name,) in cursor.fetchall()}


def _of_models(triggers: Triggers, functions: Functions) -> Iterator[str]:
    for model, trigger in pgtrigger.registered():
        name, table = trigger.get_pgid(model), model._meta.db_table
        made = trigger.compile(model)
        switch, comment = triggers.get((table, name), ("", None))
        yield from _standing(f"{trigger.name} of {table}", switch)
        if switch and comment != made.hash:
            yield f"The trigger {trigger.name} of {table} is another than the model's"
        for function, body in _OWN_FUNCTION.findall(str(made.install_sql)):
            yield from _said(function.rpartition(".")[2].strip('"'), body, functions)


def _of_files(triggers: Triggers, functions: Functions) -> Iterator[str]:
    recovering = Recovery.objects.filter(ended_at=None).exists()
    for name, table in _named(_TRIGGER):
        switch, _ = triggers.get((table, name), ("", None))
        if name != _IN_RECOVERY or recovering or not switch:
            yield from _standing(f"{name} of {table}", switch)
        elif switch in _ON:
            yield f"The trigger {name} of {table} is switched on although nothing recovers"
    for name, body in _named(_FUNCTION):
        yield from _said(name, body, functions)


def _standing(named: str, switch: str) -> Iterator[str]:
    if not switch:
        yield f"The trigger {named} is missing"
    elif switch not in _ON:
        yield f"The trigger {named} is switched off"


def _said(name: str, body: str, functions: Functions) -> Iterator[str]:
    if name not in functions:
        yield f"The function {name} is missing"
    elif _plain(body) not in functions[name]:
        yield f"The function {name} does something else than it should"


def _named(pattern: re.Pattern[str]) -> list[Any]:
    return [found for text in _texts() for found in pattern.findall(text)]


def _texts() -> Iterator[str]:
    for package in PACKAGES:
        for file in sorted(resources.files(package).iterdir(), key=lambda one: one.name):
            if file.name.endswith(".sql"):
                yield file.read_text()


def _plain(text: str) -> str:
    return " ".join(text.split())


CHECK = checks.Check(
    code="triggers",
    invariants="no-reuse-while-cooling, release-names-its-holder, block-lies-in-one-cidr,"
    " used-cidr-stays, every-change-has-an-event",
    proves="Every trigger, function and view of the register is in the database, switched on, and as"
    " this version of the software writes it.",
    find=_find,
)
