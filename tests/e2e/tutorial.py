"""Follows the numbered steps of a tutorial in docs/tutorials/ in a browser, as a reader does.

A step says what to do in one of the sentences of `ACTIONS`. Bold words are names on the page (a menu entry, a
button, a field, a text that appears), words in backticks are typed. A step with a bold or typed word that no
sentence explains fails: so the page cannot say what the test does not do.
"""

import pathlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import expect

_STEP = re.compile(r"^(\d+)\. (.+(?:\n {3,}.+)*)", re.MULTILINE)
_FILE = re.compile(r"save it as `([^`]+)`:\n\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_BOLD, _TYPED = r"\*\*([^*]+)\*\*", r"`([^`]+)`"


@dataclass(frozen=True)
class Step:
    """One numbered step: its number and its sentences in one line."""

    number: int
    text: str


def read_steps(page: str) -> list[Step]:
    result = _STEP.findall(_FENCE.sub("", page))
    return [Step(int(number), re.sub(r"\s+", " ", text)) for number, text in result]


def read_files(page: str) -> dict[str, str]:
    """Return the files that the page has its reader save, by name."""
    return dict(_FILE.findall(page))


class Reader:
    """Somebody who follows the steps of one page in a browser, signed in."""

    def __init__(self, browser_page: Any, path: pathlib.Path) -> None:
        text = path.read_text()
        self._page = browser_page
        self.steps = read_steps(text)
        self._files = read_files(text)

    def follow(self, step: Step) -> None:
        rest = step.text
        for sentence, action in ACTIONS:
            for match in re.finditer(sentence, step.text):
                action(self, *match.groups())
                rest = rest.replace(match.group(), "")
        unexplained = re.findall(f"{_BOLD}|{_TYPED}", rest)
        assert not unexplained, f"Step {step.number}: no action for {unexplained} in {step.text!r}"

    @property
    def _main(self) -> Any:
        return self._page.locator("main, #main, #content").first

    @property
    def _palette(self) -> Any:
        return self._page.get_by_role("dialog", name="Search and actions")

    def open_in_menu(self, name: str) -> None:
        link = self._page.locator(f'.cad-menu-item:has(span:text-is("{name}"))')
        link.first.click()
        self._settle()

    def click(self, name: str) -> None:
        by_role = [
            self._main.get_by_role(role, name=name, exact=True) for role in ("button", "link")
        ]
        summary = self._main.locator("summary").filter(has_text=re.compile(f"^{re.escape(name)}$"))
        target = by_role[0].or_(by_role[1]).or_(summary)
        expect(target.first, f"a button or link {name!r}").to_be_visible()
        target.first.click()
        self._settle()

    def enter(self, text: str, field: str) -> None:
        self._field(field).fill(text)

    def search(self, text: str) -> None:
        self._main.get_by_role("search").get_by_role("textbox").first.fill(text)

    def find(self, text: str, name: str) -> None:
        """Type into the palette, which a link at the top of each page opens."""
        self._page.get_by_role("link", name=re.compile(f"^{re.escape(name)} Ctrl")).click()
        self._palette.get_by_role("searchbox").fill(text)
        self._settle()

    def open_result(self, name: str) -> None:
        """Open a result of the palette, whose link also says what it leads to."""
        title = self._page.get_by_text(name, exact=True)
        self._palette.get_by_role("link").filter(has=title).click()
        self._page.wait_for_url("**/admin/find/**")
        self._settle()

    def choose(self, option: str, field: str) -> None:
        self._field(field).select_option(label=option)

    def choose_file(self, name: str, field: str) -> None:
        content = self._files[name].encode()
        file = {"name": name, "mimeType": "text/csv", "buffer": content}
        self._field(field).set_input_files(file)

    def see(self, text: str) -> None:
        expect(
            self._page.get_by_text(text).locator("visible=true").first, f"the text {text!r}"
        ).to_be_visible()

    def _field(self, name: str) -> Any:
        """The visible field with this label; a required one has a star behind its label."""
        label = re.compile(rf"^\s*{re.escape(name)}(\s*\*)?\s*$")
        field = self._main.get_by_label(label).locator("visible=true").first
        expect(field, f"a field {name!r}").to_be_visible()
        return field

    def _settle(self) -> None:
        self._page.wait_for_load_state("networkidle")


# In the order in which a step does them.
ACTIONS: tuple[tuple[str, Callable[..., None]], ...] = (
    (f"Open {_BOLD} in the menu", Reader.open_in_menu),
    (f"Enter {_TYPED} in {_BOLD}", Reader.enter),
    (f"Enter {_TYPED} in the search box", Reader.search),
    (f"Search for {_TYPED} with {_BOLD} at the top of the page", Reader.find),
    (f"Open the result {_BOLD}", Reader.open_result),
    (f"Choose {_BOLD} in {_BOLD}", Reader.choose),
    (f"Choose the file {_TYPED} in {_BOLD}", Reader.choose_file),
    (f"Click {_BOLD}", Reader.click),
    (f"You see {_BOLD}", Reader.see),
)
