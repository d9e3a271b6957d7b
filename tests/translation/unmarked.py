"""Texts of pages that are not marked for translation: `python -m tests.translation.unmarked [FOLDER …]`.

A text is what a reader sees (text nodes; the attributes below) or what a tag or filter prints
(`|default:"none"`, `with title="…"`), if it has letters. Marked are `{% translate %}`,
`{% blocktranslate %}` and `_("…")`.

In Python, a text is a string with two words, and any word where a page shows it (the arguments below).
Marked are the arguments of gettext; an f-string never is, because its parts cannot be translated. A
docstring is no text, and neither is a line that ends with `# no text: …`.
"""

from __future__ import annotations

import ast
import dataclasses
import html.parser
import pathlib
import re
import sys

from django.template.base import Lexer, Token, TokenType

PROJECT = pathlib.Path(__file__).parents[2]
# Folders whose Python modules are checked too.
PYTHON = ("claims/admin", "pools/admin", "pools/platform/admin", "pools/register/conditions")
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

MARKED = {
    "_",
    "gettext",
    "gettext_lazy",
    "ngettext",
    "ngettext_lazy",
    "pgettext",
    "pgettext_lazy",
}
# Keyword arguments and assigned names that a page shows.
KEYWORDS = {
    "label",
    "help_text",
    "search_help_text",
    "description",
    "title",
    "button",
    "empty_label",
    "over",
}
# Positional arguments that a page shows, by the last name of what is called.
ARGUMENTS = {
    "Http404": {0},
    "BadRequest": {0},
    "ValidationError": {0},
    "add_error": {1},
    "ActiveCondition": {3, 4},
    "Chart": {1},
    "Series": {0},
    "StepLine": {1, 2, 4},
    "success": {1},
    "warning": {1},
    "error": {1},
    "info": {1},
    "state": {1},
    "link": {1},
}

_TWO_WORDS = re.compile(r"[A-Za-z]\S*\s+\S*[A-Za-z]")
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


def find_unmarked_strings(source: str) -> list[Text]:
    """Return the texts of a Python module that makemessages would not find."""
    strings = _Strings(source.splitlines())
    strings.visit(ast.parse(source))
    return sorted(strings.texts, key=lambda text: (text.line, text.text))


class _Strings(ast.NodeVisitor):
    """Collects the strings that are texts; `_shown`: a page shows the value of the node."""

    def __init__(self, lines: list[str]) -> None:
        self.texts: set[Text] = set()
        self._lines = lines
        self._shown = False

    def visit(self, node: ast.AST, *, shown: bool = False) -> None:
        before, self._shown = self._shown, shown
        super().visit(node)
        self._shown = before

    def visit_Expr(self, node: ast.Expr) -> None:  # ast names it
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self._add(node, node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        parts = [part.value if isinstance(part, ast.Constant) else " … " for part in node.values]
        self._add(node, "".join(map(str, parts)))
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.visit(part.value)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        shown = self._shown
        self.visit(node.test)
        self.visit(node.body, shown=shown)
        self.visit(node.orelse, shown=shown)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        shown = self._shown
        for value in node.values:
            self.visit(value, shown=shown)

    def visit_Assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        self.visit(node.value, shown=isinstance(target, ast.Name) and target.id in KEYWORDS)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name == "options":  # of a filter: (value, label)
            for child in ast.walk(node):
                if isinstance(child, ast.Tuple) and len(child.elts) == 2:
                    self.visit(child.elts[1], shown=True)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in MARKED:
            return
        self.visit(node.func)
        for number, argument in enumerate(node.args):
            self.visit(argument, shown=number in ARGUMENTS.get(name, ()))
        for keyword in node.keywords:
            self.visit(keyword.value, shown=keyword.arg in KEYWORDS)

    def _add(self, node: ast.expr, value: str) -> None:
        if all(word.startswith("cad-") for word in value.split()):  # classes of styles
            return
        if "# no text:" in self._lines[(node.end_lineno or node.lineno) - 1]:
            return
        page = _Page()
        page.feed(value)
        page.close()
        text = " ".join(part.text for part in page.texts)
        if _TWO_WORDS.search(text) or (self._shown and _has_words(text)):
            self.texts.add(Text(node.lineno, text))


def main(folders: list[str]) -> int:
    errors = [
        f"{path.relative_to(PROJECT)}:{text.line}: not marked for translation: {text.text}"
        for folder in folders or ["templates", *PYTHON]
        for pattern, find in (("*.html", find_unmarked), ("*.py", find_unmarked_strings))
        for path in sorted((PROJECT / folder).rglob(pattern))
        for text in find(path.read_text())
    ]
    for error in errors:
        sys.stdout.write(error + "\n")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
