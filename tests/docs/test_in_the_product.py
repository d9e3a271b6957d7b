"""The documentation is in the product: every page links its chapter, and chapters link each other."""

import re

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import RequestFactory
from django.urls import reverse

from pools.admin import documentation
from pools.platform.admin import menu
from tests import people

pytestmark = pytest.mark.django_db


def test_every_page_of_the_menu_has_a_chapter_that_exists() -> None:
    for group in settings.MENU:
        for item in group["items"]:
            for page in (*item["pages"], *item["below"]):
                if page["url"].startswith("admin:"):
                    name = menu.chapter_of_page(f"{reverse(page['url'])}12/change/")
                    assert (settings.BASE_DIR / "docs" / f"{name}.md").is_file(), page["title"]


def test_an_item_leads_to_its_first_page_that_the_user_may_open() -> None:
    request = RequestFactory().get("/admin/")
    request.user = User.objects.create(username="nobody")
    links = {
        str(item["title"]): item["link"]
        for group in menu.navigation(request)
        for item in group["items"]
    }
    assert links == {
        "Overview": "/admin/",
        "Access": reverse("admin:knox_authtoken_changelist"),
        "Settings": reverse("api:docs"),
    }


def test_a_page_links_its_chapter() -> None:
    page = people.browser().get(reverse("admin:pools_leak_changelist")).content.decode()
    assert re.search(r'href="/admin/docs/reference/leak-detection/">Help</a>', page)


@pytest.mark.exhaustive
def test_links_of_all_chapters_and_runbooks_lead_to_pages() -> None:
    client = people.browser()
    docs = settings.BASE_DIR / "docs"
    for path in docs.rglob("*.md"):
        name = path.relative_to(docs).with_suffix("").as_posix()
        page = client.get(reverse("admin:documentation", args=[name])).content.decode()
        text = page[page.index("<article ") :]
        for target, heading in re.findall(r'href="/admin/docs/([^"]+)/(?:#([^"]+))?"', text):
            assert (docs / f"{target}.md").is_file(), (name, target)
            if heading:
                other = client.get(f"/admin/docs/{target}/").content.decode()
                assert f'id="{heading}"' in other, (name, target, heading)
        assert "<img" not in text


@pytest.mark.parametrize("name", ["nothing", "../README", "reference/../../README", "a.b", "\0"])
def test_other_files_are_not_shown(name: str) -> None:
    assert people.browser().get(f"/admin/docs/{name}/").status_code in {404, 400}


def test_markdown_is_rendered_and_html_in_it_escaped() -> None:
    html = documentation._html(
        "## A `b` c\n\n| x | y |\n|---|---|\n| 1 | <script>alert(1)</script> |\n\n"
        "[link](../api.md#codes) [file](../x.yaml) [bad](javascript:alert(1)) ![picture](a.png)",
        "reference",
    )
    assert '<h2 id="a-b-c">A <code>b</code> c</h2>' in html
    assert "<td>1</td>\n<td>&lt;script&gt;" in html
    assert '<a href="/admin/docs/api/#codes" class="cad-link">link</a> file ' in html
    assert "<img" not in html
    assert "<script" not in html
    assert 'href="javascript' not in html
