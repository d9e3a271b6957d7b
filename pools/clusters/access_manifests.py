"""What an administrator of a cluster applies so that Cadastre may read it, or write to it: the files of deploy/kubernetes."""

from __future__ import annotations

import functools
from typing import Any

from django.conf import settings

from pools.models.connections import Mode

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
