"""The REST tutorial: the commands of its page on a running site, each answer beside the one of the page."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import Any

import pytest

from tests import running_site
from tests.docs import pages
from tests.docs.examples import differences, read_json_values

PAGE = pages.ROOT / "docs" / "tutorials" / "rest-api.md"
_BLOCK = re.compile(r"^```sh\n(.*?)^```$(?:\s*^```json\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
_MARK = "---- block ----"


@dataclass(frozen=True)
class Step:
    """The commands of one code block, and the answers that the page shows below it."""

    commands: str
    answers: list[Any]


def read_steps(page: str) -> list[Step]:
    return [Step(commands, read_json_values(shown)) for commands, shown in _BLOCK.findall(page)]


def run_commands(steps: list[Step], site: running_site.Site) -> list[str]:
    """Run all blocks in one shell, as a reader does; return what each printed."""
    script = "".join(f"{step.commands}\necho '{_MARK}'\n" for step in steps)
    environment = running_site.environment()
    environment |= {"IPAM_DATA": str(site.data), "CADASTRE": site.url}
    environment |= {"no_proxy": "*", "PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=pages.ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split(f"{_MARK}\n")[:-1]


@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
def test_the_commands_answer_as_the_page_shows() -> None:
    steps = read_steps(PAGE.read_text())
    with running_site.used() as data:
        site = running_site.Site(data, "--no-demo").wait_until_ready()
        try:
            printed = run_commands(steps, site)
        finally:
            site.end()
    assert len(printed) == len(steps)
    for step, text in zip(steps, printed, strict=True):
        if step.answers:
            answers = read_json_values(text)
            assert list(differences(step.answers, answers)) == [], step.commands
