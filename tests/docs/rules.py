"""`python -m tests.docs.rules`: every rule that is referred to has a line in docs/rules.md, a place and a test.

A reference is the word rule (or rules) and the name in backticks, or a name in a Markdown column called rule or
rules. Numbers of documents elsewhere are no references.
"""

import ast
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from tests import schedule
from tests.docs import pages

PAGE = "docs/rules.md"
SUFFIXES = {".html", ".js", ".md", ".py", ".sql", ".toml", ".yaml", ".yml"}
NOT_BUILT = "## Not built"
LEFT_OUT = {
    "CHANGELOG.md",
    "tests/docs/test_rules.py",
}  # history; references that are wrong on purpose
_ROW = re.compile(r"^\| `([a-z0-9]+(?:-[a-z0-9]+)+)` \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)
_MISSING = re.compile(r"^\| `([a-z0-9]+(?:-[a-z0-9]+)+)` \| (.+) \| (.+) \|$", re.MULTILINE)
_CODE = re.compile(r"`([^`]+)`")
_LINE_END = re.compile(r"\s*\n\s*(?:#|--|\|)?\s*")
_NAMES = re.compile(r"\b[Rr]ules? ((?:`[^`]+`(?:, | and | or |, and )?)+)")
_TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_NUMBER = re.compile(r"\b(?i:spec)[/ _-]00\d|(?<![\w/\"=:;+$.])[BFIRS][1-9]\d?(?![\w/%]|:[A-Z\"])")
_NUMBERED_TEST = re.compile(r"\bdef (test_(?:point_\d|[birfs]\d)\w*)")


@dataclass(frozen=True)
class Rule:
    name: str
    says: str
    places: tuple[str, ...]
    tests: tuple[str, ...]


def read_rules(text: str) -> dict[str, Rule]:
    """Return the rules of the page that are built, by name."""
    return {
        name: Rule(name, says, tuple(_CODE.findall(places)), tuple(_CODE.findall(tests)))
        for name, says, places, tests in _ROW.findall(text.partition(NOT_BUILT)[0])
    }


def defined_names(text: str) -> list[str]:
    """Return each name that the page defines, in its order, those of rules that are not built too."""
    built, _, rest = text.partition(NOT_BUILT)
    rows = [name for name, *_ in _ROW.findall(built)]
    return rows + [name for name, *_ in _MISSING.findall(rest)]


def references(path: str, text: str) -> set[str]:
    """Return the names of rules that a file refers to."""
    flat = _LINE_END.sub(" ", text)
    names = {
        name
        for group in _NAMES.findall(flat)
        for name in _CODE.findall(group)
        if _NAME.fullmatch(name)
    }
    if path.endswith(".md"):
        names.update(_columns(text))
    return names


def _columns(text: str) -> Iterator[str]:
    """The names in columns called rule or rules."""
    for table in _TABLE.findall(text):
        head, *rows = ([cell.strip() for cell in line.split("|")] for line in table.splitlines())
        for column, title in enumerate(head):
            if title.lower() in {"rule", "rules"}:
                for row in rows:
                    yield from _CODE.findall(row[column])


def numbers(text: str) -> list[str]:
    """Return what refers to a document that the repository does not contain."""
    return [match[0] for match in _NUMBER.finditer(text)] + _NUMBERED_TEST.findall(text)


def tracked_files(root: pathlib.Path) -> dict[str, str]:
    """Return path -> text of every file that people write, without the history of changes."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [path for path in listed.stdout.splitlines() if pathlib.Path(path).suffix in SUFFIXES]
    return {
        path: (root / path).read_text()
        for path in paths
        if path not in LEFT_OUT and (root / path).is_file()
    }


def _defines(text: str, function: str) -> bool:
    return bool(re.search(rf"^ *(?:async )?(?:def|class) {function}\b", text, re.MULTILINE))


def _exists(place: str, files: dict[str, str], root: pathlib.Path) -> bool:
    """Whether a place is a file, a folder, a function of a file, or a name that the database knows."""
    path, _, function = place.partition("::")
    if "/" in path or "." in path:
        if not (root / path).exists():
            return False
        return not function or _defines((root / path).read_text(), function)
    word = re.compile(rf"\b{re.escape(place)}\b")
    return any(
        word.search(text)
        for name, text in files.items()
        if re.match(r"\w+/(?:sql|models)/[^/]+$", name)
    )


def is_exhaustive(test: str, text: str) -> bool:
    """Return True if `make test` leaves the test out: by the path of its file, or by a marker in it."""
    path, _, name = test.partition("::")
    if path.removeprefix("tests/").startswith(schedule.EXHAUSTIVE):
        return True
    for node in ast.parse(text).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
                marks = [value]
            case ast.FunctionDef(name=function) if function == name:
                marks = node.decorator_list
            case _:
                continue
        # A parameter with the marker is not the whole test.
        if any(
            "mark.exhaustive" in ast.unparse(mark) and "parametrize" not in ast.unparse(mark)
            for mark in marks
        ):
            return True
    return False


def complaints(root: pathlib.Path = pages.ROOT, files: dict[str, str] | None = None) -> list[str]:
    """Return one line for each thing that is wrong."""
    files = tracked_files(root) if files is None else files
    page = files[PAGE]
    names = defined_names(page)
    result = [
        f"{PAGE}: `{name}` is there twice" for name in sorted(set(names)) if names.count(name) > 1
    ]
    for rule in read_rules(page).values():
        result += [f"{PAGE}: `{rule.name}` has no test"] * (not rule.tests)
        result += [f"{PAGE}: `{rule.name}` is enforced nowhere"] * (not rule.places)
        result += [
            f"{PAGE}: `{rule.name}` names {test}, which is no test"
            for test in rule.tests
            if not re.fullmatch(r"tests/[\w/]+\.py::test_\w+", test)
            or not _exists(test, files, root)
        ]
        if rule.tests and all(
            is_exhaustive(test, files.get(test.partition("::")[0], "")) for test in rule.tests
        ):
            result.append(f"{PAGE}: `{rule.name}` has no test that `make test` runs")
        result += [
            f"{PAGE}: `{rule.name}` is enforced by {place}, which does not exist"
            for place in rule.places
            if not _exists(place, files, root)
        ]
    for path, text in files.items():
        result += [
            f"{path}: rule `{name}` is not in {PAGE}"
            for name in sorted(references(path, text) - set(names))
        ]
        result += [f"{path}: {number} resolves nowhere" for number in numbers(text)]
    return result


def main() -> None:
    result = complaints()
    sys.stderr.writelines(f"{line}\n" for line in result)
    sys.exit(bool(result))


if __name__ == "__main__":
    main()
