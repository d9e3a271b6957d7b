"""Cadastre itself over TLS in threads of this process, for API servers that ask it."""

import contextlib
import pathlib
import socketserver
import wsgiref.simple_server
from collections.abc import Iterator
from typing import Any

import yaml
from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.urls import get_resolver

from ipam_site import tls
from tests import commands, servers
from tests.kube.certificates import Authority


class _Server(socketserver.ThreadingMixIn, wsgiref.simple_server.WSGIServer):
    daemon_threads = False

    def finish_request(self, request: Any, client_address: Any) -> None:
        try:
            super().finish_request(request, client_address)
        finally:
            connection.close()  # this thread's


class _Handler(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextlib.contextmanager
def serving(folder: pathlib.Path) -> Iterator[str]:
    """The site over TLS in threads of this process; its URL. Its authority is `ca.pem`."""
    authority = Authority()
    (folder / "ca.pem").write_text(authority.pem)
    files = tls.from_paths(*authority.server().files(folder, "server"), "")
    assert files is not None
    # Imported here: the first caller, an API server, waits for a few seconds only.
    assert get_resolver().url_patterns
    server = wsgiref.simple_server.make_server(
        "127.0.0.1", 0, get_wsgi_application(), server_class=_Server, handler_class=_Handler
    )
    server.socket = files.context().wrap_socket(server.socket, server_side=True)
    with servers.in_thread(server):
        yield f"https://127.0.0.1:{server.server_port}"


@contextlib.contextmanager
def asked_by(api_server: Any, cluster: str, folder: pathlib.Path, *hooks: str) -> Iterator[None]:
    """The site, and an API server that has the configurations that the command prints for these webhooks."""
    with serving(folder) as url:
        printed = commands.output(
            "webhook",
            cluster,
            "--new-key",
            "--print-manifest",
            *(f"--only={hook}" for hook in hooks),
            f"--url={url}",
            f"--ca={folder / 'ca.pem'}",
            "--failure-policy=Fail",
        )
        for document in yaml.safe_load_all(printed):
            api_server.put(document)
        yield
