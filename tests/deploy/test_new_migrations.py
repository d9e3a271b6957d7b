"""What came after the last release can be applied to a running site; and how that is judged."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.postgres import operations as postgres
from django.db import migrations, models
from django.db.migrations import loader
from django.db.migrations.state import ModelState, ProjectState

from tests.deploy import conftest, expand, release


@pytest.mark.exhaustive
def test_new_migrations_hold_no_lock_for_long(upgrade: conftest.Upgrade) -> None:
    old = {name for name, kind in upgrade.before["relation"].items() if kind == "r"}
    graph = loader.MigrationLoader(None, ignore_no_migrations=True)
    known = graph.disk_migrations or {}
    assert release.applied() <= set(known), "a migration of the last release is gone"
    new = [key for key in graph.graph._generate_plan(graph.graph.leaf_nodes(), at_end=True)
           if key not in release.applied()]  # fmt: skip
    found: list[str] = []
    for key in new:
        state = graph.project_state(key, at_end=False)
        found += expand.problems(known[key], state, old)
    assert found == []


def _state() -> ProjectState:
    state = ProjectState()
    for app, name in (("pools", "Block"), ("pools", "Cluster")):
        fields: list[Any] = [("id", models.BigAutoField(primary_key=True))]
        fields += [("env", models.CharField(max_length=9, null=True)), ("n", models.IntegerField())]
        state.add_model(ModelState(app, name, fields))
    return state


def _fill_blocks(apps: Any, _editor: Any) -> None:
    apps.get_model("pools", "Block").objects.update(env="x")


def _fill_clusters(apps: Any, _editor: Any) -> None:
    apps.get_model("pools", "Cluster").objects.update(env="x")


def _judged(*operations: Any, **attributes: Any) -> list[str]:
    migration = type("Migration", (migrations.Migration,), {"operations": list(operations)})(
        "0099_x", "pools"
    )
    for name, value in attributes.items():
        setattr(migration, name, value)
    return expand.problems(migration, _state(), {"pools_block", "pools_cluster"})


_INDEX = models.Index(fields=["env"], name="i")
_CHECK = models.CheckConstraint(condition=models.Q(n__gt=0), name="c")
_TEXT = models.CharField(max_length=9, default="")
_KEY = models.ForeignKey("pools.Cluster", models.CASCADE, null=True)


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param(migrations.RemoveField("block", "env"), id="removed"),
        pytest.param(migrations.DeleteModel("Block"), id="deleted"),
        pytest.param(migrations.RenameField("block", "env", "e"), id="renamed"),
        pytest.param(migrations.RenameModel("Block", "Piece"), id="model-renamed"),
        pytest.param(migrations.AlterModelTable("block", "b"), id="table-renamed"),
        pytest.param(migrations.AddField("block", "x", _TEXT), id="not-null-without-db-default"),
        pytest.param(migrations.AddField("cluster", "x", _TEXT), id="the-same-of-a-small-table"),
        pytest.param(migrations.AddField("block", "x", _KEY), id="foreign-key"),
        pytest.param(
            migrations.AddField("block", "x", models.IntegerField(null=True, db_index=True)),
            id="field-with-index",
        ),
        pytest.param(migrations.AlterField("block", "env", _TEXT), id="not-null"),
        pytest.param(
            migrations.AlterField("block", "n", models.BigIntegerField()), id="another-type"
        ),
        pytest.param(migrations.AddIndex("block", _INDEX), id="index"),
        pytest.param(migrations.AddConstraint("block", _CHECK), id="constraint"),
        pytest.param(migrations.RunSQL("CREATE INDEX i ON pools_block (env)"), id="sql-index"),
        pytest.param(
            migrations.RunSQL(["SELECT 1", ("CREATE INDEX i\nON pools_block (env)", None)]),
            id="sql-index-in-a-list",
        ),
        pytest.param(migrations.RunPython(_fill_blocks), id="rows-in-one-transaction"),
        pytest.param(
            migrations.SeparateDatabaseAndState([migrations.AddIndex("block", _INDEX)]),
            id="inside-of-another",
        ),
    ],
)
def test_refused(operation: Any) -> None:
    assert len(_judged(operation)) >= 1


@pytest.mark.parametrize(
    ("operation", "attributes"),
    [
        pytest.param(
            migrations.AddField("block", "x", models.CharField(max_length=9, db_default="")),
            {},
            id="db-default",
        ),
        pytest.param(
            migrations.AddField("block", "x", models.IntegerField(null=True)), {}, id="null"
        ),
        pytest.param(
            postgres.AddIndexConcurrently("block", _INDEX), {"atomic": False}, id="concurrently"
        ),
        pytest.param(postgres.AddConstraintNotValid("block", _CHECK), {}, id="not-valid"),
        pytest.param(migrations.AddIndex("cluster", _INDEX), {}, id="index-of-a-small-table"),
        pytest.param(
            migrations.RunSQL("CREATE INDEX CONCURRENTLY i ON pools_block (env)"), {}, id="sql"
        ),
        pytest.param(migrations.RunPython(_fill_blocks), {"atomic": False}, id="batches"),
        pytest.param(migrations.RunPython(_fill_clusters), {}, id="rows-of-a-small-table"),
        pytest.param(
            migrations.RemoveField("block", "env"),
            {"contract": ["column pools_block.env"]},
            id="contract",
        ),
        pytest.param(
            migrations.AlterField("block", "env", _TEXT),
            {"contract": ["not null pools_block.env"]},
            id="tightened-later",
        ),
    ],
)
def test_allowed(operation: Any, attributes: dict[str, Any]) -> None:
    assert _judged(operation, **attributes) == []


def test_a_table_of_the_same_upgrade_is_nobodys_yet() -> None:
    made = migrations.CreateModel("New", [("id", models.BigAutoField(primary_key=True))])
    assert _judged(made, migrations.AddField("new", "x", _TEXT)) == []
