"""The certified provider `oidc-provider` (npm) as a process of the tests, and a browser that signs in at it."""

import contextlib
import fcntl
import json
import pathlib
import re
import shutil
import signal
import subprocess
import urllib.parse
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from ipam_site import data_folder
from ipam_site.supervisor import processes
from tests import eventually
from tests.kube.certificates import Authority

FILES = pathlib.Path(__file__).parent / "provider"
# Not in the folder of the tests, whose files other tests read.
FOLDER = data_folder.PROJECT / ".provider_cache"
SECRET = "a secret of at least thirty-two characters"
SITE = "https://testserver/"


def _install() -> None:
    """Install the packages of package-lock.json once, for all processes of the tests."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("sign-on with a real provider needs node and npm (Debian: apt-get install npm)")
    FOLDER.mkdir(exist_ok=True)
    done = FOLDER / "node_modules" / ".installed"
    lock = FILES / "package-lock.json"
    with (FOLDER / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for path in FILES.iterdir():
            shutil.copy(path, FOLDER)
        if done.exists() and done.read_text() == lock.read_text():
            return
        installed = subprocess.run(
            ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
            cwd=FOLDER,
            capture_output=True,
            text=True,
            check=False,
        )
        if installed.returncode:
            pytest.skip(f"npm cannot install oidc-provider: {installed.stderr[-500:]}")
        done.write_text(lock.read_text())


class Provider:
    def __init__(self, folder: pathlib.Path, port: int) -> None:
        self.issuer = f"https://localhost:{port}"
        self.ca_file = str(folder / "ca.pem")
        self._folder = folder

    def set_accounts(self, **accounts: dict[str, Any]) -> None:
        (self._folder / "accounts.json").write_text(json.dumps(accounts))

    def sign_in(self, url: str, login: str) -> str:
        """Follow the way of a browser from our redirect; return the URL of the way back."""
        browser = requests.Session()
        browser.verify, browser.trust_env = self.ca_file, False
        answer = browser.get(url, allow_redirects=False)
        for _ in range(12):
            location = answer.headers.get("Location")
            if location is None:
                answer = browser.post(
                    urllib.parse.urljoin(self.issuer, self._form(answer.text)),
                    data=self._fields(answer.text) | {"login": login, "password": "any"},
                    allow_redirects=False,
                )
                continue
            location = urllib.parse.urljoin(self.issuer, location)
            if location.startswith(SITE):
                return location
            answer = browser.get(location, allow_redirects=False)
        raise AssertionError("the provider leads nowhere")

    @staticmethod
    def _form(page: str) -> str:
        match = re.search(r'<form[^>]*action="([^"]+)"', page)
        assert match, page
        return match[1]

    @staticmethod
    def _fields(page: str) -> dict[str, str]:
        return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))


@contextlib.contextmanager
def running(folder: pathlib.Path) -> Iterator[Provider]:
    _install()
    authority = Authority()
    (folder / "ca.pem").write_text(authority.pem)
    authority.server().files(folder, "server")
    port = processes.free_port()
    provider = Provider(folder, port)
    provider.set_accounts()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["node", "server.mjs", str(folder), str(port)],
            cwd=FOLDER,
            stdout=log,
            stderr=log,
            preexec_fn=processes.die_with_parent(signal.SIGKILL),
        )
    try:
        eventually.until(lambda: _answers(provider, process, folder))
        yield provider
    finally:
        process.kill()
        process.wait(60)


def _answers(provider: Provider, process: subprocess.Popen[bytes], folder: pathlib.Path) -> bool:
    assert process.poll() is None, (folder / "log").read_text()
    with contextlib.suppress(requests.ConnectionError):
        url = f"{provider.issuer}/.well-known/openid-configuration"
        return requests.get(url, verify=provider.ca_file, timeout=5).ok
    return False
