"""`manage.py webhook`: a key that is shown once, and the object that makes a cluster use it."""

import base64
import json
import pathlib
from io import StringIO
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command
from django.test import Client

from pools.models import Cluster
from pools.webhooks import views
from tests import factories
from tests.edges import webhooks
from tests.kube.certificates import Authority

URL = "--url=https://cadastre.example.org:8443"


def _said(*arguments: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("webhook", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def _manifest(*arguments: str) -> dict[str, Any]:
    only = "--only=validate-ciliumpodippools"
    (hook,) = yaml.safe_load(_said(*arguments, "--print-manifest", only)[0])["webhooks"]
    return dict(hook)


def _status(path: str) -> int:
    body = json.dumps(webhooks.review(webhooks.manifest("green")))
    return Client().post(path, body, content_type="application/json").status_code


def test_a_key_is_shown_once() -> None:
    name = factories.cluster().name
    key = _said(name, "--new-key")[0].strip()
    assert key.startswith(views.PREFIX)
    assert _status(webhooks.path(name, key)) == 200
    shown = _said(name)[0]
    assert f"/webhooks/v1/{name}/validate-ciliumpodippools" in shown
    assert "has a key, created at" in shown
    assert key not in shown
    assert "has no key" in _said(factories.cluster().name)[0]


def test_the_manifest_leads_to_the_webhook() -> None:
    name = factories.cluster().name
    hook = _manifest(name, "--new-key", URL)
    url = hook["clientConfig"]["url"]
    assert _status(url.removeprefix("https://cadastre.example.org:8443")) == 200
    assert "caBundle" not in hook["clientConfig"]
    assert hook["failurePolicy"] == "Fail"
    assert hook["sideEffects"] == "None"
    (rule,) = hook["rules"]
    assert rule["resources"] == ["ciliumpodippools"]
    assert rule["apiVersions"] == ["v2", "v2alpha1"]


def test_for_client_certificates_the_path_has_no_key() -> None:
    name = factories.cluster().name
    hook = _manifest(name, URL, "--failure-policy=Ignore")
    assert hook["clientConfig"]["url"].endswith(webhooks.path(name))
    assert hook["failurePolicy"] == "Ignore"
    assert "they require a client certificate" in _said(name, "--print-manifest", URL)[1]


def test_a_service_of_the_cluster() -> None:
    name = factories.cluster().name
    client = _manifest(name, "--service=ipam/cadastre:8443")["clientConfig"]
    assert client["service"] == {
        "namespace": "ipam",
        "name": "cadastre",
        "port": 8443,
        "path": webhooks.path(name),
    }


def test_of_a_pem_file_only_the_certificates_are_shown(tmp_path: pathlib.Path) -> None:
    authority, name = Authority(), factories.cluster().name
    pem = tmp_path / "ca.pem"
    pem.write_text(authority.server().key + authority.pem + authority.pem)
    bundle = _manifest(name, URL, f"--ca={pem}")["clientConfig"]["caBundle"]
    assert base64.b64decode(bundle).decode() == authority.pem * 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--print-manifest"], "needs --url or --service"),
        (["--print-manifest", "--url=http://h"], "must be https"),
        (["--print-manifest", "--url=https://u:p@h"], "must be https"),
        (["--print-manifest", "--url=https://h/path"], "must be https"),
        (["--print-manifest", "--url=https://h:x"], "must be https"),
        (["--print-manifest", "--service=cadastre"], "namespace/name"),
        (["--print-manifest", URL, "--ca=/nowhere"], "/nowhere: No such file"),
        (["--print-manifest", URL, f"--ca={__file__}"], "must be PEM certificates"),
    ],
)
def test_what_is_refused_leaves_the_key_alone(arguments: list[str], told: str) -> None:
    cluster = factories.cluster()
    key = views.make(cluster, author=factories.BY)
    with pytest.raises(CommandError, match=told):
        _said(cluster.name, "--new-key", *arguments)
    assert views.matches(key, Cluster.objects.get(pk=cluster.pk))


def test_no_such_cluster() -> None:
    with pytest.raises(CommandError, match="not_found"):
        _said("nowhere", "--new-key")
