"""The page of checks: what is proved and wrong, run now, repair, and the line on the overview."""

from __future__ import annotations

import pytest
from django.urls import reverse

from pools.models import CheckRun
from pools.platform.checks import registry, runs
from pools.platform.conditions import evaluation
from pools.register.demo import demo
from tests import factories, people
from tests.checks.conftest import check

pytestmark = pytest.mark.django_db
SEE, RUN, REPAIR = "view_checkrun", "run_checks", "repair"
LIST = "admin:pools_checkrun_changelist"


def broken() -> None:
    pool = factories.pool("10.0.0.0/24", name="broken")
    factories.cidr(pool).free_spans.all().delete()


def page(*rights: str, url: str = LIST) -> str:
    answer = people.browser(rights).get(reverse(url))
    assert answer.status_code == 200
    return str(answer.content.decode())


@pytest.mark.exhaustive
def test_before_any_run_and_after_one() -> None:
    demo.load()
    text = page(SEE)
    assert all(registry.sentence(code) in text.replace("&#x27;", "'") for code in registry.codes())
    assert "<td>never</td>" in text
    check()
    text = page(SEE)
    assert "<td>never</td>" not in text
    assert "Run now" not in text


@pytest.mark.exhaustive
def test_what_is_wrong_leads_to_its_pool() -> None:
    broken()
    check()
    text = page(SEE, RUN, REPAIR)
    assert "254 blocks from 10.0.0.1/32 to 10.0.0.254/32 can never be allocated" in text
    assert "/broken</a>" in text
    assert "1 check has violations" in text
    assert reverse("admin:pools_checkrun_repair") in text
    assert reverse("admin:pools_checkrun_repair") not in page(SEE, RUN)


@pytest.mark.exhaustive
def test_run_now() -> None:
    browser = people.browser((SEE, RUN))
    answer = browser.post(reverse("admin:pools_checkrun_run"), follow=True)
    run = CheckRun.objects.get()
    assert not run.repair
    assert "A worker starts this check within a minute" in answer.content.decode()
    runs.execute(run.pk)
    text = browser.get(reverse("admin:pools_checkrun_change", args=[run.pk])).content.decode()
    assert f"{len(registry.codes())} checks, 0 violations." in text
    assert browser.get(reverse("admin:pools_checkrun_run")).status_code == 302
    assert CheckRun.objects.count() == 1


@pytest.mark.exhaustive
def test_repair_says_what_it_does_first() -> None:
    browser = people.browser((SEE, RUN, REPAIR))
    url = reverse("admin:pools_checkrun_repair")
    assert browser.get(url).status_code == 302, "nothing is wrong"
    broken()
    check()
    text = browser.get(url).content.decode()
    assert "free_space" in text
    assert "No block changes its holder" in text
    browser.post(url)
    run = CheckRun.objects.latest("id")
    assert (run.repair, run.only) == (True, ["free_space"])
    done = runs.execute(run.pk)
    assert done is not None
    assert (done.violations, done.repaired) == (0, 1)
    assert (
        "free_space"
        not in browser.get(url, follow=True).content.decode().partition("<h2>Checks</h2>")[0]
    )


@pytest.mark.parametrize(
    ("rights", "run", "repair"),
    [((), 403, 403), ((SEE,), 403, 403), ((SEE, RUN), 302, 403), ((RUN, REPAIR), 403, 403)],
)
def test_who_may(rights: tuple[str, ...], run: int, repair: int) -> None:
    browser = people.browser(rights)
    assert browser.get(reverse(LIST)).status_code == (200 if SEE in rights else 403)
    assert browser.post(reverse("admin:pools_checkrun_run")).status_code == run
    assert browser.post(reverse("admin:pools_checkrun_repair")).status_code == repair
    assert CheckRun.objects.count() == (run == 302)


@pytest.mark.exhaustive
def test_the_overview_tells_whom_it_concerns() -> None:
    broken()
    check()
    evaluation.evaluate()
    line = "1 integrity violation"
    assert line in page("view_alert", "view_pool", url="admin:index")
    assert line not in page("view_pool", url="admin:index")
    check(repair=True)
    evaluation.evaluate()
    assert line not in page("view_alert", "view_pool", url="admin:index")


@pytest.mark.exhaustive
def test_the_number_of_queries_does_not_grow_with_what_is_wrong(
    django_assert_max_num_queries,
) -> None:  # type: ignore[no-untyped-def]
    for _ in range(4):
        factories.cidr(factories.pool("10.0.0.0/24")).free_spans.all().delete()
    for _ in range(5):
        check()
    browser = people.browser((SEE, RUN, REPAIR))
    with django_assert_max_num_queries(16):
        browser.get(reverse(LIST))
