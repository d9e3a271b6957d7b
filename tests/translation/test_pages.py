"""A language whose catalogue puts each text between marks: the texts of our templates appear so on the pages."""

from __future__ import annotations

import html.parser
import pathlib
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from django.urls import reverse
from django.utils import translation

from pools.models import Pool
from pools.register.demo import demo
from tests import people
from tests.edges import api as apis
from tests.edges import test_admin_pages as admin_pages
from tests.translation import messages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django.fixtures import SettingsWrapper

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(not shutil.which("xgettext"), reason="no GNU gettext"),
]

LANGUAGE = "eo"
# Their texts stand in templates; other captions come from Python too.
CAPTIONS = {"dt", "summary"}
_WORD = re.compile(r"[A-Za-z]{3}")


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return a folder with a catalogue of LANGUAGE: `Pools` is translated as `⟦Pools⟧`."""
    folder = tmp_path_factory.mktemp("locale")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(messages.PROJECT)
        assert messages.extract(folder, LANGUAGE) == []
    for texts in messages.catalogues(folder, LANGUAGE):
        filled, marked = texts.with_suffix(".filled"), texts.with_suffix(".marked")
        mark = ["sed", "-e", "1s/^/⟦/", "-e", "$s/$/⟧/"]
        for command in (
            ["msgen", "-o", filled, texts],
            ["msgfilter", "--keep-header", "-i", filled, "-o", marked, *mark],
            ["msgfmt", "-o", texts.with_suffix(".mo"), marked],
        ):
            subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture
def marked(catalogue: pathlib.Path, settings: SettingsWrapper) -> Iterator[None]:
    settings.LOCALE_PATHS = [str(catalogue)]
    settings.LANGUAGE_CODE = LANGUAGE
    with translation.override(LANGUAGE):
        yield


def test_the_pages_speak_another_language(marked: None) -> None:
    demo.load()
    client = people.browser()
    paths = [*admin_pages.pages(), *admin_pages.pages_of_rows()]
    untranslated = {
        caption
        for path in paths
        for caption in captions(client.get(path).content.decode())
        if _WORD.search(caption) and "⟦" not in caption
    }
    assert untranslated == set()


def test_states_and_events_speak_another_language(marked: None) -> None:
    demo.load()
    client = people.browser()
    for name, text in (
        ("pools_pool_changelist", "⟦active⟧"),
        ("pools_pool_changelist", "⟦full in about "),
        ("pools_event_changelist", "⟦⟦MAC entry⟧ created⟧"),
        ("pools_cluster_changelist", "⟦never synced⟧"),
    ):
        assert text in client.get(reverse(f"admin:{name}")).content.decode()


def test_rest_answers_in_english(marked: None) -> None:
    demo.load()
    api = apis.Api()
    pool = Pool.objects.get(name="yellow-pool")
    forecast, refusal = api("GET", f"pools/{pool.pk}/forecast/"), api("GET", "pools/0/")
    assert (forecast.status_code, refusal.status_code) == (200, 404)
    for answer in (forecast, refusal):
        assert "⟦" not in answer.content.decode()


def captions(page: str) -> set[str]:
    parser = _Captions()
    parser.feed(page)
    return parser.captions


class _Captions(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.captions: set[str] = set()
        self._text: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002  # the parser gives it
        if tag in CAPTIONS:
            self._text = []

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in CAPTIONS and self._text is not None:
            self.captions.add(" ".join("".join(self._text).split()))
            self._text = None
