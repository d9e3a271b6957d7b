"""The same examples in every run, so that a red build is red again; vary them with a seed:
`pytest tests/core --hypothesis-profile=explore`.
"""

from __future__ import annotations

import hypothesis

hypothesis.settings.register_profile(
    "suite", deadline=None, max_examples=150, derandomize=True, database=None
)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=5000, database=None)
hypothesis.settings.load_profile("suite")
