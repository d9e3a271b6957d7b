"""The Markdown pages of the repository, their headings and links, as GitHub reads them."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
_FENCE = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)|<(?:img|source)[^>]+src(?:set)?=\"([^\"]+)\"")


def markdown_pages() -> list[pathlib.Path]:
    """All pages that a person reads; CHANGELOG.md is history and names files of its time."""
    root_pages = [path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"]
    return sorted([*root_pages, *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*.md")])


def heading_anchors(text: str) -> set[str]:
    """The anchors of a page: its headings in lower case, without punctuation, with hyphens."""
    anchors: set[str] = set()
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        plain = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = 0
        anchor = slug
        while anchor in anchors:
            number += 1
            anchor = f"{slug}-{number}"
        anchors.add(anchor)
    return anchors


def relative_links(text: str) -> list[str]:
    """The targets of links and pictures that lie in the repository."""
    targets = [first or second for first, second in _LINK.findall(_FENCE.sub("", text))]
    return [target for target in targets if not re.match(r"[a-z]+:", target)]
