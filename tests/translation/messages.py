"""`make messages`: Django's makemessages over the project, every warning an error.

Without a language the catalogues are written to a temporary folder and only checked; the register has no
catalogue for English, the language of the code. `make messages LOCALE=de` updates locale/de.
"""

from __future__ import annotations

import argparse
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import warnings

import django
from django.core.management import CommandError, call_command
from django.test.utils import override_settings

PROJECT = pathlib.Path(__file__).parents[2]
DOMAINS = ("django", "djangojs")
IGNORED = ("tests/*", "benchmarks/*", "deploy/*", "docs/*", "var/*", ".*")
# What makemessages prints of itself.
_PROGRESS = re.compile(r"processing (locale|file) |copying plural forms: ")
# Translators need to know what a placeholder stands for.
_UNNAMED = re.compile(
    r'^(?:msgid|msgid_plural|)\s*"[^"]*(?:(?<!\{)\{\d*\}|(?<!%)%[sdr])', re.MULTILINE
)


def extract(folder: pathlib.Path, language: str) -> list[str]:
    """Write the catalogues of the project for `language` to `folder`. Return what is wrong with its texts."""
    output = io.StringIO()
    with (
        override_settings(LOCALE_PATHS=[str(folder)]),
        warnings.catch_warnings(record=True, action="always") as raised,
    ):
        for domain in DOMAINS:
            call_command(
                "makemessages",
                locale=[language],
                domain=domain,
                ignore_patterns=list(IGNORED),
                no_obsolete=True,
                stdout=output,
            )
    errors = [line for line in output.getvalue().splitlines() if line and not _PROGRESS.match(line)]
    errors += [str(warning.message) for warning in raised]
    for catalogue in catalogues(folder, language):
        errors += [
            f"placeholder without a name: {match[0].strip()}"
            for match in _UNNAMED.finditer(catalogue.read_text())
        ]
    return errors


def catalogues(folder: pathlib.Path, language: str) -> list[pathlib.Path]:
    return sorted((folder / language / "LC_MESSAGES").glob("*.po"))


def compile_with_english(catalogue: pathlib.Path) -> list[str]:
    """Compile `catalogue` with each text as its own translation. Return what msgfmt finds wrong.

    It compares the placeholders of singular and plural forms.
    """
    filled = catalogue.with_suffix(".filled.po")
    subprocess.run(["msgen", "--output-file", filled, catalogue], check=True)
    result = subprocess.run(
        ["msgfmt", "--check-format", "--output-file", catalogue.with_suffix(".mo"), filled],
        capture_output=True,
        text=True,
        check=False,
    )
    return result.stderr.splitlines()


def check() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        errors = extract(pathlib.Path(folder), "en")
        for catalogue in catalogues(pathlib.Path(folder), "en"):
            errors += compile_with_english(catalogue)
    return errors


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make messages", description=__doc__)
    parser.add_argument("--locale", help="update the catalogues of this language, such as de")
    language = parser.parse_args(argv).locale
    if not shutil.which("xgettext"):
        sys.stdout.write("SKIPPED: the texts for translation (no xgettext: install GNU gettext)\n")
        return 1 if language else 0
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ipam_site.settings")
    django.setup()
    os.chdir(PROJECT)
    try:
        errors = extract(PROJECT / "locale", language) if language else check()
    except CommandError as error:
        errors = [str(error)]
    for message in errors:
        sys.stdout.write(message + "\n")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
