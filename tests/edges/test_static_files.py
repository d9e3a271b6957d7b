"""Files of pages have a hash in their names and are kept for a year; pages are compressed, REST answers are not."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tests.edges import icon_font

PROJECT = Path(__file__).parents[2]
_REQUEST = """
import json
from django.templatetags.static import static
from django.test import Client, override_settings
from ipam_site.wsgi import application
url = static("cadastre/cadastre.css")
with override_settings(ALLOWED_HOSTS=["testserver"]):
    answer = Client().get(url, headers={"accept-encoding": "gzip"}, secure=True)
print(json.dumps({"url": url, "status": answer.status_code, **answer.headers}))
"""


@pytest.mark.exhaustive
def test_collected_files_are_kept_for_a_year(tmp_path: Path) -> None:
    environment = {
        name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "DEBUG"}
    } | {"STATIC_ROOT": str(tmp_path / "static"), "IPAM_DATA": str(tmp_path / "none")}
    _python(environment, "manage.py", "collectstatic", "--no-input", "--verbosity", "0")
    answer: dict[str, Any] = json.loads(_python(environment, "-c", _REQUEST))
    assert answer["url"].startswith("/static/cadastre/cadastre.")
    assert len(answer["url"]) > len("/static/cadastre/cadastre.css")
    assert answer["status"] == 200
    assert answer["Cache-Control"] == "max-age=315360000, public, immutable"
    assert answer["Content-Encoding"] == "gzip"


def _python(environment: dict[str, str], *arguments: str) -> str:
    process = subprocess.run(
        [sys.executable, *arguments],
        cwd=PROJECT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.mark.django_db
def test_pages_are_compressed_and_answers_of_rest_are_not(admin_client: Client) -> None:
    page = admin_client.get("/admin/", headers={"accept-encoding": "gzip"})
    assert page.headers["Content-Encoding"] == "gzip"
    answer = admin_client.get("/api/v1/pools/", headers={"accept-encoding": "gzip"})
    assert answer.status_code == 200
    assert "Content-Encoding" not in answer.headers


MOST_BYTES = 60_000


def test_the_font_has_the_icons_that_are_named() -> None:
    named = icon_font.named_icons() & icon_font.icons(icon_font.UNFOLDS).keys()
    assert {
        "grid_on",
        "monitoring",
        "hub",
        "data_object",
        "visibility_off",
        "dock_to_right",
        "download",
        "check_small",
    } <= named
    ours = icon_font.icons(icon_font.OURS).keys()
    # After a new icon: python -m tests.edges.icon_font
    assert named <= ours
    assert len(ours) < 2 * len(named)  # an icon may have several names


def test_the_font_is_small() -> None:
    assert icon_font.OURS.stat().st_size < MOST_BYTES
