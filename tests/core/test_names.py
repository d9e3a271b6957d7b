"""Names, identifiers and reasons: what passes. What does not: test_bad_input."""

import unicodedata

import hypothesis
import pytest
from hypothesis import strategies as st

from pools.core import errors, holders

LABEL = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)


@hypothesis.given(LABEL)
def test_labels_pass_as_both_kinds(label: str) -> None:
    assert holders.parse_name(label, kind="label") == label
    assert holders.parse_name(label) == label


@hypothesis.given(st.lists(LABEL, min_size=2, max_size=3))
def test_subdomains_are_no_labels(labels: list[str]) -> None:
    name = ".".join(labels)
    assert holders.parse_name(name) == name
    with pytest.raises(errors.InvalidInput):
        holders.parse_name(name, kind="label")


@hypothesis.given(st.text(st.characters(categories=["L", "M", "N", "P", "S"]), min_size=1))
def test_printable_identifiers_are_kept_in_one_normal_form(text: str) -> None:
    identifier = holders.parse_identifier(text[:80])
    assert identifier == unicodedata.normalize("NFC", text[:80])
    assert holders.parse_identifier(identifier) == identifier


def test_both_spellings_of_a_letter_are_one_holder() -> None:
    assert holders.parse_identifier("cafe\u0301") == holders.parse_identifier("caf\u00e9")


def test_the_length_counts_what_is_stored() -> None:
    assert len(holders.parse_identifier("e\u0301" * 253)) == 253
    assert holders.parse_identifier("abc", max_length=3) == "abc"
    with pytest.raises(errors.InvalidInput) as caught:
        holders.parse_identifier("abcd", max_length=3)
    assert caught.value.code == "too_long"


@pytest.mark.parametrize("text", ["", " \n"])
def test_a_reason_may_be_optional(text: str) -> None:
    assert holders.parse_reason(text, required=False) == ""


def test_a_reason_may_have_the_blanks_of_its_language() -> None:
    assert holders.parse_reason("le nœud\u00a0: perdu") == "le nœud\u00a0: perdu"
