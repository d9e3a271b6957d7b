"""YAML texts: what they mean. What is refused: test_bad_input."""

import json
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from pools.core import errors
from pools.platform import documents
from tests import effort


def _one(text: str) -> dict[str, Any]:
    (document,) = documents.load_yaml(text)
    return document.data


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("24", 24),
        ("-5", -5),
        ("+7", 7),
        ("0", 0),
        ("010", "010"),
        ("0x10", "0x10"),
        ("0o17", "0o17"),
        ("1_000", "1_000"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("10.20", 10.2),
        ("10.20.0.0", "10.20.0.0"),
        ("11:22:33:44:55:06", "11:22:33:44:55:06"),
        ("2026-01-01", "2026-01-01"),
        ("no", "no"),
        ("on", "on"),
        ("true", True),
        ("FALSE", False),
        ("null", None),
        ("~", None),
        ("", None),
        ('"24"', "24"),
        ("'true'", "true"),
        ("|\n  text\n", "text\n"),
    ],
)
def test_plain_scalars_are_those_of_yaml_1_2(scalar: str, value: object) -> None:
    a = _one(f"a: {scalar}")["a"]
    assert a == value
    assert type(a) is type(value)


def test_keys_are_texts_as_they_are_written() -> None:
    assert _one("1: a\nno: b\n~: c\n11:22:33:44:55:06: d\n") == {
        "1": "a",
        "no": "b",
        "~": "c",
        "11:22:33:44:55:06": "d",
    }


def test_documents_know_their_number_and_line() -> None:
    yaml = documents.load_yaml(b"# remark\n---\n---\na: 1\n---\n\nb: 2\n")
    assert yaml == [documents.Document(0, 4, {"a": 1}), documents.Document(1, 7, {"b": 2})]


def test_all_problems_of_all_documents_are_reported() -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        documents.load_yaml("a: 1\na: 2\n---\nb: [{c: &x .nan}, *x]\n---\n- 1\n")
    assert [(problem.field, problem.code) for problem in caught.value.problems] == [
        ("documents.0.a", "duplicate_key"),
        ("documents.1.b.0.c", "anchors_not_allowed"),
        ("documents.1.b.1", "anchors_not_allowed"),
        ("documents.2", "object_expected"),
    ]


@pytest.mark.parametrize(("depth", "passes"), [(32, True), (33, False)])
def test_thirty_two_levels_are_the_limit(depth: int, passes: bool) -> None:
    text = "a: " + "[" * (depth - 1) + "]" * (depth - 1)
    if passes:
        assert _one(text)
        return
    with pytest.raises(errors.InvalidInput) as caught:
        documents.load_yaml(text)
    assert caught.value.code == "too_deep"


def test_a_text_with_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        documents.load_yaml("a: \ud800")
    assert caught.value.code == "encoding"


def test_thousands_of_problems_are_cut() -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        documents.load_yaml("a: [" + "*x, " * 5000 + "1]")
    assert len(caught.value.problems) == documents.MOST_PROBLEMS


@pytest.mark.exhaustive
def test_a_megabyte_is_read_in_time() -> None:
    pool = "p{}:\n  ipv4:\n    cidrs: [10.{}.0.0/16, fd00::/104]\n    maskSize: 24\n"
    text = "".join(pool.format(number, number % 256) for number in range(14_000))
    assert len(text) > 900_000
    with effort.at_most(5_000):
        assert len(_one(text)) == 14_000


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.exhaustive
@hypothesis.given(st.dictionaries(TEXTS.filter(lambda key: key != "<<"), VALUES))
def test_a_json_text_means_the_same_in_both_readers(value: dict[str, Any]) -> None:
    text = json.dumps(value, ensure_ascii=False)
    hypothesis.assume('"<<"' not in text)
    assert _one(text) == value
    assert documents.load_json(text) == value
