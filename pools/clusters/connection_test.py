"""Connection test: identity and version of the cluster, served kinds, missing rights. Read-only.

Beside it: the commands by which an administrator of a cluster lets Cadastre read or write it (deploy/kubernetes).
"""

import contextlib
import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings

from pools.clusters import connections, other_writers
from pools.clusters.client.api_client import ClusterClient
from pools.clusters.reconcile import connecting
from pools.core import errors
from pools.core.cilium import conversion
from pools.core.kubernetes.resources import (
    CILIUM_POD_IP_POOL,
    Resource,
    Right,
    required_rights,
    resources_writing,
)
from pools.models import Connection, Mode
from pools.platform import database
from pools.platform.outbound import credentials, faults
from pools.platform.outbound.credentials import Access


@dataclass(frozen=True)
class KindResult:
    """The result for one kind; `shape` is set for pools, `note` describes a problem."""

    kind: str
    served: tuple[str, ...]  # apiVersions, the preferred one first
    shape: str = ""
    note: str = ""
    is_needed: bool = False  # a managed resource requires the kind


@dataclass(frozen=True)
class CredentialExpiry:
    """Expiry of a token or a certificate; `days` are left, negative after the expiry."""

    credential: str
    expires_at: datetime
    days: int


@dataclass
class ConnectionTest:
    """The result of a test; `code` and `message` are those of the error that ended it, or ""."""

    server: str
    code: str = ""
    message: str = ""
    version: str = ""
    identity: str = ""
    doubts: list[str] = field(default_factory=list)  # warnings, as sentences
    kinds: list[KindResult] = field(default_factory=list)
    rights: list[tuple[Right, bool]] = field(default_factory=list)
    endings: list[CredentialExpiry] = field(default_factory=list)

    @property
    def missing(self) -> list[Right]:
        """The required rights that the credentials lack."""
        return [right for right, granted in self.rights if not (granted or right.optional)]

    @property
    def succeeded(self) -> bool:
        """True if a sync can succeed."""
        is_kind_missing = any(kind.is_needed and not kind.served for kind in self.kinds)
        return not (self.code or self.missing or is_kind_missing)


def test_connection(connection: Connection, resources: Iterable[Resource]) -> ConnectionTest:
    """Test a stored connection with its managed resources; an error is part of the result.

    `resources` are the versions of all kinds that are read, the preferred version of a kind first.
    """
    result = ConnectionTest(connection.server)
    with _recording_fault(result):
        access = connecting.cluster_access(connection)
        _run(result, access, list(resources), connection.managed_resources, connection)
    return result


def test_source(
    source: connections.ConnectionSource,
    terms: connections.Terms,
    resources: Iterable[Resource],
    replaced: Connection | None = None,  # noqa: PT028  # no test function
) -> ConnectionTest:
    """Test a connection before it is stored, or before it replaces another; an error is part of the result."""
    result = ConnectionTest(source.access.server)
    with _recording_fault(result):
        _run(result, source.access, list(resources), terms.managed_resources, replaced)
    return result


@contextlib.contextmanager
def _recording_fault(result: ConnectionTest) -> Iterator[None]:
    try:
        yield
    except errors.IpamError as error:
        result.code, result.message = error.code, error.message


def _run(
    result: ConnectionTest,
    access: Access,
    resources: Sequence[Resource],
    managed_resources: Sequence[str],
    connection: Connection | None,
) -> None:
    now = database.now()
    for credential, expires_at in credentials.expiry_times(access).items():
        result.endings.append(CredentialExpiry(credential, expires_at, (expires_at - now).days))
    if not access.ca:
        result.doubts.append(
            "No certificate authority is given: the system's certificate authorities are trusted."
        )
    with connections.client_for(access) as client:
        result.version = client.version()
        result.identity = client.identity()
        _check_identity(result, connection)
        served = client.served(resources)
        for kind in dict.fromkeys(resource.kind for resource in resources):
            versions = [
                resource for resource in resources if resource.kind == kind and resource in served
            ]
            needing = resources_writing(kind, managed_resources)
            result.kinds.append(_test_kind(client, kind, versions, needing))
        # Rights are checked for the version that will be read.
        reads = [resource for resource in resources if resource in served]
        for right in required_rights(reads, managed_resources):
            granted = client.may(right.verb, right.resource, subresource=right.subresource)
            result.rights.append((right, granted))
        result.doubts += _missing_optional_rights(result)
        reports = other_writers.live_reports(client, managed_resources)
        result.doubts += [report.sentence for report in reports if report.sentence]


