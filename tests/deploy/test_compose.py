"""compose.yaml: the same processes as the supervisor's, confined, with secrets in files."""

import os
import pathlib
import re
import shutil
import stat
import subprocess

import pytest

import ipam_site
from ipam_site import database_url
from tests.deploy import shipped

FILE = shipped.compose()
SERVICES = FILE["services"]
OURS = {name: service for name, service in SERVICES.items() if name not in {"postgres", "redis"}}


def test_each_process_is_started_as_the_supervisor_starts_it() -> None:
    for name, (arguments, role) in shipped.supervised().items():
        assert OURS[name]["command"] == arguments, name
        assert OURS[name]["environment"]["IPAM_ROLE"] == role, name
    assert set(OURS) - set(shipped.supervised()) == {"migrate"}


def test_all_run_one_image_of_this_version() -> None:
    (image,) = {item["image"] for item in OURS.values()}
    assert image == f"${{CADASTRE_IMAGE:-cadastre:{ipam_site.__version__}}}"
    for name in ("postgres", "redis"):
        assert re.fullmatch(r"docker\.io/library/\w+:\d+\.\d+(\.\d+)?-\w+", SERVICES[name]["image"])


def test_nobody_listens_outside_but_the_site() -> None:
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["web"]
    assert FILE["networks"]["inside"] == {"internal": True}
    for name in ("postgres", "redis", "migrate"):
        assert SERVICES[name]["networks"] == ["inside"]


@pytest.mark.parametrize("name", OURS)
def test_a_process_is_confined(name: str) -> None:
    service = OURS[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert {tmpf.partition(":")[0] for tmpf in service["tmpfs"]} == {"/tmp", "/run/cadastre"}


def test_secrets_are_files() -> None:
    mounted = {name for service in SERVICES.values() for name in service.get("secrets", [])}
    assert mounted == set(FILE["secrets"])
    for item in OURS.values():
        for key, value in item["environment"].items():
            if key.endswith("_FILE"):
                assert value.removeprefix("/run/secrets/") in item["secrets"]
            assert not re.search("URL$|KEY$|RING$|PASSWORD", key), "a secret in the environment"


def test_a_stop_has_the_time_it_needs() -> None:
    for name in ("worker", "reconciler"):
        assert OURS[name]["environment"]["REMAP_SIGTERM"] == "SIGQUIT"
        assert int(OURS[name]["stop_grace_period"].rstrip("s")) > 20 + 10
    assert int(OURS["web"]["stop_grace_period"].rstrip("s")) > 25


def test_the_script_makes_every_secret_once(tmp_path: pathlib.Path) -> None:
    script = shutil.copy(shipped.DEPLOY / "compose" / "secrets.sh", tmp_path)
    created = []
    for _ in range(2):
        subprocess.run([script], check=True, capture_output=True)
        created.append({item.name: item.read_text() for item in (tmp_path / "secrets").iterdir()})
    assert created[0] == created[1]
    names = {pathlib.Path(item["file"]).name for item in FILE["secrets"].values()}
    assert names <= set(created[0])
    assert stat.S_IMODE(os.stat(tmp_path / "secrets").st_mode) == 0o700
    assert all(content.count("\n") <= 1 and content.strip() for content in created[0].values())
    entry = database_url.parse_url(created[0]["database_url"].strip())
    assert entry["PASSWORD"] == created[0]["postgres_password"].strip()
    assert created[0]["redis.conf"].split()[1] in created[0]["redis_url"]


def test_processes_wait_for_the_schema() -> None:
    for name, service in OURS.items():
        for item in service["depends_on"]:
            assert item in SERVICES, name
    assert OURS["web"]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
