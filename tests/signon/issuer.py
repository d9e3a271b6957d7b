"""An issuer of the tests that answers whatever a test wants, also what no provider would."""

import contextlib
import http.server
import json
import pathlib
import ssl
import time
import urllib.parse
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from django.test import Client
from jwt import algorithms

from tests import servers
from tests.kube.certificates import Authority

CLIENT = "cadastre-RS256"


class Key:
    """A key pair of an issuer, RSA or P-256."""

    def __init__(self, kid: str, algorithm: str = "RS256") -> None:
        self.kid = kid
        self._kind: Any = (
            algorithms.ECAlgorithm if algorithm == "ES256" else algorithms.RSAAlgorithm
        )
        self.private: Any = (
            ec.generate_private_key(ec.SECP256R1())
            if algorithm == "ES256"
            else rsa.generate_private_key(65537, 2048)
        )

    def public(self) -> dict[str, str]:
        return {**self._kind.to_jwk(self.private.public_key(), as_dict=True), "kid": self.kid}


class Issuer:
    """`documents` are answered by path; `issue` makes the answer of the token endpoint."""

    def __init__(self, url: str, ca_file: str) -> None:
        self.url, self.ca_file = url, ca_file
        self.keys = {
            "RS256": Key("rsa"),
            "ES256": Key("ec", "ES256"),
        }
        self.documents: dict[str, Any] = {
            "/.well-known/openid-configuration": {
                "issuer": url,
                "authorization_endpoint": f"{url}/auth",
                "token_endpoint": f"{url}/token",
                "jwks_uri": f"{url}/jwks",
                # What a careless provider would allow.
                "id_token_signing_alg_values_supported": ["none", "HS256", "RS256", "ES256"],
            }
        }
        self.publish(*self.keys.values())
        self.is_broken = False
        self.authorizations: list[str] = []  # of the requests to the token endpoint; "" without one

    def publish(self, *keys: Key) -> None:
        self.documents["/jwks"] = {"keys": [key.public() for key in keys]}

    def claims(self, begun: str, **claims: Any) -> dict[str, Any]:
        """Claims that would be accepted, for the redirect of a sign-in; None leaves one out, a timedelta is a time."""
        now = int(time.time())
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(begun).query))
        good = {
            "iss": self.url,
            "aud": CLIENT,
            "sub": "u1",
            "exp": now + 300,
            "iat": now,
            "nonce": query["nonce"],
            "preferred_username": "ada",
            "groups": ["auditors"],
        }
        return {
            key: now + int(value.total_seconds()) if isinstance(value, timedelta) else value
            for key, value in (good | claims).items()
            if value is not None
        }

    def sign(self, claims: dict[str, Any], algorithm: str = "RS256", key: Key | None = None) -> str:
        key = key or self.keys[algorithm]
        # Not by jwt.encode, which refuses claims that no provider may send.
        text = json.dumps(claims).encode()
        return jwt.PyJWS().encode(text, key.private, algorithm, headers={"kid": key.kid})

    def issue(self, id_token: str | None) -> None:
        answer = {"access_token": "a", "token_type": "Bearer", "expires_in": 60}
        self.documents["/token"] = answer | ({"id_token": id_token} if id_token else {})


def begin(client: Client) -> str:
    """Return the redirect to the provider."""
    return str(client.get("/sign-on/", secure=True).headers["Location"])


def come_back(client: Client, begun: str, **more: str) -> Any:
    """Return the response to the provider's answer."""
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(begun).query))
    answer = {"code": "c", "state": query["state"]} | more
    return client.get("/sign-on/callback/", answer, secure=True)


class _Handler(http.server.BaseHTTPRequestHandler):
    issuer: Issuer

    def do_GET(self) -> None:
        document = self.issuer.documents.get(self.path)
        status = 500 if self.issuer.is_broken else 404 if document is None else 200
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.issuer.authorizations.append(self.headers.get("Authorization", ""))
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def running(folder: pathlib.Path) -> Iterator[Issuer]:
    authority = Authority()
    (folder / "ca.pem").write_text(authority.pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.server().load_into(context)
    handler = type("Handler", (_Handler,), {})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    handler.issuer = Issuer(f"https://localhost:{server.server_port}", str(folder / "ca.pem"))
    with servers.in_thread(server):
        yield handler.issuer
