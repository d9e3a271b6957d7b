"""`make chart`: writes what the chart copies from elsewhere: files, and the table of values in its README."""

from __future__ import annotations

import pathlib
import re
import shutil

_DEPLOY = pathlib.Path(__file__).parents[1]
_CHART = pathlib.Path(__file__).parent / "cadastre"
COPIES = (
    "prometheus/cadastre.rules.yaml",
    "kubernetes/cluster-role-observe.yaml",
    "kubernetes/cluster-role-manage.yaml",
)
_ENTRY = re.compile(r"( *)([A-Za-z]\w*):(?: (.*))?")
_TABLE = re.compile(r"(?<=<!-- values -->\n).*(?=<!-- end of values -->)", re.DOTALL)


def value_table(text: str) -> str:
    """The values that have a comment in values.yaml, as a table of Markdown."""
    rows = ["| value | default | meaning |", "|---|---|---|"]
    path: list[str] = []
    comment: list[str] = []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.strip().startswith("#"):
            comment.append(line.strip().removeprefix("# "))
        elif entry := _ENTRY.fullmatch(line):
            indent, name, default = entry.groups()
            path[len(indent) // 2 :] = [name]
            if comment:
                below = _nested(lines[number + 1 :], len(indent)) if default is None else ""
                shown = default or below or "see below"
                rows.append(f"| `{'.'.join(path)}` | {_code(shown)} | {' '.join(comment)} |")
            comment = []
        else:
            comment = []
    return "\n".join(rows) + "\n"


def _nested(lines: list[str], indent: int) -> str:
    """ "see values.yaml" for a default of several lines, "" for a group of values."""
    first = lines[0].strip() if lines else ""
    below = len(lines[0]) - len(lines[0].lstrip()) if lines else 0
    is_group = below <= indent or first.startswith("#") or _documents(lines, indent)
    return "" if is_group else "see values.yaml"


def _documents(lines: list[str], indent: int) -> bool:
    """Return True if one of the lines below is a comment."""
    for line in lines:
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            return False
        if line.strip().startswith("#"):
            return True
    return False


def _code(default: str) -> str:
    return default if default.startswith("see ") else f"`{default}`"


def main() -> None:
    for name in COPIES:
        shutil.copy(_DEPLOY / name, _CHART / "files")
    readme = _CHART / "README.md"
    table = value_table((_CHART / "values.yaml").read_text())
    readme.write_text(_TABLE.sub(lambda _: table, readme.read_text()))


if __name__ == "__main__":
    main()
