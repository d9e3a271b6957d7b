"""docs/rules.md and those who refer to it agree, and each way in which they could not is found."""

import pathlib
import re

import pytest

from tests.docs import pages, rules

FILES = rules.tracked_files(pages.ROOT)
PROVED = "| `a-rule` | It holds. | `code.py` | `tests/test_it.py::test_it` |"
UNBUILT = f"\n{rules.NOT_BUILT}\n\n| `a-plan` | It would hold. | Not built. |\n"


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_it.py").write_text("def test_it() -> None: ...\n")
    (tmp_path / "code.py").write_text("def hold(): ...\n")
    return tmp_path


def complaints(root: pathlib.Path, row: str = PROVED, **sources: str) -> list[str]:
    files = {f"{name}.py": text for name, text in sources.items()}
    return rules.complaints(root, {rules.PAGE: row + UNBUILT, **files})


def test_nothing_is_wrong() -> None:
    assert rules.complaints() == []


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (PROVED.replace("`tests/test_it.py::test_it`", "none"), "has no test"),
        (PROVED.replace("::test_it", "::test_gone"), "which is no test"),
        (PROVED.replace("tests/test_it.py", "tests/test_gone.py"), "which is no test"),
        (PROVED.replace("::test_it", ""), "which is no test"),
        (PROVED.replace("`code.py`", "somewhere"), "is enforced nowhere"),
        (PROVED.replace("code.py", "gone.py"), "which does not exist"),
        (PROVED.replace("code.py", "code.py::gone"), "which does not exist"),
        (PROVED.replace("code.py", "pools_block_gone"), "which does not exist"),
        (f"{PROVED}\n{PROVED}", "is there twice"),
    ],
    ids=range(9),
)
def test_a_rule_without_a_place_or_a_test(root: pathlib.Path, broken: str, says: str) -> None:
    assert says in complaints(root, broken)[0]


@pytest.mark.parametrize(
    "number",
    ["I1", "B42", "F5", "S10: it holds", "R6.", f"spec/{3:03}", "spec 003", "SPEC_002"],
)
def test_a_number_of_a_document_elsewhere(root: pathlib.Path, number: str) -> None:
    (complaint,) = complaints(root, a=f"# As {number}\n")
    assert complaint.endswith("resolves nowhere")


def test_every_row_of_the_page_is_read() -> None:
    page = FILES[rules.PAGE]
    rows = re.findall(r"^\| (?!Rule \|)(.*?) \|", page, re.MULTILINE)
    assert [f"`{name}`" for name in rules.defined_names(page)] == rows
    assert len(rows) > 100
