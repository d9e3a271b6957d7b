"""The checker itself, on histories written by hand: what it must find and what it must not."""

from typing import Any

import pytest

from tests.concurrent import checker, journal

COOLDOWN = 1.0


def _got(owner: str, invoked: float, ended: float | None, **more: Any) -> journal.Op:
    values = {"address": "10.0.0.1", "block": 1, "result": "ok"} | more
    if ended is None:
        values = {"result": journal.UNKNOWN}
    return journal.Op("allocate", owner, "p", invoked, ended, **values)


def _gave(owner: str, invoked: float, ended: float | None, **more: Any) -> journal.Op:
    values = {"address": "10.0.0.1", "block": 1, "result": "ok", "first": True} | more
    if ended is None:
        values |= {"result": journal.UNKNOWN}
    return journal.Op("release", owner, "p", invoked, ended, **values)


def _held(owner: str, address: str = "10.0.0.1") -> checker.Held:
    return checker.Held(owner, "p", address)


RIGHT: list[Any] = [
    pytest.param([_got("a", 0, 1)], [_held("a")], id="held"),
    pytest.param(
        [_got("a", 0, 1), _gave("a", 2, 3), _got("b", 2.5, 3)], [_held("b")], id="one by one"
    ),
    pytest.param([_got("a", 0, 1), _got("a", 2, 3)], [_held("a")], id="replayed"),
    pytest.param(
        [_got("a", 0, 1), _gave("a", 2, 3), _got("a", 4, 5), _got("b", 4, 4.1)],
        [_held("b")],
        id="a replay after the release is no hold",
    ),
    pytest.param([_got("a", 0, None)], [], id="never happened"),
    pytest.param([_got("a", 0, None)], [_held("a")], id="happened unseen"),
    pytest.param(
        [_got("a", 0, None), _got("b", 0, 1)], [_held("b")], id="unseen ones hold nothing"
    ),
    pytest.param([_got("a", 0, 1), _gave("a", 2, None)], [_held("a")], id="release unseen"),
    pytest.param([_got("a", 0, 1), _gave("a", 2, None)], [], id="release unseen, done"),
    pytest.param(
        [_got("a", 0, 1), _gave("a", 2, 3), _got("b", 4, 5),
         _gave("a", 6, 7, result="refused", code="holder_changed", first=False)],
        [_held("b")], id="late release refused",
    ),
    pytest.param([_got("a", 0, 1, result="refused", code="ipam_exhausted", address="", block=0)],
        [], id="exhausted"),
]  # fmt: skip

WRONG: list[Any] = [
    ("double_holder", [_got("a", 0, 1), _got("b", 1, 2)], [_held("a")]),
    ("double_holder", [_got("a", 0, 1), _gave("a", 5, 6), _got("b", 1, 2), _gave("b", 3, 4)], []),
    ("cooldown_reuse", [_got("a", 0, 1), _gave("a", 2, 2.1), _got("b", 2.1, 2.9)], [_held("b")]),
    ("idempotency", [_got("a", 0, 1), _got("a", 2, 3, address="10.0.0.2")], [_held("a")]),
    ("idempotency", [_got("a", 0, 1), _got("a", 2, 3, block=2)], [_held("a")]),
    ("taken_away", [_got("a", 0, 1), _gave("a", 2, 3, result="refused", code="holder_changed")], []),
    ("lost_after_commit", [_got("a", 0, 1)], []),
    ("lost_after_commit", [_got("a", 0, 1)], [_held("b")]),
    ("not_released", [_got("a", 0, 1), _gave("a", 2, 3)], [_held("a")]),
    ("dup_rows", [_got("a", 0, 1)], [_held("a"), _held("a", "10.0.0.2")]),
    ("dup_rows", [_got("a", 0, None), _got("b", 0, None)], [_held("a"), _held("b")]),
    ("unexpected", [_got("a", 0, 1, result="refused", code="internal_error")], []),
    ("unexpected", [_got("a", 0, 1), _gave("a", 2, 3, result="error", code="500")], [_held("a")]),
]  # fmt: skip


@pytest.mark.parametrize(("history", "held"), RIGHT)
def test_no_alarm(history: list[journal.Op], held: list[checker.Held]) -> None:
    assert checker.check(history, held, cooldowns={"p": COOLDOWN}) == []


@pytest.mark.parametrize(("kind", "history", "held"), WRONG)
def test_alarm(kind: str, history: list[journal.Op], held: list[checker.Held]) -> None:
    result = checker.check(history, held, cooldowns={"p": COOLDOWN})
    assert result[0].kind == kind


def test_a_long_hold_hides_no_later_one() -> None:
    history = [_got("a", 0, 1), _got("b", 2, 3), _gave("b", 4, 5), _got("c", 20, 21)]
    result = checker.check(history, [_held("a")], cooldowns={"p": COOLDOWN})
    assert [v.kind for v in result].count("double_holder") == 2


def test_a_journal_says_what_was_written(tmp_path) -> None:
    writer = journal.Writer(tmp_path / "c.jsonl")
    number = writer.begin(kind="allocate", owner="a", pool="p")
    writer.end(number, journal.Answer("ok", "10.0.0.1", 7))
    writer.begin(kind="release", owner="a", pool="p", address="10.0.0.1", block=7, first=True)
    with writer.path.open("a") as torn:
        torn.write('{"n": 2, "t": 1')
    grant, gave = journal.read(writer.path)
    assert (grant.result, grant.address, grant.block) == ("ok", "10.0.0.1", 7)
    assert (gave.result, gave.ended, gave.first) == ("unknown", None, True)
    assert journal.last_number(writer.path) == 2
