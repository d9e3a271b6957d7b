"""The icons that pages show, and the font of them: `python -m tests.edges.icon_font` makes it of unfold's.

Unfold's font has 3,700 icons in 290 kB, which a first visit waits for.
"""

import pathlib
import re
from collections.abc import Iterator
from typing import Any

import unfold
from fontTools import subset
from fontTools.ttLib import TTFont

ROOT = pathlib.Path(__file__).resolve().parents[2]
UNFOLD = pathlib.Path(unfold.__file__).parent
_NAME = "unfold/fonts/material-symbols/Material-Symbols-Outlined.woff2"
OURS, UNFOLDS = ROOT / "static" / _NAME, UNFOLD / "static" / _NAME
# <span class="material-symbols-outlined" x-text="a ? 'visibility' : …">add</span>
_TAG = re.compile(r"<[^<>]*material-symbols[^>]*>[^<]*")
_WORD = re.compile(r"(?<=['\">])\s*([a-z][a-z0-9_]+)\s*(?=['\"<]|$)")
_NAMED = re.compile(r"""(?:\bicon|\bSITE_SYMBOL|_ICON)["']?\s*[=:]\s*["']([a-z][a-z0-9_]+)["']""")
# after:content-['check\_small'], the mark of a ticked box, is content:"check_small" in the sheet
_CONTENT = re.compile(r"""content:\s*["']([a-z][a-z0-9_]+)["']""")
_MENU = re.compile(r"""\b_item\(\s*"([a-z0-9_]+)\"""")


def named_icons() -> set[str]:
    """Return what templates, Python and sheets name as icons, ours and unfold's; some is none."""
    ours = ("templates", "pools", "claims", "ipam_site", "static")
    folders = (*(ROOT / name for name in ours), UNFOLD)
    names: set[str] = set()
    for path in (path for folder in folders for path in folder.rglob("*.*")):
        if path.suffix in {".html", ".py", ".js"}:
            text = path.read_text()
            names |= {*_NAMED.findall(text), *_MENU.findall(text)}
            names |= {word for tag in _TAG.findall(text) for word in _WORD.findall(tag)}
        elif path.suffix == ".css":
            names |= {*_CONTENT.findall(path.read_text())}
    return names


def icons(path: pathlib.Path) -> dict[str, str]:
    """Return the glyph of each icon of a font, by the name that is its ligature."""
    font = TTFont(path)
    letters = {glyph: chr(code) for code, glyph in font.getBestCmap().items()}
    return {
        "".join(letters[glyph] for glyph in (first, *ligature.Component)): ligature.LigGlyph
        for first, ligature in _ligatures(font)
    }


def _ligatures(font: TTFont) -> Iterator[tuple[str, Any]]:
    for lookup in font["GSUB"].table.LookupList.Lookup:
        for table in lookup.SubTable:
            for first, ligatures in table.ligatures.items():
                yield from ((first, ligature) for ligature in ligatures)


def write() -> None:
    """Write the font of the icons that are named."""
    glyphs = icons(UNFOLDS)
    names = named_icons() & glyphs.keys()
    options = subset.Options(flavor="woff2", layout_closure=False, layout_features=["*"])
    subsetter = subset.Subsetter(options)
    subsetter.populate(text="".join(names), glyphs=[glyphs[name] for name in names])
    font = TTFont(UNFOLDS)
    subsetter.subset(font)
    font.flavor = "woff2"
    OURS.parent.mkdir(parents=True, exist_ok=True)
    font.save(OURS)


if __name__ == "__main__":
    write()
