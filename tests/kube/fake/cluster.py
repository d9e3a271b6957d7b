"""One fake cluster: its state, its users, and the doors that tests use beside HTTP."""

from __future__ import annotations

import functools
import json
import pathlib
import threading
from collections.abc import Callable, Iterable
from typing import Any, Self

import yaml

from tests.kube import kubeconfigs
from tests.kube.certificates import Authority, Pair
from tests.kube.fake import access, kinds, refusals, writes
from tests.kube.fake.faults import Faults
from tests.kube.fake.journal import Journal
from tests.kube.fake.kinds import Kind
from tests.kube.fake.server import Server
from tests.kube.fake.store import Store, Stored

Manifest = dict[str, Any]
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
CRDS = pathlib.Path(__file__).parent.parent / "crds"


@functools.lru_cache
def definitions(path: pathlib.Path) -> tuple[Manifest, ...]:
    """The documents of a YAML file; not to be changed."""
    return tuple(item for item in yaml.load_all(path.read_text(), Loader=_Loader) if item)


class FakeCluster:
    """A Kubernetes API server of this process, over HTTPS on 127.0.0.1.

    `minor` says which Kubernetes 1.x it is like, where releases differ: before 22 managedFields do not
    tell subresources apart, before 24 there is no /openapi/v3, before 25 no fieldValidation.
    """

    def __init__(self, *, minor: int = 33, port: int = 0) -> None:
        self.minor = minor
        self.store = Store()
        self.log = Journal()
        self.faults = Faults()
        self.accounts = access.Accounts()
        self.bookmark_seconds: float = 60
        self.ended = threading.Event()
        self.errors: list[str] = []
        self._kinds: dict[tuple[str, str], Kind] = {kind.key: kind for kind in kinds.core()}
        self._authority = Authority()
        self.ca = self._authority.pem
        self.token = self.accounts.token(access.User("admin", (access.MASTERS,)))
        for name in ("default", "kube-system", "kube-public"):
            self.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self._server = Server(self, self._authority.server(), self.ca, port)
        self.url = f"https://127.0.0.1:{self._server.port}"

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        with self.store.changed:
            self.store.changed.notify_all()
        self._server.close()
        assert not self.errors, "\n".join(self.errors)

    # --- users ----------------------------------------------------------------------------------

    def user(self, name: str, rules: Iterable[access.Rule] = ()) -> str:
        """A token for a user who may do what these rules (of a ClusterRole) say."""
        self.grant(name, rules)
        return self.accounts.token(access.User(name))

    def grant(self, name: str, rules: Iterable[access.Rule]) -> None:
        """From now on these rules, instead of those before."""
        self.accounts.rules[name] = list(rules)

    def revoke(self, token: str) -> None:
        """Requests with this token are answered with 401."""
        del self.accounts.tokens[token]

    def certificate(self, name: str, groups: tuple[str, ...] = ()) -> Pair:
        """A client certificate of a user."""
        return self._authority.client(name, groups)

    def kubeconfig(self, token: str | None = None) -> str:
        """YAML, of the admin unless a token is given."""
        return kubeconfigs.text(self.url, self.ca, token=token or self.token)

    # --- content --------------------------------------------------------------------------------

    @property
    def kinds(self) -> list[Kind]:
        return list(self._kinds.values())

    def kind(self, group: str, plural: str) -> Kind | None:
        return self._kinds.get((group, plural))

    def find_kind(self, plural: str) -> Kind:
        """A kind by `ciliumnodes` or `ciliumnodes.cilium.io`; StopIteration."""
        return next(kind for kind in self.kinds if plural in {kind.plural, kind.resource})

    def _of(self, manifest: Manifest) -> tuple[Kind, str]:
        group, _, version = manifest["apiVersion"].rpartition("/")
        kind = next(
            item for item in self.kinds if (item.group, item.kind) == (group, manifest["kind"])
        )
        return kind, version

    def crds(self, *paths: str | pathlib.Path) -> None:
        """Install definitions; a bare name is a file of tests/kube/crds, with or without .yaml."""
        for path in paths:
            result = pathlib.Path(path)
            if not result.is_file():
                result = CRDS / f"{str(path).removesuffix('.yaml')}.yaml"
            for manifest in definitions(result):
                self.put(manifest)

    def put(self, manifest: Manifest, *, manager: str = "test") -> Manifest:
        """Create or replace an object, its status too, without HTTP; what is stored then."""
        kind, version = self._of(manifest)
        metadata = manifest["metadata"]
        namespace = metadata.get("namespace", "default") if kind.namespaced else ""
        write = writes.Write(
            self.store,
            kind,
            version,
            namespace=namespace,
            name=metadata.get("name", ""),
            manager=manager,
            minor=self.minor,
        )
        with self.store.changed:
            if self.store.get(kind, write.name, namespace) is None:
                stored = write.put_new(manifest)
            else:
                stored = write.put_over(manifest)
            self.noticed(kind, stored)
        return stored.read(version)

    def remove(self, plural: str, name: str, namespace: str = "") -> None:
        """Delete at once, whatever its finalizers say."""
        kind = self.find_kind(plural)
        with self.store.changed:
            stored = self.store.get(kind, name, namespace or ("default" * kind.namespaced))
            if stored is None:
                raise refusals.not_found(kind, name)
            self.noticed(kind, self.store.delete(stored), gone=True)

    def objects(self, plural: str) -> list[Manifest]:
        """All objects of a kind as they are stored, in the order of their names; copies."""
        shelf = self.store.shelf(self.find_kind(plural))
        with self.store.changed:
            return [json.loads(json.dumps(shelf.objects[key].item)) for key in shelf.keys]

    def object(self, plural: str, name: str, namespace: str = "") -> Manifest:
        """One of them; KeyError."""
        kind = self.find_kind(plural)
        key = (namespace or ("default" * kind.namespaced), name)
        item: Manifest = json.loads(json.dumps(self.store.shelf(kind).objects[key].item))
        return item

    @property
    def kube_system_uid(self) -> str:
        """The identity of the cluster; set it to make this another cluster behind the same address."""
        return str(self.object("namespaces", "kube-system")["metadata"]["uid"])

    @kube_system_uid.setter
    def kube_system_uid(self, uid: str) -> None:
        item = self.object("namespaces", "kube-system")
        item["metadata"]["uid"] = uid
        self.store.write(self.find_kind("namespaces"), item)

    # --- what happens ---------------------------------------------------------------------------

    def forget(self) -> None:
        """Compact the history: older versions and continue tokens are answered with 410."""
        self.store.forget()

    def bookmark(self) -> None:
        """Every watch that allows bookmarks gets one now."""
        with self.store.changed:
            self.store.bookmarks += 1
            self.store.changed.notify_all()

    def cut(self) -> None:
        """Close all connections, as when the server dies and comes back."""
        self._server.cut()

    def noticed(self, kind: Kind, stored: Stored, *, gone: bool = False) -> None:
        """After every write: a definition that came, changed or went."""
        if kind.plural != "customresourcedefinitions" or not stored.version:
            return
        manifest = stored.item
        defined = kinds.from_definition(manifest, manifest["metadata"]["uid"])
        if gone:
            self._kinds.pop(defined.key, None)
            self.store.drop(defined)
            return
        earlier = self._kinds.get(defined.key)
        self._kinds[defined.key] = defined
        if earlier is not None:
            self.store.redefine(defined)
        if "status" not in manifest:
            self.store.write(kind, manifest | {"status": _established(manifest)})

    def later(self, seconds: float, call: Callable[[], object]) -> threading.Timer:
        """Do something in the background, as another client would."""
        timer = threading.Timer(seconds, call)
        timer.daemon = True
        timer.start()
        return timer


def _established(manifest: Manifest) -> Manifest:
    conditions = [
        {"type": item, "status": "True", "reason": "Accepted", "lastTransitionTime": writes.now()}
        for item in ("NamesAccepted", "Established")
    ]
    spec = manifest["spec"]
    stored = [version["name"] for version in spec["versions"] if version["storage"]]
    return {"conditions": conditions, "acceptedNames": spec["names"], "storedVersions": stored}
