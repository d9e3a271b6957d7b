"""Debian's slapd as a process of the tests."""

import base64
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping

import pytest

from ipam_site.supervisor import processes
from tests import eventually
from tests.kube.certificates import Authority

BASE = "dc=example,dc=org"
ADMIN, PASSWORD = f"cn=admin,{BASE}", "of the service account"
_SLAPD = "/usr/sbin/slapd"
_CONFIG = """
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
attributetype ( 1.2.840.113556.1.4.2 NAME 'objectGUID' SYNTAX 1.3.6.1.4.1.1466.115.121.1.40 SINGLE-VALUE )
objectclass ( 1.2.840.113556.1.5.9 NAME 'user' AUXILIARY MAY objectGUID )
TLSCertificateFile {folder}/server.crt
TLSCertificateKeyFile {folder}/server.key
security ssf=128
database mdb
suffix "{base}"
rootdn "{admin}"
rootpw "{password}"
directory {folder}/data
"""


class Directory:
    def __init__(self, folder: pathlib.Path) -> None:
        self.url = f"ldaps://127.0.0.1:{processes.free_port()}"
        self.plain_url = f"ldap://127.0.0.1:{processes.free_port()}"
        self.ca_file = str(folder / "ca.pem")
        self._folder = folder

    def set_groups(self, members: Mapping[str, list[str]]) -> None:
        """Replace all groups; a member that is a group's name is this group."""
        entries = []
        for group, names in members.items():
            listed = [
                f"cn={name},ou=groups,{BASE}" if name in members else f"uid={name},ou=people,{BASE}"
                for name in names
            ]
            entries.append(
                f"dn: cn={group},ou=groups,{BASE}\nobjectClass: groupOfNames\ncn: {group}\n"
                + "".join(f"member: {dn}\n" for dn in listed)
            )
        self._run("ldapdelete", "-r", f"ou=groups,{BASE}")
        self.add(f"dn: ou=groups,{BASE}\nobjectClass: organizationalUnit\nou: groups\n", *entries)

    def add_person(self, name: str, guid: bytes = b"") -> None:
        """Add a person with the password `right`, and with an objectGUID as in Active Directory."""
        text = (
            f"dn: uid={name},ou=people,{BASE}\nobjectClass: inetOrgPerson\nobjectClass: user\nuid: {name}\n"
            f"cn: {name}\nsn: {name}\nmail: {name}@example.org\nuserPassword: right\n"
        )
        self.add(f"{text}objectGUID:: {base64.b64encode(guid).decode()}\n" if guid else text)

    def rename_person(self, name: str, new_name: str) -> None:
        result = self._run("ldapmodrdn", "-r", f"uid={name},ou=people,{BASE}", f"uid={new_name}")
        assert result.returncode == 0, result.stderr

    def remove_person(self, name: str) -> None:
        result = self._run("ldapdelete", f"uid={name},ou=people,{BASE}")
        assert result.returncode == 0, result.stderr

    def add(self, *entries: str) -> None:
        result = self._run("ldapadd", text="\n".join(entries))
        assert result.returncode == 0, result.stderr

    def _run(
        self, command: str, *arguments: str, text: str = ""
    ) -> subprocess.CompletedProcess[str]:
        access = ["-x", "-H", self.url, "-D", ADMIN, "-w", PASSWORD]
        return subprocess.run(
            [command, *access, *arguments],
            input=text,
            env=os.environ | {"LDAPTLS_CACERT": self.ca_file},
            capture_output=True,
            text=True,
            check=False,
        )


@contextlib.contextmanager
def running(folder: pathlib.Path) -> Iterator[Directory]:
    if not (pathlib.Path(_SLAPD).exists() and shutil.which("ldapadd")):
        pytest.skip("LDAP needs slapd (Debian: apt-get install slapd ldap-utils)")
    authority = Authority()
    (folder / "ca.pem").write_text(authority.pem)
    authority.server().files(folder, "server")
    (folder / "data").mkdir()
    config = _CONFIG.format(folder=folder, base=BASE, admin=ADMIN, password=PASSWORD)
    (folder / "slapd.conf").write_text(config)
    directory = Directory(folder)
    urls = f"{directory.url} {directory.plain_url}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [_SLAPD, "-d", "0", "-f", str(folder / "slapd.conf"), "-h", urls],
            stdout=log,
            stderr=log,
            preexec_fn=processes.die_with_parent(signal.SIGKILL),
        )
    try:
        eventually.until(lambda: _listens(directory, process, folder))
        directory.add(
            f"dn: {BASE}\nobjectClass: dcObject\nobjectClass: organization\ndc: example\no: e\n",
            f"dn: ou=people,{BASE}\nobjectClass: organizationalUnit\nou: people\n",
        )
        for name in ("ada", "vera", "eve", "root"):
            directory.add_person(name)
        yield directory
    finally:
        process.kill()
        process.wait(60)


def _listens(directory: Directory, process: subprocess.Popen[bytes], folder: pathlib.Path) -> bool:
    assert process.poll() is None, (folder / "log").read_text()
    port = int(directory.url.rpartition(":")[2])
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
        return True
    return False
