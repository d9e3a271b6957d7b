"""Builds what deploy/container/Containerfile says into a folder, and runs commands in it, without a container engine.

The instructions are followed one by one. The base image is not to be had: in its place are this machine's /usr and
its Python, read-only. That, and what an engine does (registries, layers, cgroups), is not proved by these tests.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.deploy import shipped

CONTAINERFILE = shipped.DEPLOY / "container" / "Containerfile"
_FOLLOWED_LATER = {"LABEL", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK"}
_OFFLINE = re.compile(
    "NewConnectionError|Name or service not known|Temporary failure in name|unreachable"
)
# What the stand-in for the base image has of this machine.
_ETC = (
    "passwd",
    "group",
    "hosts",
    "nsswitch.conf",
    "resolv.conf",
    "ssl",
    "ca-certificates",
)
_ETC_OF_BUILDS = ("pip.conf", "xdg")


class OfflineError(Exception):
    """The packages of the lock cannot be downloaded."""


class PackageMissingError(Exception):
    """This machine does not have a package of Debian that the image gets."""


@dataclass
class Image:
    """A stage: its root, and what its instructions have set."""

    root: pathlib.Path
    environment: dict[str, str] = field(default_factory=dict)
    folder: str = "/"
    user: str = "0:0"
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)

    def path(self, name: str) -> pathlib.Path:
        return self.root / os.path.join(self.folder, name).lstrip("/")


def can_build() -> bool:
    """Return True if this process may mount and change its root."""
    probe = ["unshare", "--mount", "true"]
    return (
        os.geteuid() == 0
        and subprocess.run(probe, check=False, capture_output=True).returncode == 0
    )


def instructions(text: str) -> list[tuple[str, str]]:
    lines = re.sub(r"\\\n", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    return [
        (name.upper(), rest.strip())
        for name, _, rest in (line.partition(" ") for line in lines if line)
    ]


class Context:
    """The files that a build sees: the project's without those that .containerignore leaves out."""

    def __init__(self, project: pathlib.Path) -> None:
        self._project = project
        text = (project / ".containerignore").read_text()
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        self._rules = [
            (not line.startswith("!"), self._pattern(line.lstrip("!"))) for line in lines
        ]

    @staticmethod
    def _pattern(pattern: str) -> re.Pattern[str]:
        """A pattern of .containerignore; what is below a folder that it matches, matches."""
        parts = re.split(r"(\*\*/|\*\*|\*|\[[^]]+\])", pattern.strip("/"))
        special = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}
        text = "".join(
            special.get(part, part if part.startswith("[") else re.escape(part)) for part in parts
        )
        return re.compile(f"{text}(?:/.*)?")

    def is_ignored(self, path: pathlib.Path) -> bool:
        """The last rule that matches decides."""
        name = path.relative_to(self._project).as_posix()
        decisions = [ignored for ignored, pattern in self._rules if pattern.fullmatch(name)]
        return bool(decisions) and decisions[-1]

    def copy(self, source: str, target: pathlib.Path) -> None:
        """COPY: a file into a folder or to a name, or the content of a folder."""
        result = self._project / source
        if result.is_dir():
            for path in sorted(result.rglob("*")):
                if path.is_file() and not self.is_ignored(path):
                    self._copy_file(path, target / path.relative_to(result))
        else:
            assert not self.is_ignored(result), f"{source} is not in the context"
            self._copy_file(result, target / result.name if target.is_dir() else target)

    @staticmethod
    def _copy_file(source: pathlib.Path, target: pathlib.Path) -> None:
        """As an engine copies what somebody with the umask 077 has checked out: it keeps the modes."""
        for folder in reversed([path for path in target.parents if not path.exists()]):
            folder.mkdir(mode=0o700)
        shutil.copyfile(source, target)
        target.chmod(0o700 if os.access(source, os.X_OK) else 0o600)


