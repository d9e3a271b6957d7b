"""A real kube-apiserver with its etcd, from KUBEBUILDER_ASSETS, behind the fake's interface.

There are no controllers and no nodes: namespaces get their objects, pods stay pending. Each folder of tests has its
own, and ends it: an idle API server takes a tenth of a core.
"""

import contextlib
import http.client
import json
import os
import pathlib
import secrets
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Iterable
from typing import Any, Self

from ipam_site.supervisor import processes
from tests.kube import kubeconfigs
from tests.kube.certificates import Authority, Pair
from tests.kube.fake.access import MASTERS, Rule
from tests.kube.fake.cluster import CRDS, definitions

Manifest = dict[str, Any]
Version = tuple[str, int]  # uid and generation of an object
SERVICE_CIDR = "10.255.0.0/24"
_USERS = 40
_OF_SERVER = {"resourceVersion", "uid"}  # not to be said of an object that is to be made
_STARTS = 3  # at most
_START_SECONDS = 90
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def assets() -> pathlib.Path | None:
    """The folder that KUBEBUILDER_ASSETS names, when kube-apiserver and etcd are in it."""
    folder = pathlib.Path(os.environ.get("KUBEBUILDER_ASSETS", "/nonexistent"))
    return folder if all((folder / name).exists() for name in ("kube-apiserver", "etcd")) else None


def _free_ports(count: int) -> list[int]:
    result: set[int] = set()
    while len(result) < count:
        result.add(processes.free_port())
    return list(result)


class ProgramEndedError(RuntimeError):
    """etcd or the API server ended while it was started."""


