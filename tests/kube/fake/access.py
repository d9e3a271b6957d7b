"""Who may do what: tokens, client certificates, and rules in the shape of a ClusterRole's."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

Rule = dict[str, list[str]]
"""`apiGroups`, `resources`, `verbs`, `resourceNames`, `nonResourceURLs`, as in rbac.authorization.k8s.io/v1."""

ANONYMOUS = "system:anonymous"
MASTERS = "system:masters"
# What every authenticated user may: the roles system:discovery and system:basic-user.
_EVERYBODY: list[Rule] = [
    {
        "nonResourceURLs": ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"],
        "verbs": ["get"],
    },
    {
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["selfsubjectaccessreviews"],
        "verbs": ["create"],
    },
]
_PUBLIC = {"/version", "/version/", "/healthz", "/livez", "/readyz"}


@dataclass(frozen=True)
class User:
    name: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Question:
    """One access: a resource (`ciliumnodes/status` with its subresource), or a path."""

    verb: str
    group: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


def _any(value: str, allowed: list[str]) -> bool:
    return value in allowed or "*" in allowed


def _path_matches(path: str, pattern: str) -> bool:
    return path == pattern or (pattern.endswith("*") and path.startswith(pattern[:-1]))


def allows(rule: Rule, question: Question) -> bool:
    if not _any(question.verb, rule.get("verbs", [])):
        return False
    if question.path:
        return any(_path_matches(question.path, item) for item in rule.get("nonResourceURLs", []))
    names = rule.get("resourceNames", [])
    return (
        _any(question.group, rule.get("apiGroups", []))
        and _any(question.resource, rule.get("resources", []))
        and (not names or question.name in names)
    )


@dataclass
class Accounts:
    """The users of one server."""

    tokens: dict[str, User] = field(default_factory=dict)
    rules: dict[str, list[Rule]] = field(default_factory=dict)

    def token(self, user: User) -> str:
        token = secrets.token_urlsafe(24)
        self.tokens[token] = user
        return token

    def who(self, authorization: str, certificate: dict[str, Any]) -> User | None:
        """The user of a request; None when its token is not known."""
        if authorization:
            kind, _, token = authorization.partition(" ")
            return self.tokens.get(token.strip()) if kind.lower() == "bearer" else None
        pairs = [pair for part in certificate.get("subject", ()) for pair in part]
        name = next((value for key, value in pairs if key == "commonName"), "")
        if not name:
            return User(ANONYMOUS)
        return User(name, tuple(value for key, value in pairs if key == "organizationName"))

    def may(self, user: User, question: Question) -> bool:
        if MASTERS in user.groups or question.path in _PUBLIC:
            return True
        own_rules = self.rules.get(user.name, [])
        shared_rules = [] if user.name == ANONYMOUS else _EVERYBODY
        return any(allows(rule, question) for rule in [*own_rules, *shared_rules])

    def refusal(self, user: User, question: Question) -> str:
        """What a 403 says."""
        if question.path:
            return f'forbidden: User "{user.name}" cannot {question.verb} path "{question.path}"'
        where = f'in the namespace "{question.namespace}"' if question.namespace else ""
        return (
            f'User "{user.name}" cannot {question.verb} resource "{question.resource}" in API group'
            f' "{question.group}" {where or "at the cluster scope"}'
        )
