"""Check that all triggers, functions and views are installed, enabled, and as this version defines them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from typing import Any

import pgtrigger
from django.db import connection

from pools.models import Recovery
from pools.platform.checks import checks

PACKAGES: list[str] = []  # packages with the SQL files of the apps; filled by pools.extension

_FUNCTION = re.compile(
    r"^CREATE (?:OR REPLACE )?FUNCTION (\w+)\s*\(.*?\bAS \$\$(.*?)\$\$", re.MULTILINE | re.DOTALL
)
_TRIGGER = re.compile(r"^CREATE TRIGGER (\w+)\s.*?\bON (\w+)", re.MULTILINE | re.DOTALL)
_VIEW = re.compile(r"^CREATE OR REPLACE VIEW (\w+)", re.MULTILINE)
# `compile` writes the function that all triggers call, and then the trigger's own.
_OWN_FUNCTION = re.compile(r"FUNCTION (\S+)\(\)\s+RETURNS TRIGGER AS \$\$(.*?)\$\$", re.DOTALL)
_ENABLED = {"O", "A"}  # pg_trigger.tgenabled: fires for ordinary sessions
# Enabled only while the register recovers from a backup (pools/sql/recovery.sql).
_RECOVERY_TRIGGER = "pools_block_recovers"


def _find(_step: Any) -> Iterator[checks.Violation]:
    triggers, functions, views = _installed()
    for text in (
        *_check_models(triggers, functions),
        *_check_files(triggers, functions),
        *(f"The view {name} is missing" for name in _definitions(_VIEW) if name not in views),
    ):
        yield checks.Violation(text)


Triggers = dict[tuple[str, str], tuple[str, str | None]]  # (table, name): tgenabled, comment
Functions = dict[str, set[str]]  # name: bodies of its overloads


def _installed() -> tuple[Triggers, Functions, set[str]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname, t.tgname, t.tgenabled, obj_description(t.oid) FROM pg_trigger t"
            " JOIN pg_class c ON c.oid = t.tgrelid"
            " WHERE NOT t.tgisinternal AND c.relnamespace = 'public'::regnamespace"
        )
        triggers = {
            (table, name): (enabled, comment) for table, name, enabled, comment in cursor.fetchall()
        }
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


def _check_models(triggers: Triggers, functions: Functions) -> Iterator[str]:
    for model, trigger in pgtrigger.registered():
        name, table = trigger.get_pgid(model), model._meta.db_table
        compiled = trigger.compile(model)
        enabled, comment = triggers.get((table, name), ("", None))
        yield from _check_enabled(f"{trigger.name} of {table}", enabled)
        if enabled and comment != compiled.hash:
            yield f"The trigger {trigger.name} of {table} differs from the model's"
        for function, body in _OWN_FUNCTION.findall(str(compiled.install_sql)):
            yield from _check_function(function.rpartition(".")[2].strip('"'), body, functions)


def _check_files(triggers: Triggers, functions: Functions) -> Iterator[str]:
    recovering = Recovery.objects.filter(ended_at=None).exists()
    for name, table in _definitions(_TRIGGER):
        enabled, _ = triggers.get((table, name), ("", None))
        if name != _RECOVERY_TRIGGER or recovering or not enabled:
            yield from _check_enabled(f"{name} of {table}", enabled)
        elif enabled in _ENABLED:
            yield f"The trigger {name} of {table} is enabled although no recovery is in progress"
    for name, body in _definitions(_FUNCTION):
        yield from _check_function(name, body, functions)


def _check_enabled(trigger: str, enabled: str) -> Iterator[str]:
    if not enabled:
        yield f"The trigger {trigger} is missing"
    elif enabled not in _ENABLED:
        yield f"The trigger {trigger} is switched off"


def _check_function(name: str, body: str, functions: Functions) -> Iterator[str]:
    if name not in functions:
        yield f"The function {name} is missing"
    elif _plain(body) not in functions[name]:
        yield f"The function {name} differs from this version's"


def _definitions(pattern: re.Pattern[str]) -> list[Any]:
    return [match for text in _sql_files() for match in pattern.findall(text)]


def _sql_files() -> Iterator[str]:
    for package in PACKAGES:
        for file in sorted(resources.files(package).iterdir(), key=lambda path: path.name):
            if file.name.endswith(".sql"):
                yield file.read_text()


def _plain(text: str) -> str:
    return " ".join(text.split())


CHECK = checks.Check(
    code="triggers",
    invariants="no-reuse-while-cooling, release-names-its-holder, block-lies-in-one-cidr,"
    " used-cidr-stays, every-change-has-an-event",
    proves="Every trigger, function and view of the register is in the database, enabled, and as"
    " this version of the software defines it.",
    find=_find,
)
