"""JSON texts: what they mean. What is refused: test_bad_input."""

import pytest

from pools.core import errors
from pools.platform import documents
from tests import effort


def test_brackets_in_texts_are_not_depth() -> None:
    text = '{"a": "' + "[" * 100 + '", "b": "\\"' + "{" * 100 + '"}'
    assert documents.load_json(text)["a"] == "[" * 100


def test_all_problems_are_reported_with_their_paths() -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        documents.load_json(
            '{"a": [{"b": 1, "b": 2, "b": 3}, NaN], "c": -Infinity, "d": 1e999,'
            f' "e": {"9" * 41}, "f": "\\ud800", "\\u0000": 1}}'
        )
    assert [(problem.field, problem.code) for problem in caught.value.problems] == [
        ("a.0.b", "duplicate_key"),
        ("a.1", "not_finite"),
        ("c", "not_finite"),
        ("d", "not_finite"),
        ("e", "bad_number"),
        ("f", "encoding"),
        ("", "encoding"),
    ]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a": 1', "line 1, column 8"),
        ('{"a": 1}\n{}', "line 2, column 1"),
        ("{'a': 1}", "line 1, column 2"),
        ('{"a": 1,}', "line 1, column"),
        ('{"a": "tab\t"}', "line 1, column"),
        ('{"a": 01}', "line 1, column"),
    ],
)
def test_syntax_errors_have_a_place(text: str, place: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        documents.load_json(text)
    assert caught.value.code == "json_syntax"
    assert place in caught.value.message


@pytest.mark.exhaustive
def test_two_megabytes_are_read_in_time() -> None:
    text = '{"a": [' + '{"cidr": "10.0.0.0/8", "n": [1, 2, {"b": 1.5}]}, ' * 40_000 + "1]}"
    with effort.at_most(5_000):
        assert len(documents.load_json(text)["a"]) == 40_001
