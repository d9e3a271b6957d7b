"""The documentation is in the product: every page links its chapter, and chapters link each other."""

from __future__ import annotations

import re

import pytest
from django.conf import settings
from django.urls import reverse

from pools.platform.admin import menu
from tests import people

pytestmark = pytest.mark.django_db


def test_every_menu_entry_has_a_chapter_that_exists() -> None:
    for group in settings.UNFOLD["SIDEBAR"]["navigation"]:
        for item in group["items"]:
            if str(item["link"]).startswith("/admin/"):
                name = menu.chapter(f"{item['link']}12/change/")
                assert (settings.BASE_DIR / "docs" / f"{name}.md").is_file(), item["title"]


def test_a_page_links_its_chapter() -> None:
    page = people.browser().get(reverse("admin:pools_leak_changelist")).content.decode()
    assert re.search(r'href="/admin/docs/reference/leak-detection/">Help</a>', page)


def test_links_of_all_chapters_and_runbooks_lead_to_pages() -> None:
    client = people.browser()
    docs = settings.BASE_DIR / "docs"
    for path in docs.rglob("*.md"):
        name = path.relative_to(docs).with_suffix("").as_posix()
        page = client.get(reverse("admin:documentation", args=[name])).content.decode()
        text = page[page.index('<pre class="cad-text">') :]
        for target in re.findall(r'href="/admin/docs/([^"]+)/"', text):
            assert (docs / f"{target}.md").is_file(), (name, target)


@pytest.mark.parametrize("name", ["nothing", "../README", "reference/../../README", "a.b", "\0"])
def test_other_files_are_not_shown(name: str) -> None:
    assert people.browser().get(f"/admin/docs/{name}/").status_code in {404, 400}


def test_markdown_is_escaped() -> None:
    page = people.browser().get(reverse("admin:documentation", args=["api"])).content.decode()
    text = page[page.index('<pre class="cad-text">') : page.index("</pre>")]
    assert "<script" not in text
    assert not re.search(r"<(?!/?(?:a|strong|pre)\b)", text)
