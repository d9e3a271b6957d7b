"""docs/reference/security.md names a test for each rule, or says that there is none and why."""

import pathlib
import re

from tests.docs import rules

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "security.md").read_text()
_ROW = re.compile(r"^\| `([a-z0-9-]+)` \| .+ \| (.+) \|$", re.MULTILINE)
_TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def test_every_rule_is_there_once() -> None:
    """Those of the page of rules; one that is not built is here with that word."""
    security = (ROOT / rules.PAGE).read_text().partition("\n## Security\n")[2]
    mapped = [rule for rule, _ in _ROW.findall(PAGE)]
    assert len(mapped) == len(set(mapped))
    assert set(rules.read_rules(security)) <= set(mapped)


def test_every_test_of_the_map_exists() -> None:
    for rule, cell in _ROW.findall(PAGE):
        references = _TEST.findall(cell)
        assert references or cell.startswith("none: "), rule
        for path, name in references:
            text = (ROOT / path).read_text()
            assert f"def {name or 'test_'}" in text, (rule, path, name)


def test_what_attacks_the_product_is_in_the_map() -> None:
    """No such test is written and forgotten."""
    mapped = {path for path, _ in _TEST.findall(PAGE)}
    written = set((ROOT / "tests" / "security").glob("test_*.py")) - {pathlib.Path(__file__)}
    assert {str(path.relative_to(ROOT)) for path in written} <= mapped


def test_how_to_report_a_flaw_is_said_where_people_look() -> None:
    pointer = (ROOT / "SECURITY.md").read_text()
    assert "docs/reference/security.md#reporting-a-vulnerability" in pointer
    assert "\n## Reporting a vulnerability\n" in PAGE