class Builder:
    """Builds the stages that are needed, each once, with a method for each instruction; the last stage is ""."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._context = Context(shipped.PROJECT)
        self._arguments: dict[str, str] = {}
        self._images: dict[str, Image] = {}
        self._stages: dict[str, list[tuple[str, str]]] = {}
        for name, rest in instructions(CONTAINERFILE.read_text()):
            if name == "FROM":
                steps = self._stages[rest.partition(" AS ")[2]] = []
            if name not in _FOLLOWED_LATER:
                steps.append((name, rest))

    def build(self, stage: str = "") -> Image:
        """Return the image of a stage. Raises OfflineError, PackageMissingError."""
        if stage not in self._images:
            image = Image(self._folder / (stage or "image"))
            for name, rest in self._stages[stage]:
                getattr(self, f"_{name.lower()}")(image, rest)
            self._images[stage] = image
        return self._images[stage]

    def _from(self, image: Image, rest: str) -> None:
        base = rest.partition(" AS ")[0]
        if base not in self._stages:
            _make_base(image.root)
            return
        origin = self.build(base)
        for source, target in (
            (origin.root, image.root),
            (_local(origin.root), _local(image.root)),
        ):
            subprocess.run(["cp", "--archive", source, target], check=True)
        vars(image).update(vars(origin) | {"root": image.root})

    def _arg(self, _: Image, rest: str) -> None:
        key, _, value = rest.partition("=")
        self._arguments[key] = value.strip('"')

    def _env(self, image: Image, rest: str) -> None:
        for pair in shlex.split(rest):
            key, _, value = pair.partition("=")
            value = re.sub(r"\$\{(\w+)\}", lambda match: self._arguments[match[1]], value)
            image.environment[key] = value

    def _workdir(self, image: Image, rest: str) -> None:
        image.folder = rest
        image.path("").mkdir(parents=True, exist_ok=True)

    def _copy(self, image: Image, rest: str) -> None:
        *sources, target = rest.split()
        if sources[0].startswith("--from="):
            origin = self.build(sources.pop(0).partition("=")[2])
            for source in sources:
                shutil.copytree(
                    origin.path(source), image.path(target), symlinks=True, dirs_exist_ok=True
                )
        else:
            for source in sources:
                self._context.copy(source, image.path(target))

    def _run(self, image: Image, rest: str) -> None:
        if "apt-get" in rest:
            _require_packages(rest)
        else:
            _run_step(image, json.loads(rest))

    def _user(self, image: Image, rest: str) -> None:
        image.user = rest

    def _entrypoint(self, image: Image, rest: str) -> None:
        image.entrypoint = json.loads(rest)

    def _cmd(self, image: Image, rest: str) -> None:
        image.command = json.loads(rest)


def _require_packages(step: str) -> None:
    """Debian's packages are this machine's, as all of /usr is. Raises PackageMissingError."""
    (names,) = re.findall(r"--no-install-recommends ([a-z0-9. -]+)", step)
    for name in names.split():
        if subprocess.run(["dpkg", "--status", name], check=False, capture_output=True).returncode:
            raise PackageMissingError(name)


def _make_base(root: pathlib.Path) -> None:
    """The stand-in for the base image, as far as it is not mounted when something runs."""
    for name in ("usr", "dev", "proc", "etc", "run", "opt"):
        (root / name).mkdir(parents=True)
    (root / "tmp").mkdir(mode=0o1777)
    (root / "tmp").chmod(0o1777)
    for name in ("bin", "sbin", "lib", "lib64"):
        if pathlib.Path("/", name).is_symlink():
            (root / name).symlink_to(f"usr/{name}")
    for name in (*_ETC, *_ETC_OF_BUILDS):
        source = pathlib.Path("/etc", name)
        if source.is_dir():
            shutil.copytree(
                source, root / "etc" / name, symlinks=True, ignore_dangling_symlinks=True
            )
        elif source.exists():
            shutil.copy(source, root / "etc" / name)
    # Python is named `python` in the base image.
    (root / sys.base_prefix.lstrip("/")).mkdir(parents=True, exist_ok=True)
    local = _local(root)
    (local / "bin").mkdir(parents=True)
    if not pathlib.Path(sys.base_prefix, "bin", "python").exists():
        (local / "bin" / "python").symlink_to(f"{sys.base_prefix}/bin/python3")


def _local(root: pathlib.Path) -> pathlib.Path:
    return root.with_name(f"{root.name}-local")


def _run_step(image: Image, command: list[str]) -> None:
    # How this machine reaches its package index.
    index = {
        key: value for key, value in os.environ.items() if re.match("PIP_|SSL_|HTTPS?_PROXY", key)
    }
    path = {"PATH": f"{sys.base_prefix}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}
    arguments = arguments_of(image, command, path | index | image.environment, user=None, mounts={})
    completed = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if _OFFLINE.search(completed.stderr):
        raise OfflineError(completed.stderr[-500:])
    assert completed.returncode == 0, (command, completed.stderr[-2000:])


def arguments_of(
    image: Image,
    command: list[str],
    environment: Mapping[str, str],
    *,
    user: str | None,
    mounts: Mapping[str, str],
) -> list[str]:
    """The command that runs `command` in the image: as root and writable, or as `uid:gid` and read-only.

    Mounts: path in the image -> a folder of this machine, or "" for an empty one in memory.
    """
    root = shlex.quote(str(image.root))
    local = shlex.quote(str(_local(image.root)))
    steps = [
        f"mount --bind {root} {root}",
        f"mount --rbind /usr {root}/usr",
        f"mount -o remount,bind,ro {root}/usr",
        f"mount --bind {local} {root}/usr/local",
        f"mount -o remount,bind,ro {root}/usr/local",
        f"mount --rbind /dev {root}/dev",
        f"mount --rbind /proc {root}/proc",
    ]
    if sys.base_prefix != "/usr":
        python = shlex.quote(sys.base_prefix)
        steps += [
            f"mount --bind {python} {root}{python}",
            f"mount -o remount,bind,ro {root}{python}",
        ]
    if user is not None:
        steps.append(f"mount -o remount,bind,ro {root}")
    for target, source in mounts.items():
        place = f"{root}{target}"
        # As an emptyDir; as a Secret.
        steps.append(
            f"mount -t tmpfs -o mode=0777,size=64m tmpfs {place}"
            if not source
            else f"mount --bind {shlex.quote(source)} {place}"
        )
    variables = [f"{key}={value}" for key, value in environment.items()]
    inner = ["/usr/bin/env", "-i", "-C", image.folder, *variables, *command]
    if user is not None:
        uid, _, gid = user.partition(":")
        drop = ["--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
        inner = ["/usr/bin/setpriv", f"--reuid={uid}", f"--regid={gid}", *drop, *inner]
    steps.append(f"exec chroot {root} {shlex.join(inner)}")
    return ["unshare", "--mount", "--propagation=private", "/bin/sh", "-ec", "\n".join(steps)]
