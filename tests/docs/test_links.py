"""Every relative link, anchor and picture of the documentation resolves, and no page is left out."""

import os
import pathlib
import re

import pytest

from tests.docs import pages

PAGES = pages.markdown_pages()
FOLDERS = ("claims", "deploy", "docs", "ipam_site", "pools", "templates", "tests")
SUFFIXES = {".html", ".md", ".py", ".sql", ".toml", ".yaml"}
_MENTION = re.compile(r"(?<![\w/.-])docs/[\w/-]+\.(?:md|svg|png)")


def page_id(page: pathlib.Path) -> str:
    return str(page.relative_to(pages.ROOT))


def link_resolves(page: pathlib.Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists() or not target.is_relative_to(pages.ROOT):
        return False
    return not anchor or anchor in pages.heading_anchors(target.read_text())


def broken_links(page: pathlib.Path) -> list[str]:
    links = pages.relative_links(page.read_text())
    return [link for link in links if not link_resolves(page, link)]


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_link_resolves(page: pathlib.Path) -> None:
    assert broken_links(page) == []


def test_every_mention_of_a_page_resolves() -> None:
    """Code, tests and manifests name pages as docs/….md; CHANGELOG.md names files of its time."""
    sources = [pages.ROOT / "Makefile", *pages.ROOT.glob("*.md")]
    for folder in FOLDERS:
        sources += [path for path in (pages.ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    missing = {
        (page_id(source), mention)
        for source in sources
        if source.name != "CHANGELOG.md"
        for mention in _MENTION.findall(source.read_text())
        if not (pages.ROOT / mention).exists()
    }
    assert missing == set()


def test_every_page_of_docs_is_in_its_index() -> None:
    docs = pages.ROOT / "docs"
    linked = {
        (docs / link.partition("#")[0]).resolve()
        for link in pages.relative_links((docs / "README.md").read_text())
    }
    assert set(docs.rglob("*.md")) - linked - {docs / "README.md"} == set()


def test_the_program_that_pages_and_the_first_start_call_is_executable() -> None:
    assert os.access(pages.ROOT / "manage.py", os.X_OK)