def _missing_optional_rights(result: ConnectionTest) -> list[str]:
    missing_rights: dict[str, list[str]] = {}
    for right, granted in result.rights:
        if right.optional and not granted:
            missing_rights.setdefault(right.needed_for, []).append(str(right))
    return [
        f"No {data}: this requires {', '.join(rights)}." for data, rights in missing_rights.items()
    ]


def _check_identity(result: ConnectionTest, connection: Connection | None) -> None:
    if connection is not None and connection.identity and connection.identity != result.identity:
        raise connecting.IdentityChanged(
            f"Another cluster than the registered one answers at {result.server}."
        )
    if existing := connections.find_by_identity(result.identity, connection):
        raise errors.SameCluster(f"This cluster is already registered as {existing.cluster}.")


def _test_kind(
    client: ClusterClient, kind: str, versions: Sequence[Resource], needing: Sequence[str]
) -> KindResult:
    served = tuple(resource.api_version for resource in versions)
    if not versions and needing:
        return KindResult(
            kind, (), note=connecting.missing_kind_message(kind, needing), is_needed=True
        )
    if not versions:
        return KindResult(kind, (), note="not served, so not shown")
    if kind != CILIUM_POD_IP_POOL.kind:
        return KindResult(kind, served)
    try:
        schema = client.schema(versions[0])
        shape = conversion.shape_of(schema).value if schema else ""
    except errors.InvalidInput as error:
        return KindResult(kind, served, note=error.message)
    except faults.ClusterFault as error:
        return KindResult(kind, served, note=f"its schema cannot be read: {error.message}")
    return KindResult(kind, served, shape, note="" if shape else "its schema is not shown")


_ROLES = {Mode.OBSERVED: "observe", Mode.MANAGED: "manage"}
# A year: servers may shorten it. The Secret of the manifest has a token that does not expire.
CREATE_TOKEN = "kubectl create token cadastre --namespace cadastre --duration 8760h"  # noqa: S105  # a command
SHOW_LASTING = "kubectl get secret cadastre-token --namespace cadastre --output 'jsonpath={.data.token}' | base64 -d"
SHOW_SERVER = "kubectl config view --minify --output 'jsonpath={.clusters[0].cluster.server}'"
SHOW_CA = (
    "kubectl config view --minify --flatten --raw"
    " --output 'jsonpath={.clusters[0].cluster.certificate-authority-data}'"
)


@functools.cache
def apply_command(mode: Mode) -> str:
    """Return the shell command that makes the service account and binds it to the role for this mode."""
    folder = settings.BASE_DIR / "deploy" / "kubernetes"
    account = (folder / "service-account.yaml").read_text()
    role = (folder / f"cluster-role-{_ROLES[mode]}.yaml").read_text()
    account = account.replace("cadastre-observe", f"cadastre-{_ROLES[mode]}")
    return f"kubectl apply -f - <<'EOF'\n{account}---\n{role}EOF"


def commands() -> dict[str, Any]:
    """Return the commands that the page of a new connection shows, by the names of its template."""
    return {
        "apply_to_read": apply_command(Mode.OBSERVED),
        "apply_to_write": apply_command(Mode.MANAGED),
        "create_token": CREATE_TOKEN,
        "lasting_token": SHOW_LASTING,
        "show_server": SHOW_SERVER,
        "show_ca": SHOW_CA,
    }
