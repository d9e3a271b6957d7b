"""Long SQL statements: one file each, `pools/sql/statements` and `claims/sql/statements`.

A file begins with a comment: a sentence on what the statement returns, then each parameter with its
type (`-- $1 cluster bigint`). The statement is PostgreSQL's own syntax, so that it can be run alone in
psql (ARCHITECTURE.md, "Ways to the database").
"""

import functools
import re
from dataclasses import dataclass
from importlib import resources

_PARAMETER = re.compile(r"-- \$(\d+) (\w+) (.+)")


@dataclass(frozen=True)
class Statement:
    """A file: its sentence, its parameters as (name, type) in order, and the statement with $1, $2."""

    description: str
    parameters: tuple[tuple[str, str], ...]
    body: str

    def with_psycopg_placeholders(self) -> str:
        """Return the statement with psycopg's named placeholders, `%(name)s`."""
        body = self.body.replace("%", "%%") if self.parameters else self.body
        return re.sub(
            r"\$(\d+)", lambda match: f"%({self.parameters[int(match[1]) - 1][0]})s", body
        )

    def prepare(self, name: str) -> str:
        """Return a PREPARE of the statement under a name, for psql."""
        types = ", ".join(type_name for _, type_name in self.parameters)
        return f"PREPARE {name} {f'({types}) ' if types else ''}AS\n{self.body};\n"


def parse(path: str) -> Statement:
    """Return the statement of a file, named by app and file without its ending: `claims/vm_status`."""
    app, _, name = path.partition("/")
    text = resources.files(f"{app}.sql").joinpath("statements", f"{name}.sql").read_text()
    head = [line for line in text.splitlines() if line.startswith("--")]
    parameters = [match for line in head if (match := _PARAMETER.fullmatch(line))]
    description = " ".join(line[3:] for line in head if not _PARAMETER.fullmatch(line))
    body = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    return Statement(description, tuple((match[2], match[3]) for match in parameters), body)


@functools.cache
def read(path: str) -> str:
    """Return the statement of a file for psycopg: modules call it once, when they are imported."""
    return parse(path).with_psycopg_placeholders()
