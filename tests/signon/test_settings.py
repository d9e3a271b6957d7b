"""What `manage.py check` says of settings that cannot work, and how they are read."""

import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest
from django.core import checks

from ipam_site import checks as site_checks, data_folder

RIGHT = {
    "IPAM_OIDC_ISSUER": "https://id.example.org/realms/staff",
    "IPAM_OIDC_CLIENT_ID": "cadastre",
}


def errors(settings: Any, values: dict[str, Any]) -> list[str]:
    for name, value in (RIGHT | values).items():
        setattr(settings, name, value)
    return [message.msg for message in site_checks.sign_on()]


def test_right_settings_have_no_error(settings: Any) -> None:
    assert errors(settings, {}) == []
    assert site_checks.sign_on in checks.registry.registry.get_checks()


@pytest.mark.parametrize(
    ("values", "beginning"),
    [
        ({"IPAM_SIGN_ON_ROLES": "{"}, "IPAM_SIGN_ON_ROLES: a JSON object"),
        ({"IPAM_SIGN_ON_ROLES": "[]"}, "IPAM_SIGN_ON_ROLES: a JSON object"),
        (
            {"IPAM_SIGN_ON_ROLES": '{"a": "root"}'},
            "IPAM_SIGN_ON_ROLES: group 'a': 'root' is none of",
        ),
        ({"IPAM_SIGN_ON_ROLES": '{"a": [["viewer"]]}'}, "IPAM_SIGN_ON_ROLES: group 'a'"),
        ({"IPAM_SIGN_ON_NAMESPACES": "("}, "IPAM_SIGN_ON_NAMESPACES: not a regular expression"),
        ({"IPAM_SIGN_ON_NAMESPACES": "ns-(.*)"}, "IPAM_SIGN_ON_NAMESPACES: the named groups"),
        (
            {"IPAM_SIGN_ON_NAMESPACES": "(?P<namespace>a)(?P<x>b)"},
            "IPAM_SIGN_ON_NAMESPACES: the named groups",
        ),
        (
            {"IPAM_SIGN_ON_ROLES": "", "IPAM_SIGN_ON_NAMESPACES": ""},
            "IPAM_SIGN_ON_ROLES: no group of the directory grants anything",
        ),
        ({"IPAM_OIDC_ISSUER": "http://id.example.org"}, "IPAM_OIDC_ISSUER: must be an https URL"),
        ({"IPAM_OIDC_ISSUER": "https://"}, "IPAM_OIDC_ISSUER: must be an https URL"),
        ({"IPAM_OIDC_ISSUER": ""}, "IPAM_OIDC_ISSUER: must be set"),
        ({"IPAM_OIDC_CLIENT_ID": ""}, "IPAM_OIDC_CLIENT_ID: must be set"),
        ({"IPAM_OIDC_SCOPES": ["profile"]}, "IPAM_OIDC_SCOPES: must contain openid"),
        ({"IPAM_OIDC_CA_FILE": "/nowhere"}, "IPAM_OIDC_CA_FILE: /nowhere cannot be read"),
    ],
)
def test_wrong_settings(settings: Any, values: dict[str, Any], beginning: str) -> None:
    (message,) = errors(settings, values)
    assert message.startswith(beginning)


@pytest.mark.exhaustive
def test_the_command_fails(tmp_path: pathlib.Path) -> None:
    secret, roles = tmp_path / "secret", tmp_path / "roles.json"
    secret.write_text("s3cret\n")
    roles.write_text('{\n  "net-admins": ["administrator"]\n}\n')
    values = RIGHT | {
        "IPAM_OIDC_CLIENT_SECRET_FILE": str(secret),
        "IPAM_SIGN_ON_ROLES_FILE": str(roles),
        "IPAM_SIGN_ON_NAMESPACES": "(?P<namespace>.+",
    }
    command = [sys.executable, "manage.py", "check"]
    options: dict[str, Any] = {"cwd": data_folder.PROJECT, "capture_output": True, "text": True}
    answer = subprocess.run(command, env=os.environ | values, check=False, **options)
    assert answer.returncode == 1
    assert "(ipam.E002) IPAM_SIGN_ON_NAMESPACES: not a regular expression" in answer.stderr
    assert "s3cret" not in answer.stderr
    values["IPAM_SIGN_ON_NAMESPACES"] += ")"
    assert subprocess.run(command, env=os.environ | values, check=False, **options).returncode == 0
