"""What `make check` says of texts that cannot be translated."""

from __future__ import annotations

import os
import pathlib
import shutil

import pytest

from tests.translation import messages, unmarked

needs_gettext = pytest.mark.skipif(not shutil.which("xgettext"), reason="no GNU gettext")


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("<p>Some text</p>", ["Some text"]),
        ('<p>{% translate "Some text" %}</p>', []),
        ("{% blocktranslate trimmed %}One <b>text</b>{% endblocktranslate %}<i>and</i>", ["and"]),
        ('<a title="Open" aria-label="{% if x %}Close{% endif %}">x</a>', ["Open", "Close", "x"]),
        ('{{ value|default:"none" }} {{ value|default:_("none") }}', ["none"]),
        ('{% include "part.html" with title="Blocks" %}', ["Blocks"]),
        ("<code>manage.py up</code> <pre>text</pre><script>let x</script>", []),
        ("CSV, 12 · &nbsp; {{ name }} {# a remark #}{% comment %}no{% endcomment %}", []),
    ],
)
def test_unmarked_texts_of_a_template_are_found(source: str, texts: list[str]) -> None:
    assert [text.text for text in unmarked.find_unmarked(source)] == texts


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ('text = "one text"', ["one text"]),
        ('text = _("one text") + gettext("two words")', []),
        ('"""A docstring of a module."""', []),
        ('messages.success(request, "Saved")', ["Saved"]),
        ('Form(label="Name", name="name")', ["Name"]),
        ('messages.success(request, f"{name} saved")', ["… saved"]),
        ('forms.ValidationError("Wrong" if x == "no" else gettext("right"))', ["Wrong"]),
        ('format_html("<b>{} more blocks</b>", more)', ["{} more blocks"]),
        ('style = "cad-forecast cad-dim"', []),
        ('word = "held"', []),
        ('def options(self): return [("held", "held")]', ["held"]),
        ('head = "curl -H"  # no text: a command', []),
        ('gettext("and %(number)s more") % {"number": 1}', []),
        ('counts = ngettext("%(number)s block", "%(number)s blocks", 2)', []),
    ],
)
def test_unmarked_texts_of_a_module_are_found(source: str, texts: list[str]) -> None:
    assert [text.text for text in unmarked.find_unmarked_strings(source)] == texts


def test_the_modules_that_are_checked_exist() -> None:
    for folder in unmarked.PYTHON:
        assert list((unmarked.PROJECT / folder).rglob("*.py"))


@needs_gettext
@pytest.mark.parametrize(
    ("code", "error"),
    [
        ('_("%s of %s") % (1, 2)', "placeholder without a name"),
        ('_("{} blocks")', "placeholder without a name"),
        ('ngettext("%(n)d block", "%(m)d blocks", 2)', "argument 'n'"),
    ],
)
@pytest.mark.filterwarnings("default")
def test_a_text_that_cannot_be_translated_is_an_error(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, code: str, error: str
) -> None:
    (tmp_path / "module.py").write_text(
        f"from django.utils.translation import gettext as _, ngettext\n{code}\n"
    )
    monkeypatch.chdir(tmp_path)
    errors = messages.extract(tmp_path / "locale", "en")
    for catalogue in messages.catalogues(tmp_path / "locale", "en"):
        errors += messages.compile_with_english(catalogue)
    assert error in "\n".join(errors)
    assert os.listdir(tmp_path / "locale") == ["en"]
