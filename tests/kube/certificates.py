"""A throw-away certificate authority, for the API servers of the tests and for their callers."""

import datetime
import ipaddress
import pathlib
import ssl
import tempfile
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_YEAR = datetime.timedelta(days=365, hours=-1)  # never a full year after a test began
_LOCAL = [
    x509.DNSName("localhost"),
    x509.DNSName("kubernetes.default.svc"),
    x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    x509.IPAddress(ipaddress.ip_address("::1")),
]


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, both PEM text."""

    certificate: str
    key: str

    def files(self, folder: pathlib.Path, name: str) -> tuple[str, str]:
        """Written to `<name>.crt` and `<name>.key`; the two paths."""
        paths = folder / f"{name}.crt", folder / f"{name}.key"
        for path, text in zip(paths, (self.certificate, self.key), strict=True):
            path.write_text(text)
        return str(paths[0]), str(paths[1])

    def load_into(self, context: ssl.SSLContext) -> None:
        """ssl reads certificates from files only."""
        with tempfile.TemporaryDirectory() as folder:
            context.load_cert_chain(*self.files(pathlib.Path(folder), "pair"))


def _pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


def _text(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


class Authority:
    """Signs server certificates for this machine and client certificates for user names."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        self._certificate = (
            self._unsigned(self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(
                x509.KeyUsage(
                    digital_signature=True,
                    key_cert_sign=True,
                    crl_sign=True,
                    content_commitment=False,
                    key_encipherment=False,
                    data_encipherment=False,
                    key_agreement=False,
                    encipher_only=False,
                    decipher_only=False,
                ),
                critical=True,
            )
            .sign(self._key, hashes.SHA256())
        )
        self.pem = _text(self._certificate)

    def _unsigned(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + _YEAR)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )

    def _sign(
        self, name: x509.Name, usage: x509.ObjectIdentifier, names: list[x509.GeneralName]
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._unsigned(name, key).add_extension(
            x509.ExtendedKeyUsage([usage]), critical=False
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return Pair(_text(builder.sign(self._key, hashes.SHA256())), _pem(key))

    def server(self) -> Pair:
        """For 127.0.0.1, ::1, localhost and kubernetes.default.svc."""
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test server")])
        return self._sign(name, ExtendedKeyUsageOID.SERVER_AUTH, list(_LOCAL))

    def client(self, user: str, groups: tuple[str, ...] = ()) -> Pair:
        """Kubernetes takes the common name for the user, the organisations for its groups."""
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, user))
        return self._sign(x509.Name(attributes), ExtendedKeyUsageOID.CLIENT_AUTH, [])

    def key_pair(self) -> tuple[str, str]:
        """A signing key for service account tokens: private and public PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return _pem(key), public.decode()
