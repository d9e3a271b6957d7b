"""Parser of kubeconfigs, and of a pod's service account: address and credentials of an API server.

Only data inside the kubeconfig is used. A kubeconfig can also name programs to run, files to read and
proxies; each of these is refused with its own code, because it would apply to this machine and not to the
machine of the author.
"""

import base64
import binascii
import contextlib
import dataclasses
import datetime
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pools.core import errors
from pools.platform import documents
from pools.platform.outbound import credentials, guard
from pools.platform.outbound.credentials import Access

SERVICE_ACCOUNT = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
LARGEST = 512 * 1024  # bytes of text

_FILES = (
    "the file is on another machine; use the {0}-data field (kubectl config view --raw --flatten)"
)
_REFUSED_OF_CLUSTER = {
    "certificate-authority": ("file_reference", _FILES),
    "insecure-skip-tls-verify": ("tls_verification_required", "TLS is always verified"),
    "proxy-url": ("proxy_not_allowed", "proxies are not used"),
}
_PROGRAM = "programs are not run; use a service account's token or a client certificate"
_NO_BASIC = "passwords are not used; use a service account's token or a client certificate"
_NO_IMPERSONATION = ("impersonation_not_allowed", "impersonation is not used")
_REFUSED_OF_USER = {
    "exec": ("exec_not_allowed", _PROGRAM),
    "auth-provider": ("auth_provider_not_allowed", _PROGRAM),
    "client-certificate": ("file_reference", _FILES),
    "client-key": ("file_reference", _FILES),
    "tokenFile": ("file_reference", "the file is on another machine; use the token itself"),
    "username": ("password_not_allowed", _NO_BASIC),
    "password": ("password_not_allowed", _NO_BASIC),
    **dict.fromkeys(("as", "as-uid", "as-groups", "as-user-extra"), _NO_IMPERSONATION),
}
_PEM_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----")


@dataclasses.dataclass(frozen=True)
class KubeconfigReading:
    """The result of `read`: the access, the name of its context, and warnings."""

    access: Access
    context: str
    warnings: tuple[str, ...] = ()


def read(text: str | bytes, *, context: str = "", now: datetime.datetime) -> KubeconfigReading:
    """Return the access of one context, by default the current one.

    Raises InvalidInput with paths of the file (`users.admin.exec`): the codes of
    `documents.load_yaml`, context_missing (the message lists the contexts), cluster_missing,
    user_missing, url_not_allowed, exec_not_allowed, auth_provider_not_allowed, file_reference,
    proxy_not_allowed, tls_verification_required, password_not_allowed, impersonation_not_allowed,
    bad_base64, bad_pem, private_key_in_ca, bad_token, bad_server_name, key_mismatch,
    client_key_missing, client_certificate_missing, no_credentials.
    """
    config = _load(text)
    name, chosen = _context(config, context)
    cluster_name, cluster = _entry(config, "clusters", "cluster", chosen.get("cluster"))
    user_name, user = _entry(config, "users", "user", chosen.get("user"))
    cluster_path, user_path = f"clusters.{cluster_name}", f"users.{user_name}"
    problems = _forbidden_fields(cluster, _REFUSED_OF_CLUSTER, cluster_path)
    problems += _forbidden_fields(user, _REFUSED_OF_USER, user_path)
    if problems:
        raise errors.InvalidInput.all(problems)
    with _errors_under(cluster_path):
        server = guard.parse_url(_text(cluster, "server")).url
        ca = _pem(cluster, "certificate-authority-data")
        tls_server_name = _text(cluster, "tls-server-name")
    with _errors_under(user_path):
        token = _text(user, "token").strip()
        certificate = _pem(user, "client-certificate-data")
        key = _pem(user, "client-key-data")
    access = Access(server, ca, token, certificate, key, tls_server_name)
    try:
        warnings = credentials.check(access, now=now)
    except errors.InvalidInput as error:
        paths = _field_paths(cluster_path, user_path)
        raise errors.InvalidInput.all(
            [dataclasses.replace(problem, field=paths[problem.field]) for problem in error.problems]
        ) from None
    return KubeconfigReading(access, name, warnings)


def _load(text: str | bytes) -> dict[str, Any]:
    try:
        parsed_documents = documents.load_yaml(text, limit=LARGEST)
    except errors.InvalidInput as error:
        if error.code != "object_expected":
            raise
        message = "not a kubeconfig (expected clusters, users and contexts)"
        raise errors.InvalidInput.for_field("", error.code, message) from error
    if len(parsed_documents) > 1:
        raise errors.InvalidInput.for_field("", "object_expected", "one kubeconfig is expected")
    return parsed_documents[0].data


