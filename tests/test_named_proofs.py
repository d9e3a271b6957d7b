"""Each rule that reconciling must keep has a test by its name, so that none of them gets lost.

The names begin with what they prove: `test_point_07_…`, `test_f14_…`, `test_r3_…`, or with several of
these. What each of them stands for:
"""

from __future__ import annotations

import pathlib
import re

import pytest

POINTS = {
    1: "cold start with 0, 1, 10,000 objects",
    2: "an event that was lost is found by the next list",
    3: "410 on a watch and on continue, as HTTP and as an ERROR event",
    4: "a bookmark moves the position, and no object",
    5: "events twice and out of order",
    6: "two replicas hand out nothing twice",
    7: "409: read again and worked out anew",
    8: "fields of others are shown and not forced",
    9: "a second pass writes nothing",
    10: "deletion with a finalizer, and a crash in between",
    11: "deleted and made again under the same name",
    12: "unknown fields are kept",
    13: "the API server is down; one bad object",
    14: "clock skew",
    15: "the webhook: uid, dry run, malformed and large bodies",
    16: "the webhook is down",
    17: "drift: adopt, correct, ignore",
    18: "orphans, leaks and duplicates are told",
    19: "least privilege",
    20: "clusters with v2alpha1 only, v2 only, both",
}
FAULTS = {
    14: "409 on a write",
    15: "410 on a watch and on continue",
    16: "whatever else an API server or the way to it may answer",
    17: "rights, kinds and identity that change",
    18: "half-written",
    19: "the webhook is slow, down, asked twice, asked to try",
    20: "two workers on one cluster",
    21: "poisonous objects",
    22: "a restored backup",
    23: "a cluster that hangs",
}
REGRESSIONS = {
    1: "whereabouts#207: an owner made between two lists",
    2: "whereabouts#176: the same name, another uid",
    3: "cilium#41986: an in-use CIDR under another pool's name",
    4: "an error is taken for an end",
    5: "cilium#21482: handing out before everything in use is known",
    6: "kubevirt#13709: two objects of one owner",
}
NAMES = [
    *(f"point_{number:02}" for number in POINTS),
    *(f"f{number}" for number in FAULTS),
    *(f"r{number}" for number in REGRESSIONS),
]
_TEST = re.compile(r"^ *(?:async )?def test_(\w+)\(", re.MULTILINE)
_NAME = re.compile(r"(point_\d\d|[fir]\d+)(?:_|$)")
_HERE = pathlib.Path(__file__).parent


def _proved() -> dict[str, list[str]]:
    """By rule, the tests that are named after it."""
    found: dict[str, list[str]] = {}
    for path in sorted(_HERE.rglob("test_*.py")):
        for name in _TEST.findall(path.read_text()):
            at = 0
            while match := _NAME.match(name, at):
                found.setdefault(match[1], []).append(f"{path.relative_to(_HERE)}::test_{name}")
                at = match.end()
    return found


@pytest.mark.parametrize("rule", NAMES)
def test_there_is_a_test_by_the_name(rule: str) -> None:
    assert _proved().get(rule)


def test_no_test_is_named_after_a_rule_that_is_none() -> None:
    """One naming: neither `test_7_…` nor `test_point_7_…`, nor a point that there is not."""
    known = set(NAMES)
    strange = [
        f"{path.relative_to(_HERE)}::test_{name}"
        for path in sorted(_HERE.rglob("test_*.py"))
        for name in _TEST.findall(path.read_text())
        if re.match(r"\d+_|point_", name) and not _NAME.match(name)
    ]
    assert strange == []
    assert {rule for rule in _proved() if rule.startswith("point")} <= known
