"""The image: what is in it, and that its commands run as any user on a read-only root."""

import os
import pathlib
import re
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping

import pytest
from django.conf import settings

from ipam_site.supervisor import processes
from tests import eventually, servers
from tests.deploy import shipped
from tests.deploy.conftest import recreate, url_of
from tests.deploy.image import build
from tests.signon import slapd

# As OpenShift assigns them: a user that no file names, in the group 0.
ASSIGNED = "1000650000:0"
_SITE_TEST = shipped.DEPLOY / "helm" / "cadastre" / "files" / "site-test.py"
_WRITABLE = {"/tmp": "", "/run/cadastre": ""}  # as emptyDirs


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> build.Builder:
    if not build.can_build():
        pytest.skip("needs root and mount namespaces")
    folder = tmp_path_factory.mktemp("image")
    # Folders of pytest are private.
    for path in (folder, *folder.parents):
        if path.owner() == "root" and path != pathlib.Path("/tmp"):
            path.chmod(path.stat().st_mode | 0o055)
    return build.Builder(folder)


def _build(builder: build.Builder, stage: str) -> build.Image:
    try:
        return builder.build(stage)
    except build.OfflineError as error:
        pytest.skip(f"needs the package index: {error}")
    except build.PackageMissingError as error:
        pytest.skip(f"needs Debian's package {error}")


@pytest.fixture(scope="module")
def image(builder: build.Builder) -> build.Image:
    return _build(builder, "")


def _files(image: build.Image) -> set[str]:
    """What the image adds to its base."""
    paths = [
        path for name in ("app", "opt", "run", "tmp") for path in (image.root / name).rglob("*")
    ]
    return {f"/{path.relative_to(image.root)}" for path in paths}


def test_it_contains_what_it_needs_and_nothing_else(image: build.Image) -> None:
    files = _files(image)
    top = {name.split("/")[2] for name in files if name.startswith("/app/")}
    assert top == {
        *("manage.py", "healthcheck.py", "__pycache__", "collected"),
        *("ipam_site", "pools", "claims", "templates", "static", "docs", "deploy"),
    }
    # What the page of a new connection shows.
    assert {name.split("/")[3] for name in files if name.startswith("/app/deploy/")} == {
        "kubernetes"
    }
    assert not {
        name for name in files if re.search(r"^/app/(.*/)?(\.|tests?/|conftest|var/)", name)
    }
    assert not {name for name in files if re.search(r"^/app/docs/(screenshots|diagrams)", name)}
    assert not {name for name in files if name.startswith("/tmp/")}
    # Neither secrets, nor what would make some.
    assert not {name for name in files if re.search(r"^/app/.*\.(pem|key|crt|env|sqlite3)$", name)}
    assert not {name for name in files if name.endswith("/.git") or "/.git/" in name}
    assert {name for name in files if name.startswith("/run/")} == {"/run/cadastre"}


@pytest.mark.parametrize(
    ("stage", "locks"),
    [("", ["requirements"]), ("ldap", ["requirements", "requirements-ldap"])],
)
def test_its_packages_are_those_of_the_lock(
    builder: build.Builder, stage: str, locks: list[str]
) -> None:
    root = _build(builder, stage).root
    (library,) = (root / "opt/cadastre/lib").glob("python3*/site-packages")
    installed = {
        re.sub(r"[-_.]+", "-", path.name.removesuffix(".dist-info").rpartition("-")[0]).lower()
        for path in library.glob("*.dist-info")
    }
    texts = [(shipped.DEPLOY / "container" / f"{name}.lock").read_text() for name in locks]
    assert installed == {
        re.sub(r"[-_.]+", "-", name).lower()
        for name in re.findall(r"^([\w.-]+)==", "\n".join(texts), re.MULTILINE)
    }


@pytest.mark.parametrize("stage", ["", "ldap"])
def test_every_user_can_read_it_and_none_can_change_it(builder: build.Builder, stage: str) -> None:
    image = _build(builder, stage)
    for name in _files(image):
        path = image.root / name.lstrip("/")
        if path.is_symlink() or name == "/run/cadastre":
            continue  # see below
        mode = path.stat().st_mode
        assert mode & 0o004, f"{name} is not for all to read"
        assert not mode & 0o022, f"{name} is for others to write"
        assert path.owner() == "root"
    run = (image.root / "run/cadastre").stat()
    assert (run.st_uid, run.st_gid, run.st_mode & 0o777) == (10001, 0, 0o770)


