"""Rule `no-database-no-allocation`: everybody is told so in time, and all resumes by itself.

Killed, stopped in order, or standing still: against a real `manage.py up`.
"""

import signal
from collections.abc import Callable
from concurrent import futures
from contextlib import AbstractContextManager

import pytest

from tests import eventually, running_site
from tests.edges import api as apis, webhooks
from tests.failure.sites import Answer, Site

pytestmark = pytest.mark.usefixtures("well")
OURS = ("worker", "reconciler", "watcher", "beat")
Away = Callable[[Site], AbstractContextManager[None]]
WAYS: dict[str, Away] = {
    "stopped": lambda site: site.away("postgres", signal.SIGINT),
    "killed": lambda site: site.away("postgres", signal.SIGKILL),
    "hangs": lambda site: site.stopped("postgres"),
}
LONGEST = 15.0  # seconds; a server that hangs is asked twice before it is given up


@pytest.fixture(scope="module")
def pool(site: Site) -> str:
    return site.pool("away", "10.0.0.0/24")


@pytest.fixture(scope="module")
def session(site: Site) -> dict[str, str]:
    """The cookie of somebody who is logged in."""
    browser = running_site.Browser(site.running.url)
    assert browser.login("admin", site.running.password)
    cookie = next(cooky for cooky in browser._cookies if cooky.name == "sessionid")
    return {"Cookie": f"sessionid={cookie.value}"}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_allocated_and_all_resumes(
    site: Site, pool: str, session: dict[str, str], way: str
) -> None:
    before = {part: site.pids(part)[0] for part in ("web", *OURS)}
    held = site.scalar("SELECT count(*) FROM pools_block WHERE state = 'held'")
    body = apis.holder(f"vm-{way}")
    with WAYS[way](site):
        answers = _all_at_once(
            lambda: site.ask("POST", pool, body, Idempotency_Key=f"k-{way}"),
            lambda: site.ask("GET", "blocks/?limit=1"),
            lambda: site.ask("GET", "/admin/pools/pool/", **session),
            lambda: site.ask("POST", "/webhooks/v1/prod/validate-ciliumpodippools", webhooks.review(webhooks.manifest("a"))),
        )  # fmt: skip
        assert [answer.unavailable for answer in answers] == [True] * 4, answers
        assert max(answer.seconds for answer in answers) < LONGEST
        health = site.ask("GET", "/healthz")
        assert (health.status, health.seconds < 5) == (200, True)
        assert site.ask("GET", "/readyz").status == 503
        # Now that it is known, nobody waits.
        assert site.ask("POST", pool, body, Idempotency_Key=f"k-{way}").unavailable
    eventually.until(site.ready)
    answer = _served(lambda: site.ask("POST", pool, body, Idempotency_Key=f"k-{way}"))
    assert answer.status == 201, answer
    assert site.scalar("SELECT count(*) FROM pools_block WHERE state = 'held'") == held + 1
    # Nobody was started again but the server: everybody got on by themselves.
    site.gets_on("worker", "watcher", "beat")  # the reconciler has no cluster to see to
    assert {part: site.pids(part)[0] for part in before} == before


def _served(ask: Callable[[], Answer]) -> Answer:
    """The first answer that is not "ask again": each web process finds out by itself that the
    server answers, and another one than said so may take the request.
    """
    answers = []

    def served() -> bool:
        answers.append(ask())
        return not answers[-1].unavailable

    eventually.until(served)
    return answers[-1]


def _all_at_once(*calls: Callable[[], Answer]) -> list[Answer]:
    with futures.ThreadPoolExecutor(len(calls)) as threads:
        return [item.result() for item in [threads.submit(ask) for ask in calls]]
