"""One line on the kinds that a cluster serves, and the data that is shown because of them."""

from __future__ import annotations

from pools.models import Connection

_NOT_KNOWN = "The served kinds are known after the first full sync."
_NOTHING = (
    "The cluster serves none of the kinds that Cadastre reads. Only data of the register is shown."
)


def served_versions(connection: Connection) -> dict[str, str] | None:
    """Return the apiVersion of each kind that the cluster serves; None before the first full sync."""
    if connection.served is None:
        return None
    return {
        kind: read["api_version"] for kind, read in connection.served.items() if read["api_version"]
    }


def describe(connection: Connection) -> str:
    """Return the line for the pages of the cluster."""
    if connection.served is None:
        return _NOT_KNOWN
    shown: dict[str, list[str]] = {}
    absent: dict[str, None] = {}
    for kind, read in connection.served.items():
        if read["api_version"]:
            version = read["api_version"].rpartition("/")[2]
            shown.setdefault(read["shows"], []).append(f"{kind} {version}")
        else:
            absent[read["shows"]] = None
    if not shown:
        return _NOTHING
    listed = "; ".join(f"{subject} ({', '.join(kinds)})" for subject, kinds in shown.items())
    missing = ", ".join(subject for subject in absent if subject not in shown)
    return f"Shown: {listed}." + (f" Not served, so not shown: {missing}." if missing else "")
