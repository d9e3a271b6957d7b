"""Any JSON value, with the names of one kind of object."""

from typing import Any

from hypothesis import strategies as st

ANY_TEXT = st.text(st.characters(exclude_categories=()))  # with surrogates and NUL


def any_json(names: str, *others: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """`names` are the keys of its objects, with blanks between them; `others` are further leaves."""
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.one_of(*others)
    keys = st.sampled_from(names.split())
    return st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(keys | ANY_TEXT, inner, max_size=6)
        ),
        max_leaves=25,
    )
