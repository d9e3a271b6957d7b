"""docs/reference/settings.md has every environment variable that the product reads."""

import re

from tests.docs import pages

_READ = re.compile(r"\benv\.\w+\(\s*\"([A-Z_]+)\"")
_ALIAS = {"DATA"}  # `make run DATA=…`, which IPAM_DATA overrides


def settings_read() -> set[str]:
    """The names that the typed readers of ipam_site/env.py are called with."""
    modules = [
        module
        for folder in ("ipam_site", "pools", "claims")
        for module in (pages.ROOT / folder).rglob("*.py")
    ]
    return {name for module in modules for name in _READ.findall(module.read_text())}


def test_every_setting_has_its_line() -> None:
    page = (pages.ROOT / "docs" / "reference" / "settings.md").read_text()
    assert len(settings_read()) > 30
    assert settings_read() - _ALIAS - set(re.findall(r"`([A-Z_]+)`", page)) == set()
