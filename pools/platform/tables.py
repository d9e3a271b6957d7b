"""The tables of the initial migrations, created at once."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.migrations import CreateModel, SeparateDatabaseAndState
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from pgtrigger.migrations import AddTrigger


class CreateTables(SeparateDatabaseAndState):
    """Create the tables and triggers of the models that `operations` describe, as they are after the last of them.

    As operations of their own, Django would build all related models anew after each: three quarters
    of the time of a first start.
    """

    serialization_expand_args: ClassVar[list[str]] = ["operations"]

    def __init__(self, operations: list[Operation]) -> None:
        super().__init__(state_operations=operations)

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return type(self).__qualname__, [], {"operations": self.state_operations}

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        state.__dict__.pop(
            "apps", None
        )  # a cached property: the models, if they were built already
        super().state_forwards(app_label, state)

    def database_forwards(self, app_label: str, schema_editor: Any, *states: ProjectState) -> None:
        # A model is created with all its columns, constraints and indexes, but without its triggers.
        for operation in self.state_operations:
            if isinstance(operation, CreateModel | AddTrigger):
                operation.database_forwards(app_label, schema_editor, *states)

    def database_backwards(self, app_label: str, schema_editor: Any, *states: ProjectState) -> None:
        for operation in reversed(self.state_operations):
            if isinstance(operation, CreateModel):  # a table goes with its triggers
                operation.database_backwards(app_label, schema_editor, *states)