# What debian:bookworm-slim has: libc6, and what apt and dpkg themselves need.
_BASE_LIBRARIES = {
    *("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1"),
    *("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libresolv.so.2"),
    *("libstdc++.so.6", "libgcc_s.so.1", "libz.so.1"),
}
_LDAP_LIBRARIES = {"libldap-2.5.so.0", "liblber-2.5.so.0"}  # of libldap-2.5-0


@pytest.mark.parametrize(("stage", "more"), [("", set()), ("ldap", _LDAP_LIBRARIES)])
def test_its_libraries_are_in_it_or_in_its_base(
    builder: build.Builder, stage: str, more: set[str]
) -> None:
    """This machine may have libraries that the base image does not have."""
    image = _build(builder, stage)
    readelf = shutil.which("readelf")
    if readelf is None:
        pytest.skip("needs binutils")
    files = (image.root / "opt/cadastre/lib").rglob("*.so*")
    modules = [path for path in files if re.fullmatch(r".*\.so[.0-9]*", path.name)]
    headers = subprocess.run(
        [readelf, "--dynamic", *modules], capture_output=True, text=True, check=True
    ).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", headers))
    assert needed >= {"libc.so.6"} | more
    assert needed - _BASE_LIBRARIES - more <= {module.name for module in modules}


def test_its_modules_are_compiled(image: build.Image) -> None:
    """A start compiles nothing, because nothing can be written."""
    for package in ("ipam_site", "pools", "claims"):
        for source in (image.root / "app" / package).rglob("*.py"):
            compiled = (
                source.parent / "__pycache__" / f"{source.stem}.{sys.implementation.cache_tag}.pyc"
            )
            assert compiled.exists(), source


