"""Rule `leak-needs-two-observations`: complete ones, a grace apart, that did not see the holder."""

from datetime import timedelta

import pytest

from pools.models import Leak
from pools.platform import database
from tests.leaks.conftest import GRACE
from tests.leaks.feeds import Feed, count


def test_one_observation_is_a_suspicion(feed: Feed) -> None:
    feed.holds("i-1")
    answer = feed.report()
    assert (answer["missed"], answer["leaked"]) == (1, 0)
    assert (feed.suspected(), feed.leaked()) == (["i-1"], [])


@pytest.mark.parametrize(("apart", "leaked"), [(GRACE - 1, []), (GRACE, ["i-1"])])
def test_the_second_one_counts_a_grace_later(feed: Feed, apart: int, leaked: list[str]) -> None:
    feed.holds("i-1")
    feed.holds("i-2")
    feed.twice("i-2", apart=apart)
    assert feed.leaked() == leaked
    assert feed.suspected() == ([] if leaked else ["i-1"])


def test_observations_in_between_do_not_begin_anew(feed: Feed) -> None:
    feed.holds("i-1")
    for _ in range(4):
        feed.report()
        feed.clock.advance(GRACE / 3)
    assert feed.leaked() == ["i-1"]
    assert Leak.objects.get().observations == 4


def test_who_is_seen_again_is_not_suspected_any_more(feed: Feed) -> None:
    feed.holds("i-1")
    feed.report()
    feed.clock.advance(GRACE)
    feed.report("i-1")
    assert count() == 0
    feed.report()
    assert (feed.suspected(), feed.leaked()) == (["i-1"], [])


def test_a_leak_ends_when_its_holder_is_seen_again(feed: Feed) -> None:
    feed.holds("i-1")
    feed.twice()
    feed.report("i-1")
    assert count() == 0


def test_a_delta_never_makes_a_leak_and_clears_one(feed: Feed) -> None:
    feed.holds("i-1")
    feed.holds("i-2")
    feed.report("i-1", "i-2")
    feed.report(complete=False, removed=[{"id": "i-1"}])
    feed.clock.advance(GRACE)
    feed.report(complete=False, removed=[{"id": "i-2"}])
    assert count() == 0
    feed.twice()
    assert feed.leaked() == ["i-1", "i-2"]
    feed.report("i-2", complete=False)
    assert feed.leaked() == ["i-1"]


def test_another_tenure_of_the_block_is_another_suspicion(feed: Feed) -> None:
    block = feed.holds("i-1")
    feed.report()
    feed.clock.advance(GRACE)
    from tests import factories

    factories.give_back(block)
    assert feed.holds("i-1")["id"] == block["id"], "it returns within its cooldown"
    assert (feed.suspected(), feed.leaked()) == ([], [])
    feed.report()
    assert (feed.suspected(), feed.leaked()) == (["i-1"], [])


def test_a_reader_that_began_early_misses_nothing_that_came_later(feed: Feed) -> None:
    """Rule `younger-than-the-list-is-not-missed` of an observation."""
    began = database.now()
    feed.clock.advance(10)
    feed.holds("i-1")
    feed.clock.advance(10)
    feed.report(observed_at=began.isoformat())
    assert count() == 0
    later = (database.now() + timedelta(days=2)).isoformat()
    feed.report(observed_at=later)
    assert feed.suspected() == ["i-1"], "a clock that is ahead is not believed"


def test_the_grace_is_counted_until_the_second_observation_began(feed: Feed) -> None:
    feed.holds("i-1")
    feed.report()
    began = database.now()
    feed.clock.advance(GRACE)
    feed.report(observed_at=began.isoformat())
    assert feed.leaked() == []
    feed.report()
    assert feed.leaked() == ["i-1"]
