"""Checks of the database: it has the schema of this version, and no row contradicts statements about the data.

A check is a file of `pools/sql/checks` or `claims/sql/checks` that selects a text for each violation, or a function
that yields them where SQL cannot do the arithmetic of blocks. `manage.py check_data` runs them; a worker does so
every night. Each check reads one snapshot, so that a register in use gives no false alarm.
"""

import functools
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from typing import Any

import pgtrigger
from django.apps import apps
from django.db import DatabaseError, connection, transaction

from pools.models import Recovery
from pools.sql import statements

Check = Callable[[], Iterable[str]]
CHECKS: dict[str, Check] = {}  # filled by pools.extension
_CHUNK = 5_000  # rows that are fetched at once

log = logging.getLogger(__name__)


def of_files(package: str) -> dict[str, Check]:
    """Return a check for each file of the folder `checks` of a package, by its name."""
    files = sorted(
        resources.files(package).joinpath("checks").iterdir(), key=lambda file: file.name
    )
    return {
        file.name.removesuffix(".sql"): functools.partial(_texts, file.read_text())
        for file in files
        if file.name.endswith(".sql")
    }


def _texts(statement: str) -> Iterator[str]:
    return (text for (text,) in rows(statement))


def run(only: Iterable[str] = (), *, seconds: float | None = None) -> Iterator[tuple[str, str]]:
    """Yield (check, text) for each violation; a check that fails, or that has no time left, is one too."""
    deadline = None if seconds is None else time.monotonic() + seconds
    for name in only or list(CHECKS):
        try:
            with _snapshot(deadline):
                yield from ((name, text) for text in CHECKS[name]())
        except (DatabaseError, TimeoutError) as error:
            log.exception("check %s failed", name)
            yield name, f"The check failed: {str(error).partition(chr(10))[0]}"


@contextmanager
def _snapshot(deadline: float | None) -> Iterator[None]:
    outermost = not connection.in_atomic_block
    left = None if deadline is None else int((deadline - time.monotonic()) * 1000)
    if left is not None and left <= 0:
        raise TimeoutError("no time was left for it")
    with transaction.atomic(), connection.cursor() as cursor:
        if outermost:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT set_config('statement_timeout', %s, true)", [f"{left or 0}ms"])
        yield


def rows(
    statement: str, values: Sequence[Any] | Mapping[str, Any] = ()
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a statement without keeping them all in memory; for checks."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(statement, values or None)
        while chunk := cursor.fetchmany(_CHUNK):
            yield from chunk


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


def schema_constraints() -> Iterator[str]:
    """Create the tables of the models as temporary ones, compare both in the catalog, and roll back."""
    models = [model for model in apps.get_models() if model._meta.managed and not model._meta.proxy]
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL search_path TO pg_temp, public")
        with connection.schema_editor(atomic=False) as editor:
            for model in models:
                editor.create_model(model)
        differences = [text for (text,) in rows(_DIFFERENCES)]
        transaction.set_rollback(True)
    yield from differences


_DIFFERENCES = statements.read("pools/schema_differences")


def schema_triggers() -> Iterator[str]:
    """Compare triggers, functions and views with the models and the SQL files."""
    yield from _triggers()
    functions = {(name, _plain(body)) for name, body in rows(_INSTALLED_FUNCTIONS)}
    names = {name for name, _ in functions}
    for name, body in _expected_functions():
        if (name, _plain(body)) not in functions:
            yield f"The function {name} {'differs from this version' if name in names else 'is missing'}"
    views = {name for (name,) in rows(_INSTALLED_VIEWS)}
    yield from (
        f"The view {name} is missing" for name in _VIEW.findall(_sql()) if name not in views
    )


def _triggers() -> Iterator[str]:
    installed = {
        (table, name): (enabled in "OA", comment)
        for table, name, enabled, comment in rows(_INSTALLED_TRIGGERS)
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