def contexts(text: str | bytes) -> tuple[list[str], str]:
    """Return the sorted names of the contexts, and the current one ("" if it does not exist).

    Raises InvalidInput as `read` does if the text is no kubeconfig.
    """
    config = _load(text)
    names = sorted(_entries_by_name(config, "contexts", "context"))
    current = _text(config, "current-context")
    return names, current if current in names else ""


@contextlib.contextmanager
def _errors_under(path: str) -> Iterator[None]:
    try:
        yield
    except errors.InvalidInput as error:
        raise error.under(path) from None


def _field_paths(cluster: str, user: str) -> dict[str, str]:
    """Return the paths in the file of the fields of Access."""
    return {
        "": user,
        "ca": f"{cluster}.certificate-authority-data",
        "tls_server_name": f"{cluster}.tls-server-name",
        "token": f"{user}.token",
        "certificate": f"{user}.client-certificate-data",
        "key": f"{user}.client-key-data",
    }


def service_account_access(
    environ: Mapping[str, str], *, folder: pathlib.Path = SERVICE_ACCOUNT
) -> Access:
    """Return the access of the pod of this process, with its service account.

    `environ` is the pod's environment (KUBERNETES_SERVICE_HOST and _PORT). The token's file is read
    for each request, because the kubelet replaces the token before it expires. Raises InvalidInput
    `not_in_cluster`.
    """
    host = environ.get("KUBERNETES_SERVICE_HOST", "")
    port = environ.get("KUBERNETES_SERVICE_PORT", "443")
    try:
        ca = (folder / "ca.crt").read_text()
        (folder / "token").read_text()
    except OSError:
        host = ""
    if not host:
        message = "this process does not run in a pod with a service account"
        raise errors.InvalidInput.for_field("", "not_in_cluster", message)
    bracketed = f"[{host}]" if ":" in host else host
    server = guard.parse_url(f"https://{bracketed}:{port}").url
    return Access(server, ca, token_file=str(folder / "token"))


# --- the parts of the file ------------------------------------------------------------------------


def _context(config: dict[str, Any], requested_name: str) -> tuple[str, dict[str, Any]]:
    name = requested_name or _text(config, "current-context")
    contexts_by_name = _entries_by_name(config, "contexts", "context")
    if name in contexts_by_name:
        return name, contexts_by_name[name]
    names = (
        ", ".join(sorted(errors.display_value(context_name) for context_name in contexts_by_name))
        or "none"
    )
    if name:
        message = f"there is no context {errors.display_value(name)}; there are: {names}"
    else:
        message = f"the file has no current context; choose one of: {names}"
    raise errors.InvalidInput.for_field("contexts", "context_missing", message, name)


def _entry(
    config: dict[str, Any], group: str, member: str, name: object
) -> tuple[str, dict[str, Any]]:
    entries_by_name = _entries_by_name(config, group, member)
    if isinstance(name, str) and name in entries_by_name:
        return errors.display_value(name), entries_by_name[name]
    message = f"the context names a {member} that is not in {group}"
    raise errors.InvalidInput.for_field(group, f"{member}_missing", message, name)


def _entries_by_name(config: dict[str, Any], group: str, member: str) -> dict[str, dict[str, Any]]:
    """Return the entries of a list of {name, member} by name; the first of a name counts, as in kubectl."""
    entries = config.get(group) or []
    bodies: dict[str, dict[str, Any]] = {}
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            body = entry.get(member) or {}
            if isinstance(body, dict):
                bodies.setdefault(entry["name"], body)
    return bodies


def _forbidden_fields(
    body: dict[str, Any], rules: Mapping[str, tuple[str, str]], path: str
) -> list[errors.FieldProblem]:
    # `false` and empty values have no effect. The message has no value, which may be a password.
    return [
        errors.FieldProblem(f"{path}.{key}", code, message.format(key))
        for key, (code, message) in rules.items()
        if body.get(key)
    ]


def _text(body: dict[str, Any], key: str) -> str:
    value = body.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise errors.InvalidInput.for_field(
            key, "text_expected", "a text is expected; put it in quotes"
        )
    return value


# --- PEM ------------------------------------------------------------------------------------------


def _pem(body: dict[str, Any], key: str) -> str:
    """Return the PEM string of a base64 field; "" if it is absent."""
    return decode_pem(_text(body, key), key)


def decode_pem(text: str, key: str) -> str:
    """Return the PEM string that is in base64. Raises InvalidInput bad_base64, bad_pem at `key`."""
    encoded = "".join(text.split())
    if not encoded:
        return ""
    try:
        raw = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise errors.InvalidInput.for_field(key, "bad_base64", "is not base64") from None
    if not _PEM_BLOCK.search(raw):
        raise errors.InvalidInput.for_field(key, "bad_pem", "is not PEM in base64")
    try:
        return raw.decode("ascii")
    except UnicodeDecodeError:
        raise errors.InvalidInput.for_field(key, "bad_pem", "is not PEM in base64") from None
