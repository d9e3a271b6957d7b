"""How the steps of a tutorial are read: what the browser test does not do, a page cannot say."""

import pathlib

import pytest

from tests.e2e import tutorial

PAGE = """\
Please save it as `vms.csv`:

```csv
1. VM
```

1. Open **Pools** in the menu.
2. Enter `web` in
   **Name**. You see **Saved.**
"""


@pytest.fixture
def reader(tmp_path: pathlib.Path) -> tutorial.Reader:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    return tutorial.Reader(None, page)


@pytest.fixture
def actions(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What a browser would do, noted instead of done."""
    noted: list[tuple[str, ...]] = []
    sentences = [sentence for sentence, _action in tutorial.ACTIONS]
    note = [(sentence, lambda _reader, *words: noted.append(words)) for sentence in sentences]
    monkeypatch.setattr(tutorial, "ACTIONS", tuple(note))
    return noted


def test_each_sentence_is_an_action(
    reader: tutorial.Reader, actions: list[tuple[str, ...]]
) -> None:
    for step in reader.steps:
        reader.follow(step)
    assert actions == [("Pools",), ("web", "Name"), ("Saved.",)]
    assert tutorial.read_files(PAGE) == {"vms.csv": "1. VM\n"}


@pytest.mark.parametrize(
    "text", ["Press **Save**.", "Click **Save** and **Close**.", "Type `web`."]
)
def test_a_word_that_no_action_explains_fails(
    reader: tutorial.Reader, actions: list[tuple[str, ...]], text: str
) -> None:
    with pytest.raises(AssertionError, match="Step 3: no action for"):
        reader.follow(tutorial.Step(3, text))
