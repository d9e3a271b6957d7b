"""Checks that the database has the tables, rules, triggers, functions and views that this version defines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources

import pgtrigger
from django.apps import apps
from django.db import connection, transaction

from pools.models import Recovery
from pools.platform import checks
from pools.sql import statements

SQL_PACKAGES: list[str] = []  # packages with the SQL files of the apps; filled by pools.extension

_FUNCTION = re.compile(
    r"^CREATE (?:OR REPLACE )?FUNCTION (\w+)\s*\(.*?\bAS \$\$(.*?)\$\$", re.MULTILINE | re.DOTALL
)
_TRIGGER = re.compile(r"^CREATE TRIGGER (\w+)\s.*?\bON (\w+)", re.MULTILINE | re.DOTALL)
_VIEW = re.compile(r"^CREATE OR REPLACE VIEW (\w+)", re.MULTILINE)
# django-pgtrigger's text also has the function that all triggers call, of which pools/sql/pgtrigger.sql is the last word.
_OWN_FUNCTION = re.compile(r"FUNCTION (\S+)\(\)\s+RETURNS TRIGGER AS \$\$(.*?)\$\$", re.DOTALL)
# Enabled only while the register recovers from a backup (pools/sql/recovery.sql).
_RECOVERY_TRIGGER = ("pools_block", "pools_block_recovers")


def constraints() -> Iterator[str]:
    """Create the tables of the models as temporary ones, compare both in the catalog, and roll back."""
    models = [model for model in apps.get_models() if model._meta.managed and not model._meta.proxy]
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL search_path TO pg_temp, public")
        with connection.schema_editor(atomic=False) as editor:
            for model in models:
                editor.create_model(model)
        differences = [text for (text,) in checks.rows(_DIFFERENCES)]
        transaction.set_rollback(True)
    yield from differences


_DIFFERENCES = statements.read("pools/schema_differences")


def triggers() -> Iterator[str]:
    """Compare triggers, functions and views with the models and the SQL files."""
    yield from _triggers()
    functions = {(name, _plain(body)) for name, body in checks.rows(_INSTALLED_FUNCTIONS)}
    names = {name for name, _ in functions}
    for name, body in _expected_functions():
        if (name, _plain(body)) not in functions:
            yield f"The function {name} {'differs from this version' if name in names else 'is missing'}"
    views = {name for (name,) in checks.rows(_INSTALLED_VIEWS)}
    yield from (
        f"The view {name} is missing" for name in _VIEW.findall(_sql()) if name not in views
    )


def _triggers() -> Iterator[str]:
    installed = {
        (table, name): (enabled in "OA", comment)
        for table, name, enabled, comment in checks.rows(_INSTALLED_TRIGGERS)
    }
    for (table, name), (label, digest) in _expected_triggers().items():
        enabled, comment = installed.get((table, name), (False, None))
        if (table, name) not in installed:
            yield f"The trigger {label} of {table} is missing"
        elif (table, name) == _RECOVERY_TRIGGER and not _is_recovering():
            if enabled:
                yield f"The trigger {label} of {table} is enabled although no recovery is in progress"
        elif not enabled:
            yield f"The trigger {label} of {table} is switched off"
        elif digest and comment != digest:
            yield f"The trigger {label} of {table} differs from the model's"


_INSTALLED_TRIGGERS = """
    SELECT c.relname, t.tgname, t.tgenabled, obj_description(t.oid)
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE NOT t.tgisinternal AND c.relnamespace = 'public'::regnamespace
"""
_INSTALLED_FUNCTIONS = """
    SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace
"""
_INSTALLED_VIEWS = "SELECT viewname FROM pg_views WHERE schemaname = 'public'"


def _expected_triggers() -> dict[tuple[str, str], tuple[str, str]]:
    """Return (table, name) -> (what to call it, the digest in its comment or "")."""
    of_models = {
        (model._meta.db_table, trigger.get_pgid(model)): (
            str(trigger.name),
            trigger.compile(model).hash,
        )
        for model, trigger in pgtrigger.registered()
    }
    return of_models | {(table, name): (name, "") for name, table in _TRIGGER.findall(_sql())}


def _expected_functions() -> Iterator[tuple[str, str]]:
    for model, trigger in pgtrigger.registered():
        for name, body in _OWN_FUNCTION.findall(str(trigger.compile(model).install_sql)):
            yield name.rpartition(".")[2].strip('"'), body
    yield from _FUNCTION.findall(_sql())


def _is_recovering() -> bool:
    return Recovery.objects.filter(ended_at=None).exists()


def _sql() -> str:
    """Return the text of all SQL files of the apps."""
    files = (file for package in SQL_PACKAGES for file in resources.files(package).iterdir())
    return "\n".join(file.read_text() for file in files if file.name.endswith(".sql"))


def _plain(text: str) -> str:
    return " ".join(text.split())
