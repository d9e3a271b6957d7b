"""Rules that somebody took away, switched off or weakened are seen, each by its name."""

import pytest
from django.db import connection

from pools.models import Block
from tests.checks.conftest import check, texts, wrong

WEAKENED = {
    "ALTER TABLE pools_block DROP CONSTRAINT block_state": "constraint block_state of pools_block is missing",
    "ALTER TABLE pools_block DROP CONSTRAINT block_unique": "constraint block_unique of pools_block is missing",
    "ALTER TABLE pools_poolcidr DROP CONSTRAINT cidrs_of_a_space_never_overlap": "cidrs_of_a_space_never_overlap of pools_poolcidr is missing",
    "DROP INDEX one_block_per_holder": "index one_block_per_holder of pools_block is missing",
    "DROP INDEX block_queue; CREATE INDEX block_queue ON pools_block (pool_id)": "index block_queue of pools_block says",
    "ALTER TABLE pools_block DROP CONSTRAINT block_state, ADD CONSTRAINT block_state CHECK (true)": "block_state of pools_block says CHECK (true) instead of CHECK (",
    "ALTER TABLE pools_block DROP CONSTRAINT block_state, ADD CONSTRAINT block_state CHECK (true) NOT VALID": "block_state of pools_block says CHECK (true) NOT VALID instead of",
    "ALTER TABLE pools_block ALTER COLUMN cidr DROP NOT NULL": "column cidr of pools_block says cidr NULL instead of cidr NOT NULL",
    "ALTER TABLE pools_cluster DROP CONSTRAINT pools_cluster_name_key": "constraint pools_cluster_name_key of pools_cluster is missing",
    "ALTER TABLE claims_indexentry DROP CONSTRAINT index_entry_has_one_owner": "index_entry_has_one_owner of claims_indexentry is missing",
}  # fmt: skip
SILENCED = {
    "ALTER TABLE pools_block DISABLE TRIGGER pools_block_fits": "trigger pools_block_fits of pools_block is switched off",
    "ALTER TABLE pools_block ENABLE REPLICA TRIGGER pools_block_fits": "trigger pools_block_fits of pools_block is switched off",
    "DROP TRIGGER pools_pool_is_immutable ON pools_pool": "trigger pools_pool_is_immutable of pools_pool is missing",
    "ALTER TABLE pools_block ENABLE TRIGGER pools_block_recovers": "is enabled although no recovery is in progress",
    "CREATE OR REPLACE FUNCTION pools_block_keeps_its_word() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$": "function pools_block_keeps_its_word differs from this version",
    "CREATE OR REPLACE FUNCTION _pgtrigger_should_ignore(trigger_name name) RETURNS boolean LANGUAGE sql STABLE AS $$ SELECT true $$": "function _pgtrigger_should_ignore differs from this version",
    "ALTER FUNCTION ipam_release RENAME TO ipam_freed": "function ipam_release is missing",
    "DROP VIEW claims_workload_comparison": "view claims_workload_comparison is missing",
}  # fmt: skip


def _broken(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(statement)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("statement", "says"), WEAKENED.items())
def test_a_rule_of_a_table(statement: str, says: str) -> None:
    _broken(statement)
    run = check("constraints", "triggers")
    assert wrong(run) == {"constraints": 1}, texts(run)
    assert says in texts(run)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("statement", "says"), SILENCED.items())
def test_a_trigger_or_function(statement: str, says: str) -> None:
    _broken(statement)
    run = check("constraints", "triggers")
    assert wrong(run) == {"triggers": 1}, texts(run)
    assert says in texts(run)


@pytest.mark.exhaustive
def test_a_foreign_key() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(
            "SELECT conname FROM pg_constraint WHERE contype = 'f'"
            " AND conrelid = 'pools_poolcidr'::regclass AND confrelid = 'pools_pool'::regclass"
        )
        (name,) = cursor.fetchone()
        cursor.execute(f"ALTER TABLE pools_poolcidr DROP CONSTRAINT {name}")
    run = check("constraints")
    assert wrong(run) == {"constraints": 1}
    assert f"The constraint {name} of pools_poolcidr is missing" == texts(run)


def test_the_trigger_of_a_model() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(
            "SELECT tgname FROM pg_trigger"
            " WHERE tgrelid = 'pools_blockevent'::regclass AND tgname LIKE 'pgtrigger_append_only%'"
        )
        (name,) = cursor.fetchone()
        cursor.execute(f"ALTER TABLE pools_blockevent DISABLE TRIGGER {name}")
        cursor.execute(
            f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql"
            " AS $$ BEGIN RETURN NEW; END $$"
        )
    run = check("triggers")
    assert wrong(run) == {"triggers": 2}
    assert "trigger append_only of pools_blockevent is switched off" in texts(run)
    assert f"function {name} differs from this version" in texts(run)


@pytest.mark.exhaustive
def test_nothing_is_left_of_the_comparison() -> None:
    check("constraints")
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_class WHERE relnamespace = pg_my_temp_schema()")
        assert cursor.fetchone() == (0,)


_RULES_OF_TABLES = """
    SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', c.conrelid::regclass, c.conname),
        format('ALTER TABLE %s ADD CONSTRAINT %I %s', c.conrelid::regclass, c.conname,
            pg_get_constraintdef(c.oid)), pg_get_constraintdef(c.oid)
    FROM pg_constraint c WHERE c.contype IN ('c', 'x') AND c.conrelid <> 0
      AND c.connamespace = 'public'::regnamespace
    UNION ALL
    SELECT format('DROP INDEX %s', i.indexrelid::regclass), pg_get_indexdef(i.indexrelid),
        pg_get_indexdef(i.indexrelid)
    FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid
    WHERE t.relnamespace = 'public'::regnamespace AND i.indpred IS NOT NULL
      AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)
    ORDER BY 1
"""


def _make_rules_of_blocks() -> None:
    """As a migration does: a test before may have restored a backup into this database."""
    with connection.schema_editor() as editor:
        for index in Block._meta.indexes:
            editor.remove_index(Block, index)
            editor.add_index(Block, index)


@pytest.mark.exhaustive
def test_rules_as_a_restore_makes_them_are_right() -> None:
    """A restore makes each rule from PostgreSQL's own text, and some read differently afterwards."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        _make_rules_of_blocks()
        cursor.execute(_RULES_OF_TABLES)
        before = cursor.fetchall()
        for drop, create, _ in before:
            cursor.execute(drop)
            cursor.execute(create)
        cursor.execute(_RULES_OF_TABLES)
        assert {text for *_, text in cursor.fetchall()} != {text for *_, text in before}
    run = check("constraints")
    assert wrong(run) == {}, texts(run)