@pytest.fixture(scope="module")
def environment(
    image: build.Image, worker_id: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """The variables of a pod, with its secrets as files."""
    server = settings.DATABASES["default"]
    name = f"image_{worker_id}"
    template = servers.migrated(url_of("postgres")) if server else ""
    with servers.redis() as redis:
        content = {
            "DATABASE_URL": recreate(name, template),
            "REDIS_URL": redis,
            "SECRET_KEY": secrets.token_urlsafe(64),
            "IPAM_KEY_RING": secrets.token_urlsafe(32),
        }
        folder = image.root / "etc/cadastre/secrets"
        folder.mkdir(parents=True, exist_ok=True)
        for key, value in content.items():
            path = folder / key
            path.write_text(value)
            path.chmod(0o440)
        yield {
            **image.environment,
            **{f"{key}_FILE": f"/etc/cadastre/secrets/{key}" for key in content},
            "ALLOWED_HOSTS": "ipam.example.com",
            "IPAM_BEHIND_PROXY": "1",
        }


def _start(
    image: build.Image,
    command: list[str],
    environment: Mapping[str, str],
    user: str,
    mounts: Mapping[str, str] = _WRITABLE,
) -> subprocess.Popen[str]:
    arguments = build.arguments_of(image, command, environment, user=user, mounts=mounts)
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _run(
    image: build.Image,
    command: list[str],
    environment: Mapping[str, str],
    user: str = ASSIGNED,
    mounts: Mapping[str, str] = _WRITABLE,
) -> subprocess.CompletedProcess[str]:
    arguments = build.arguments_of(image, command, environment, user=user, mounts=mounts)
    return subprocess.run(arguments, capture_output=True, text=True, check=False)


def test_nothing_but_two_folders_can_be_written(
    image: build.Image, environment: dict[str, str]
) -> None:
    script = "for d in / /app /opt/cadastre /etc /tmp /run/cadastre; do touch $d/x 2>/dev/null && echo $d; done; id -u; id -g"
    for user in (ASSIGNED, image.user):
        completed = _run(image, ["/bin/sh", "-c", script], environment, user)
        assert completed.stdout.split() == ["/tmp", "/run/cadastre", *user.split(":")]


def test_its_configuration_is_checked(image: build.Image, environment: dict[str, str]) -> None:
    command = ["python", "manage.py", "check", "--deploy", "--fail-level=WARNING"]
    completed = _run(image, command, environment)
    assert completed.returncode == 0, completed.stderr
    migrated = _run(image, [*image.entrypoint, "django", "migrate", "--check"], environment)
    assert migrated.returncode == 0, migrated.stderr


def _give_to_group(folder: pathlib.Path, user: str) -> None:
    """What `fsGroup` does with a Secret."""
    for path in folder.iterdir():
        os.chown(path, -1, int(user.partition(":")[2]))


@pytest.mark.parametrize("user", [ASSIGNED, "10001:10001"], ids=["assigned", "own"])
def test_it_serves_pages_with_their_files(
    image: build.Image, environment: dict[str, str], user: str
) -> None:
    _give_to_group(image.root / "etc/cadastre/secrets", user)
    assert {ASSIGNED, image.user} >= {user}
    port = processes.free_port()
    variables = {
        **environment,
        "IPAM_ROLE": "web",
        "WEB_BIND": f"127.0.0.1:{port}",
        "WEB_WORKERS": "1",
    }
    web = _start(image, [*image.entrypoint, *image.command], variables, user)
    try:
        health = ["python", "/app/healthcheck.py"]
        eventually.until(lambda: _run(image, health, variables, user).returncode == 0)
        url = f"http://127.0.0.1:{port}"
        script = ["python", "-c", _SITE_TEST.read_text(), url, "ipam.example.com"]
        tested = _run(image, script, {"PATH": environment["PATH"]}, user)
        assert tested.returncode == 0, tested.stderr
        assert re.search(r"ready, login page with \d+ stylesheets", tested.stdout)
    finally:
        web.send_signal(signal.SIGTERM)
        output, _ = web.communicate(timeout=60)
    assert web.returncode == 0, output


def test_a_worker_starts(
    image: build.Image, environment: dict[str, str], tmp_path: pathlib.Path
) -> None:
    _give_to_group(image.root / "etc/cadastre/secrets", ASSIGNED)
    shared = tmp_path / "run"
    shared.mkdir()
    shared.chmod(0o777)
    mounts = {"/tmp": "", "/run/cadastre": str(shared)}
    arguments, role = shipped.supervised()["worker"]
    variables = {**environment, "IPAM_ROLE": role, "REMAP_SIGTERM": "SIGQUIT"}
    worker = _start(image, [*image.entrypoint, *arguments], variables, ASSIGNED, mounts)
    health = ["python", "manage.py", "worker_health", "worker"]
    try:
        eventually.until(
            lambda: _run(image, health, variables, ASSIGNED, mounts).returncode == 0, seconds=180
        )
        assert worker.poll() is None
    finally:
        worker.send_signal(signal.SIGTERM)
        output, _ = worker.communicate(timeout=120)
    assert "Permission denied" not in output
    assert "Read-only file system" not in output


def test_the_image_with_ldap_signs_in(
    builder: build.Builder,
    image: build.Image,
    environment: dict[str, str],
    tmp_path: pathlib.Path,
) -> None:
    ldap_image = _build(builder, "ldap")
    assert ldap_image.user == image.user
    shutil.copytree(image.root / "etc/cadastre", ldap_image.root / "etc/cadastre")
    _give_to_group(ldap_image.root / "etc/cadastre/secrets", ASSIGNED)
    script = (
        "import django; django.setup()\n"
        "from django.contrib import auth\n"
        "user = auth.authenticate(username='ada', password='right')\n"
        "print(user, user.directory_account.source)"
    )
    with slapd.running(tmp_path) as directory:
        directory.set_groups({"net-admins": ["ada"]})
        shutil.copy(directory.ca_file, ldap_image.root / "etc/cadastre/ca.pem")
        variables = {
            **environment,
            "IPAM_SIGN_ON_ROLES": '{"net-admins": "administrator"}',
            "IPAM_LDAP_URL": directory.url,
            "IPAM_LDAP_BIND_DN": slapd.ADMIN,
            "IPAM_LDAP_BIND_PASSWORD": slapd.PASSWORD,
            "IPAM_LDAP_USER_BASE": f"ou=people,{slapd.BASE}",
            "IPAM_LDAP_GROUP_BASE": f"ou=groups,{slapd.BASE}",
            "IPAM_LDAP_CA_FILE": "/etc/cadastre/ca.pem",
        }
        completed = _run(ldap_image, ["python", "-c", script], variables)
    assert completed.stdout.split() == ["ada", "ldap"], completed.stderr