class RealCluster:
    """A control plane of its own on 127.0.0.1; everything is gone at the end."""

    def __init__(self, folder: pathlib.Path | None = None) -> None:
        result = folder or assets()
        if result is None:
            raise RuntimeError("KUBEBUILDER_ASSETS names no folder with kube-apiserver and etcd")
        self._programs = result
        self._authority = Authority()
        self.ca = self._authority.pem
        self.token = secrets.token_urlsafe(24)
        self._free = {f"user-{number}": secrets.token_urlsafe(24) for number in range(_USERS)}
        self._taken: dict[str, str] = {}
        self._defined: dict[str, tuple[Manifest, Version]] = {}
        self._processes: list[subprocess.Popen[bytes]] = []
        self._connection: http.client.HTTPSConnection | None = None
        self.url = ""
        self.minor = 0

    def __enter__(self) -> Self:
        for attempt in range(1, _STARTS + 1):
            self._stack = contextlib.ExitStack()
            try:
                self._start()
            except ProgramEndedError:  # another process may have taken its port
                self.__exit__()
                if attempt == _STARTS:
                    raise
            except BaseException:
                self.__exit__()
                raise
            else:
                break
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        for process in reversed(self._processes):
            process.kill()
            process.wait()
        self._processes.clear()
        self._stack.close()

    # --- start ----------------------------------------------------------------------------------

    def _start(self) -> None:
        room = pathlib.Path("/dev/shm")
        folder = pathlib.Path(
            tempfile.mkdtemp(prefix="cadastre-kube-", dir=room if room.is_dir() else None)
        )
        self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        self._log = folder / "log"
        client, peer, port = _free_ports(3)
        self._run(
            "etcd",
            f"--data-dir={folder / 'etcd'}",
            f"--listen-client-urls=http://127.0.0.1:{client}",
            f"--advertise-client-urls=http://127.0.0.1:{client}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-cluster=default=http://127.0.0.1:{peer}",
            "--unsafe-no-fsync",
        )
        self._run("kube-apiserver", *self._arguments(folder, client, port))
        self.url = f"https://127.0.0.1:{port}"
        self._etcd = client
        self._await_ready()
        # A build that was not stamped says nothing; the one that is easily made is 1.20.
        self.minor = int(self.request("GET", "/version")["minor"].rstrip("+") or 20)

    def _arguments(self, folder: pathlib.Path, etcd: int, port: int) -> list[str]:
        certificate, key = self._authority.server().files(folder, "server")
        (folder / "ca.crt").write_text(self.ca)
        private, public = self._authority.key_pair()
        (folder / "accounts.key").write_text(private)
        (folder / "accounts.pub").write_text(public)
        lines = [f'{self.token},admin,admin,"{MASTERS}"']
        lines += [f"{token},{name},{name}" for name, token in self._free.items()]
        (folder / "tokens.csv").write_text("\n".join(lines) + "\n")
        return [
            f"--etcd-servers=http://127.0.0.1:{etcd}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--client-ca-file={folder / 'ca.crt'}",
            f"--token-auth-file={folder / 'tokens.csv'}",
            f"--service-account-key-file={folder / 'accounts.pub'}",
            f"--service-account-signing-key-file={folder / 'accounts.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-cluster-ip-range={SERVICE_CIDR}",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",  # so that it is a policy that refuses privileged pods
            "--disable-admission-plugins=ServiceAccount",
            f"--cert-dir={folder}",
        ]

    def _run(self, program: str, *arguments: str) -> None:
        with self._log.with_suffix(f".{program}").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    [self._programs / program, *arguments],
                    stdout=log,
                    stderr=log,
                    stdin=subprocess.DEVNULL,
                    preexec_fn=processes.die_with_parent(signal.SIGKILL),
                )
            )

    def _await_ready(self) -> None:
        until = time.monotonic() + _START_SECONDS
        while True:
            try:
                self.request("GET", "/readyz")
                for name in ("default", "kube-system"):
                    self.request("GET", f"/api/v1/namespaces/{name}")
            except (OSError, http.client.HTTPException, RuntimeError) as not_yet:
                died = [process.args for process in self._processes if process.poll() is not None]
                if died or time.monotonic() > until:
                    for log in self._log.parent.glob("log.*"):
                        sys.stderr.write(log.read_text(errors="replace")[-3000:])
                    fault = ProgramEndedError if died else RuntimeError
                    raise fault(f"the API server did not start: {died}") from not_yet
                time.sleep(0.1)
            else:
                return

    # --- HTTP -----------------------------------------------------------------------------------

    def request(
        self, method: str, path: str, body: Any = None, *, content_type: str = "application/json"
    ) -> Any:
        """The parsed answer, as the admin; RuntimeError with the answer of an error."""
        if self._connection is None:
            url = urllib.parse.urlsplit(self.url)
            context = ssl.create_default_context(cadata=self.ca)
            self._connection = http.client.HTTPSConnection(
                url.hostname or "", url.port, context=context, timeout=30
            )
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content_type}
        data = None if body is None else json.dumps(body)
        try:
            try:
                self._connection.request(method, path, data, headers)
                answer = self._connection.getresponse()
            except http.client.RemoteDisconnected:  # it was idle for long
                self._connection.close()
                self._connection.request(method, path, data, headers)
                answer = self._connection.getresponse()
            content = answer.read()
        except BaseException:
            self._connection.close()
            self._connection = None
            raise
        if answer.status >= http.client.BAD_REQUEST:
            raise RuntimeError(f"{method} {path}: {answer.status} {content.decode()}")
        is_json = answer.getheader("Content-Type", "").startswith("application/json")
        return json.loads(content) if is_json else content

    # --- the fake's interface -------------------------------------------------------------------

    def user(self, name: str, rules: Iterable[Rule] = ()) -> str:
        """A token for a user who may do what these rules say; at most 40 of them."""
        account, token = self._free.popitem()
        self._taken[name] = account
        self.grant(name, rules)
        return token

    def grant(self, name: str, rules: Iterable[Rule]) -> None:
        """From now on these rules, instead of those before."""
        role = self._taken.get(name, name)
        base = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": f"test-{role}"}}
        self.put({**base, "kind": "ClusterRole", "rules": list(rules)})
        self.put(
            {
                **base,
                "kind": "ClusterRoleBinding",
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": f"test-{role}",
                },
                "subjects": [
                    {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": role}
                ],
            }
        )

    def certificate(self, name: str, groups: tuple[str, ...] = ()) -> Pair:
        """A client certificate of a user."""
        return self._authority.client(name, groups)

    def kubeconfig(self, token: str | None = None) -> str:
        """YAML, of the admin unless a token is given."""
        return kubeconfigs.text(self.url, self.ca, token=token or self.token)

    def crds(self, *paths: str | pathlib.Path) -> None:
        """Install definitions, and wait until they are served."""
        for path in paths:
            for manifest in definitions(_file(path)):
                name = manifest["metadata"]["name"]
                self.put(manifest)
                self.await_served(manifest)
                version = _version(self.request("GET", f"{_DEFINITIONS}/{name}"))
                self._defined[name] = (manifest, version)

    def anew(self, *paths: str | pathlib.Path) -> None:
        """These definitions alone and no objects of them, nor pods, whatever was there before.

        What is there as it was defined stays: a new definition costs the server a second of processor time.
        """
        new = {m["metadata"]["name"]: m for path in paths for m in definitions(_file(path))}
        served = {d["metadata"]["name"]: d for d in self.objects("customresourcedefinitions")}
        for name in self._defined.keys() - served.keys():  # a test deleted it as a client does
            del self._defined[name]
        for name, definition in served.items():
            with contextlib.suppress(KeyError):  # it serves no version
                self.erase(name)  # also of one that goes: objects with finalizers would keep it
            if self._defined.get(name) != (new.get(name), _version(definition)):
                self.undefine(name)
        for path in paths:
            if any(m["metadata"]["name"] not in self._defined for m in definitions(_file(path))):
                self.crds(path)
        self.erase("pods")

    def erase(self, plural: str) -> None:
        """Delete all objects of a kind, whatever their finalizers say."""
        for item in self.objects(plural):
            metadata = item["metadata"]
            self.remove(plural, metadata["name"], metadata.get("namespace", ""))

    def undefine(self, name: str) -> None:
        """Delete a definition and its objects, and wait until it is gone.

        One that is changed instead leaves its old schema in use for a moment.
        """
        plural, _, group = name.partition(".")
        with contextlib.suppress(KeyError, StopIteration):
            self.erase(f"{plural}.{group}")
        self._defined.pop(name, None)
        until = time.monotonic() + 30
        with contextlib.suppress(RuntimeError):  # that it is gone
            while time.monotonic() < until:
                self.request("DELETE", f"{_DEFINITIONS}/{name}")
                time.sleep(0.05)
        # Discovery follows later: one that is defined again at once would be served, gone, and served.
        self.await_unserved(group, plural)

    def await_served(self, definition: Manifest) -> None:
        """Established comes before the paths are there, and each version comes by itself."""
        spec = definition["spec"]
        for version in (version["name"] for version in spec["versions"] if version["served"]):
            path = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"
            until = time.monotonic() + 60
            while not self._serves(
                path, f"/apis/{spec['group']}/{version}", spec["names"]["plural"]
            ):
                if time.monotonic() > until:
                    raise RuntimeError(f"{path} is not served")
                time.sleep(0.05)

    def _serves(self, path: str, base: str, plural: str) -> bool:
        try:
            self.request("GET", path + "?limit=1")
        except RuntimeError:
            return False
        return self._lists(base, plural)

    def _lists(self, base: str, plural: str) -> bool:
        """Return True if discovery has the kind; a version that just goes has nothing."""
        try:
            resources = self.request("GET", base)["resources"]
        except RuntimeError:
            return False
        return any(resource["name"] == plural for resource in resources)

    def await_unserved(self, group: str, plural: str) -> None:
        """The list of groups, and what each of them serves, follow one after the other."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            versions = [
                version["groupVersion"]
                for item in self.request("GET", "/apis")["groups"]
                if item["name"] == group
                for version in item["versions"]
            ]
            with contextlib.suppress(RuntimeError):
                served = [
                    self.request("GET", f"/apis/{version}")["resources"] for version in versions
                ]
                if plural not in {element["name"] for item in served for element in item}:
                    return
            time.sleep(0.05)
        raise RuntimeError(f"{plural}.{group} is still served")

    def _path(self, manifest: Manifest) -> tuple[str, str]:
        group_version = manifest["apiVersion"]
        base = f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"
        resources = self._await_kind(base, manifest["kind"])
        resource = next(
            candidate for candidate in resources if _is_kind(candidate, manifest["kind"])
        )
        if resource["namespaced"]:
            base += f"/namespaces/{manifest['metadata'].get('namespace', 'default')}"
        status = any(candidate["name"] == f"{resource['name']}/status" for candidate in resources)
        return f"{base}/{resource['name']}", "/status" if status else ""

    def _await_kind(self, base: str, kind: str) -> list[Manifest]:
        """Return what discovery has below this path, once the kind is in it.

        A busy server may forget a group for a moment after a definition of it came.
        """
        until = time.monotonic() + 60
        while True:
            with contextlib.suppress(RuntimeError):
                resources: list[Manifest] = self.request("GET", base)["resources"]
                if any(_is_kind(candidate, kind) for candidate in resources):
                    return resources
            if time.monotonic() > until:
                raise RuntimeError(f"{base} does not serve {kind}")
            time.sleep(0.05)

    def put(self, manifest: Manifest, *, manager: str = "test") -> Manifest:
        """Create or replace an object, its status too; what is stored then."""
        path, status = self._path(manifest)
        name = manifest["metadata"]["name"]
        query = f"?fieldManager={manager}"
        new = {key: value for key, value in manifest["metadata"].items() if key not in _OF_SERVER}
        try:
            stored = self.request("POST", path + query, manifest | {"metadata": new})
        except RuntimeError as refused:
            if "AlreadyExists" not in str(refused):
                raise
            present = self.request("GET", f"{path}/{name}")
            stored = self.request("PUT", f"{path}/{name}{query}", _at_version_of(present, manifest))
        if status and "status" in manifest:
            body = _at_version_of(stored, manifest)
            stored = self.request("PUT", f"{path}/{name}{status}{query}", body)
        result: Manifest = stored
        return result

    def _collection(self, plural: str, namespace: str = "") -> str:
        groups = self.request("GET", "/apis")["groups"]
        bases = ["/api/v1"] + [f"/apis/{g['preferredVersion']['groupVersion']}" for g in groups]
        # A kind of a group may have other versions than the group's others.
        bases += [f"/apis/{v['groupVersion']}" for g in groups for v in g["versions"]]
        expected, _, group = plural.partition(".")
        for base in bases:
            if group and not base.startswith(f"/apis/{group}/"):
                continue
            if self._lists(base, expected):
                inner = f"/namespaces/{namespace}" if namespace else ""
                return f"{base}{inner}/{expected}"
        raise KeyError(plural)

    def objects(self, plural: str) -> list[Manifest]:
        """All objects of a kind, read through its group's preferred version if it has it."""
        items: list[Manifest] = self.request("GET", self._collection(plural))["items"]
        return items

    def object(self, plural: str, name: str, namespace: str = "") -> Manifest:
        """One of them."""
        result: Manifest = self.request("GET", f"{self._collection(plural, namespace)}/{name}")
        return result

    def remove(self, plural: str, name: str, namespace: str = "") -> None:
        """Delete at once, whatever its finalizers say."""
        path = f"{self._collection(plural, namespace)}/{name}"
        merge = "application/merge-patch+json"
        # An object that its definition no longer takes can be deleted, and not changed.
        metadata = self.request("GET", path)["metadata"]
        if metadata.get("finalizers"):
            self.request("PATCH", path, {"metadata": {"finalizers": None}}, content_type=merge)
        if not (
            metadata.get("finalizers") and metadata.get("deletionTimestamp")
        ):  # else it is gone
            self.request("DELETE", path, {"gracePeriodSeconds": 0})
        if plural == "customresourcedefinitions":
            self.await_unserved(*reversed(name.split(".", 1)))

    def forget(self) -> None:
        """Compact the history: older continue tokens are answered with 410."""
        listed = self.request("GET", "/api/v1/namespaces?limit=1")
        connection = http.client.HTTPConnection("127.0.0.1", self._etcd, timeout=10)
        with contextlib.closing(connection):
            body = json.dumps({"revision": listed["metadata"]["resourceVersion"]})
            connection.request("POST", "/v3/kv/compaction", body)
            answer = connection.getresponse()
            assert answer.status == http.client.OK, answer.read()

    @property
    def kube_system_uid(self) -> str:
        return str(self.request("GET", "/api/v1/namespaces/kube-system")["metadata"]["uid"])


def _is_kind(resource: Manifest, kind: str) -> bool:
    return resource["kind"] == kind and "/" not in resource["name"]


def _file(path: str | pathlib.Path) -> pathlib.Path:
    result = pathlib.Path(path)
    return result if result.is_file() else CRDS / f"{str(path).removesuffix('.yaml')}.yaml"


def _version(present: Manifest) -> Version:
    return present["metadata"]["uid"], present["metadata"]["generation"]


def _at_version_of(present: Manifest, manifest: Manifest) -> Manifest:
    version = present["metadata"]["resourceVersion"]
    return manifest | {"metadata": manifest["metadata"] | {"resourceVersion": version}}


if __name__ == "__main__":
    with RealCluster() as cluster:
        sys.stdout.write(cluster.kubeconfig())
        sys.stdout.flush()
        signal.sigwait([signal.SIGINT, signal.SIGTERM])
