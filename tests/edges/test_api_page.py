"""docs/api.md has every address of the API with every method, none that there is not, and every code of a refusal."""

import re
from collections.abc import Iterator

from ipam_site import data_folder
from tests.edges import api as apis

_METHODS = {"get", "post", "put", "patch", "delete"}
_CALL = re.compile(r"((?:[A-Z]+\\\|)*[A-Z]+) (\S+?/?)(?:\?.*)?")


def _schema() -> set[tuple[str, str]]:
    result = set()
    for path, operations in apis.document()["paths"].items():
        name = re.sub(r"\{[^}]*\}", "{}", path.removeprefix("/api/v1/"))
        result |= {(method.upper(), name) for method in operations if method in _METHODS}
    return result


def _page() -> Iterator[tuple[str, str]]:
    """(method, path) of the first column of the table; `…/x/` stands beside the path before it."""
    text = (data_folder.PROJECT / "docs" / "api.md").read_text()
    for line in text.splitlines():
        if not line.startswith("| `"):
            continue
        column = re.split(r"(?<!\\)\|", line)[1]
        methods: list[str] = []
        before = ""
        for span in re.findall(r"`([^`]*)`", re.sub(r"\{[^}\"]*\}", "{}", column)):
            if call := _CALL.fullmatch(span):
                methods, path = call[1].split("\\|"), call[2]
            elif span.startswith("…/"):
                path = span
            else:
                continue
            if path.startswith("…/"):
                path = _beside(before, path.removeprefix("…/"))
            before = path
            yield from ((method, path) for method in methods)


def _beside(before: str, tail: str) -> str:
    """`a/{}/b/` and `c/` are `a/{}/c/`; `a/{}/b/` and `b/{}/c/` are `a/{}/b/{}/c/`."""
    head, shared = before.rstrip("/").split("/"), tail.rstrip("/").split("/")
    index = head.index(shared[0]) if shared[0] in head else len(head) - len(shared)
    return "/".join([*head[:index], *shared]) + "/"


def _is(documented: tuple[str, str], there: tuple[str, str]) -> bool:
    """A word may stand where the address has a placeholder (`drift/{}/apply/`)."""
    pattern = re.escape(there[1]).replace(re.escape("{}"), "[^/]+")
    return documented[0] == there[0] and re.fullmatch(pattern, documented[1]) is not None


def test_every_address_is_on_the_page() -> None:
    page = set(_page())
    missing = [there for there in _schema() if not any(_is(item, there) for item in page)]
    assert sorted(missing) == []


def test_every_address_of_the_page_is_there() -> None:
    schema = _schema()
    unknown = [item for item in set(_page()) if not any(_is(item, there) for there in schema)]
    assert sorted(unknown) == []


_CODES = re.compile(
    r'InvalidInput\.of\(\s*[^,]+,\s*"([a-z0-9_]+)"|\n    code = "([a-z0-9_]+)"'
    r'|report\.add\(\s*\w+(?:\.\w+\([^)]*\))?,\s*"([a-z0-9_]+)"'
)
_INTERNAL = {"ipam_error"}  # the base of all refusals, never raised itself


def test_all_codes_are_documented() -> None:
    project = data_folder.PROJECT
    text = "".join(path.read_text() for path in sorted((project / "pools").rglob("*.py")))
    used = {code for item in _CODES.findall(text) for code in item if code} - _INTERNAL
    matches = set(re.findall(r"`([a-z0-9_]+)`", (project / "docs" / "api.md").read_text()))
    assert len(used) > 40
    assert used - matches == set()
