"""What a database is made of, as comparable lines: PostgreSQL's own catalog, schema public."""

from __future__ import annotations

from dataclasses import dataclass, field

import psycopg

_QUERIES = {
    "relation": "SELECT relname, relkind::text FROM pg_class WHERE relkind IN ('r', 'v', 'm', 'p')"
    " AND relnamespace = 'public'::regnamespace",
    "column": "SELECT attrelid::regclass || '.' || attname, format_type(atttypid, atttypmod)"
    " FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid"
    " WHERE attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'v', 'm', 'p')"
    " AND relnamespace = 'public'::regnamespace",
    # Of which an INSERT that does not name them would fail.
    "demanded": "SELECT attrelid::regclass || '.' || attname, ''"
    " FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid"
    " WHERE attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'p') AND attnotnull"
    " AND NOT atthasdef AND attidentity = '' AND relnamespace = 'public'::regnamespace",
    "not null": "SELECT attrelid::regclass || '.' || attname, ''"
    " FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid"
    " WHERE attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'p') AND attnotnull"
    " AND relnamespace = 'public'::regnamespace",
    "constraint": "SELECT conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)"
    " FROM pg_constraint WHERE conrelid <> 0 AND contype IN ('c', 'u', 'x', 'f', 'p')"
    " AND connamespace = 'public'::regnamespace",
    "index": "SELECT tablename || '.' || indexname, indexdef FROM pg_indexes"
    " WHERE schemaname = 'public'",
    "trigger": "SELECT tgrelid::regclass || '.' || tgname, pg_get_triggerdef(oid)"
    " FROM pg_trigger WHERE NOT tgisinternal",
    "routine": "SELECT p.oid::regprocedure::text, md5(prosrc) || ' ' || pg_get_function_result(p.oid)"
    " FROM pg_proc p WHERE pronamespace = 'public'::regnamespace AND NOT EXISTS"
    " (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')",
    # What can be called: arguments with defaults may be left out.
    "call": "SELECT p.proname || '(' || array_to_string(ARRAY(SELECT format_type(a.type, NULL)"
    " FROM unnest(p.proargtypes) WITH ORDINALITY a (type, place) WHERE a.place <= n"
    " ORDER BY a.place), ',') || ')', ''"
    " FROM pg_proc p, generate_series((p.pronargs - p.pronargdefaults)::int, p.pronargs::int) n"
    " WHERE p.pronamespace = 'public'::regnamespace AND NOT EXISTS"
    " (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')",
    "view": "SELECT viewname, definition FROM pg_views WHERE schemaname = 'public'",
}
Found = dict[str, dict[str, str]]


def read(connection: psycopg.Connection) -> Found:
    """Kind -> name -> definition."""
    return {
        kind: {str(name): str(definition) for name, definition in connection.execute(query)}
        for kind, query in _QUERIES.items()
    }


@dataclass
class Contraction:
    """What code that knew the old schema would miss in the new one, each as `kind name`."""

    found: list[str] = field(default_factory=list)

    def add(self, kind: str, names: set[str]) -> None:
        self.found += [f"{kind} {name}" for name in sorted(names)]


def contraction(old: Found, new: Found) -> list[str]:
    """What is gone, is of another type, or is demanded now where it was not."""
    missing = Contraction()
    for kind in ("relation", "column"):
        missing.add(
            kind, {name for name, type_ in old[kind].items() if new[kind].get(name) != type_}
        )
    missing.add("routine", set(old["routine"]) - set(new["call"]))
    known = set(old["relation"])
    of_old = {
        kind: {name for name in new[kind] if name.partition(".")[0] in known}
        for kind in ("demanded", "not null", "constraint")
    }
    missing.add("demanded", of_old["demanded"] - set(old["demanded"]))
    tightened = (of_old["not null"] & set(old["column"])) - set(old["not null"])
    missing.add("not null", tightened)
    # A column that is new is never written by the old code: its own CHECK holds by its default.
    new_columns = (name.split(".") for name in set(new["column"]) - set(old["column"]))
    own = {f"{table}.{table}_{column}_check" for table, column in new_columns}
    missing.add("constraint", of_old["constraint"] - set(old["constraint"]) - own)
    return missing.found
