"""One rounding and one threshold for how full a pool is, on the overview, the pages and in alerts."""

import re
from typing import Any

import pytest
from django.urls import reverse

from pools.models import Alert
from pools.platform.conditions import evaluation
from pools.register import usage
from tests import factories, people


def _text(url: str) -> str:
    page = people.browser().get(url).content.decode()
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))


def test_only_a_full_pool_has_a_hundred() -> None:
    assert usage.Usage(64, held=60).percent == 93
    assert usage.Usage(1000, held=999).percent == 99
    assert usage.Usage(2**64, held=2**64 - 1).percent == 99
    assert usage.Usage(100, held=29).percent == 29
    assert (usage.Usage(4, held=4).percent, usage.Usage(0).percent) == (100, 100)


@pytest.mark.exhaustive
def test_every_page_says_the_same_number() -> None:
    """58 of the 62 addresses are 93.5 per cent."""
    pool = factories.pool("10.0.0.0/26", name="prod")
    factories.ask(pool, *factories.holders(58))
    evaluation.evaluate()
    assert "is 93 % full" in Alert.objects.get(code="pool_nearly_full").title
    for url in (
        reverse("admin:index"),
        reverse("admin:pools_pool_changelist"),
        reverse("admin:pools_pool_change", args=[pool.pk]),
    ):
        text = _text(url)
        assert re.search(r"\b93 ?%", text), url
        assert not re.search(r"\b94 ?%", text), url


@pytest.mark.exhaustive
@pytest.mark.parametrize(("threshold", "is_said"), [(80, True), (90, False)])
def test_the_threshold_moves_every_page(settings: Any, threshold: int, is_said: bool) -> None:
    settings.IPAM_ALERT_WARNING_PERCENT = threshold
    pool = factories.pool("10.0.0.0/28", name="prod")  # 12 of 14
    factories.ask(pool, *factories.holders(12))
    evaluation.evaluate()
    assert Alert.objects.filter(code="pool_nearly_full").exists() is is_said
    assert ("prod is 85 % full" in _text(reverse("admin:index"))) is is_said
    page = people.browser().get(reverse("admin:pools_pool_changelist"))
    assert ("cad-bar-high" in page.content.decode()) is is_said
    listed = _text(reverse("admin:pools_pool_changelist") + "?state=high")
    assert ("prod" in listed) is is_said
    assert f"over {threshold} %" in listed
