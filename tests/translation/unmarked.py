"""Texts of templates that are not marked for translation: `python -m tests.translation.unmarked [FOLDER …]`.

A text is what a reader sees (text nodes; the attributes below) or what a tag or filter prints
(`|default:"none"`, `with title="…"`), if it has letters. Marked are `{% translate %}`,
`{% blocktranslate %}` and `_("…")`.
"""

from __future__ import annotations

import dataclasses
import html.parser
import pathlib
import re
import sys

from django.template.base import Lexer, Token, TokenType

PROJECT = pathlib.Path(__file__).parents[2]
ATTRIBUTES = {"title", "aria-label", "placeholder", "alt", "data-too-large"}
# What stands in them is code, or no text for readers.
CODE = {"code", "pre", "kbd", "samp", "script", "style", "svg"}
# The same in every language.
NAMES = {
    "Cadastre",
    "CSV",
    "XLSX",
    "JSON",
    "YAML",
    "curl",
    "CIDR",
    "MAC",
    "VM",
    "MTU",
    "IPPool",
    "IPv",
    "UTC",
    "v4",
    "v6",
}

_WORD = re.compile(r"[A-Za-z][\w.-]*")
_ENTITY = re.compile(r"&#?\w+;")
_PRINTED = re.compile(
    r'(?:\|(?:default|default_if_none|yesno|pluralize|count|add):|\b(?:title|label|text|words|empty)=)"([^"]*)"'
)
_BLOCKTRANSLATE = re.compile(r"(end)?blocktrans(?:late)?\b")


@dataclasses.dataclass(frozen=True)
class Text:
    line: int
    text: str


def find_unmarked(source: str) -> list[Text]:
    """Return the texts of a template that makemessages would not find."""
    page = _Page()
    is_marked = is_comment = False
    printed: list[Text] = []
    for token in Lexer(source).tokenize():
        blank = "\n" * token.contents.count("\n")
        if token.token_type is TokenType.BLOCK:
            word = token.contents.split()[0]
            if match := _BLOCKTRANSLATE.match(word):
                is_marked = not match[1]
            if token.contents == "block bodyclass":  # names of styles
                is_comment = True
            elif word in {"comment", "endcomment", "endblock"}:
                is_comment = word == "comment"
        if token.token_type is TokenType.TEXT:
            page.feed(blank if is_marked or is_comment else token.contents)
            continue
        printed += _printed_by(token)
        page.feed(blank)
    page.close()
    return sorted(page.texts + printed, key=lambda text: text.line)


def _printed_by(token: Token) -> list[Text]:
    if token.token_type is TokenType.COMMENT:
        return []
    return [
        Text(token.lineno, match[1])
        for match in _PRINTED.finditer(token.contents)
        if _has_words(match[1])
    ]


def _has_words(text: str) -> bool:
    return any(word not in NAMES for word in _WORD.findall(_ENTITY.sub(" ", text)))


class _Page(html.parser.HTMLParser):
    """The HTML of a template without its tags and variables."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.texts: list[Text] = []
        self._code: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in CODE or "material-symbols-outlined" in (dict(attrs).get("class") or ""):
            self._code.append(tag)  # an icon's text is its name
        self._add(*(value or "" for name, value in attrs if name in ATTRIBUTES))

    def handle_endtag(self, tag: str) -> None:
        if self._code and self._code[-1] == tag:
            self._code.pop()

    def handle_data(self, data: str) -> None:
        if not self._code:
            self._add(data)

    def _add(self, *texts: str) -> None:
        line = self.getpos()[0]
        self.texts += [Text(line, " ".join(text.split())) for text in texts if _has_words(text)]


def main(folders: list[str]) -> int:
    errors = [
        f"{path.relative_to(PROJECT)}:{text.line}: not marked for translation: {text.text}"
        for folder in folders or ["templates"]
        for path in sorted((PROJECT / folder).rglob("*.html"))
        for text in find_unmarked(path.read_text())
    ]
    for error in errors:
        sys.stdout.write(error + "\n")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
