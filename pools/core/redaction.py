"""Removal of secrets from text that others wrote: answers of servers, errors, requests in logs.

Everything that is logged passes through `redact`, and so does every text of another server before it is stored
or shown. Repetitions in the patterns are bounded, so that no text makes matching slow.
"""

import base64
import html
import re
from collections.abc import Iterable
from typing import Any
from urllib import parse

HIDDEN = "[redacted]"
_SHORTEST = 6  # characters of an exact secret that is looked for: shorter ones are parts of words
_LONG, _PREFIX = (
    24,
    12,
)  # of a secret of this length, its beginning is looked for, as servers cut texts off
_ENCODINGS = 3  # layers, such as percent-encoded JSON with escapes

_PEM = re.compile(r"-----BEGIN[A-Z0-9 +]+-----.*?(?:-----END[A-Z0-9 +]+-----|\Z)", re.DOTALL)
# Values: quoted (perhaps cut off), a block of YAML, or a word, perhaps after the name of its scheme.
_QUOTED = r"""(?:"(?:[^"\\\n]|\\.)*(?:"|\\?(?=\n|\Z))|'(?:[^'\\\n]|\\.)*(?:'|\\?(?=\n|\Z)))"""
_BLOCK = r"[|>][0-9+-]{0,2}[ ]{0,20}(?:\n[ \t+][^\n]*)+"
_SCHEMES = r"(?:bearer|basic|token|apikey|negotiate)"
# Not what is redacted already, and not an encoded quote or block, which is found when it is decoded.
_NEW = r"(?![\s+]{0,20}(?:\[{0,2}redacted|[\\&]|[|>][0-9+-]{0,2}(?:[\s\\%]|\Z)))"
# `Authorization: Token abc`, `{'authorization': 'Bearer abc'}`, `map[Authorization:[Bearer abc]]`
_HEADER = re.compile(
    rf"""((?:authorization|cookie)["']?[\s+]{{0,20}}[:=][\s+]{{0,20}}\[?)(?:{_QUOTED}|{_BLOCK}"""
    rf"""|{_NEW}{_SCHEMES}[\s+]{{1,20}}(?:\[redacted\]|(?:\\{{0,4}}["'])?(?![\\&])[^\s"',;\]}})]+)"""
    rf"""|{_NEW}[^\s"'\\,;&]+(?=["'\n]|\Z)|{_NEW}[^\n]+)""",
    re.IGNORECASE,
)
# `token=abc`, `"client-key-data": "abc"`, `X-Amz-Signature=abc`, `spec.password: Invalid value: "abc"`
_PAIR = re.compile(
    r"""((?:password|passwd|passphrase|pwd|bindpw|token|secret|client-key|client-certificate-data"""
    r"""|(?:amz|goog)-(?:credential|signature)|(?:private|api|access)[_-]?key|session[_-]?id)"""
    r"""[\w-]{0,80}["']?[\s+]{0,20}(?:=>|[:=](?!>))[\s+]{0,20}(?:Invalid[ +]value:[\s+]{0,20})?\[?)"""
    rf"""(?:{_QUOTED}|{_BLOCK}|{_NEW}(?![\s+]{{0,20}}(?:Invalid[ +]value:|Required value|Forbidden:))"""
    rf"""(?:{_SCHEMES}[\s+]{{1,20}})?(?:\[redacted\]|(?![\\&])[^\s,;&"'}}\])]+))""",
    re.IGNORECASE,
)
# Only of URLs, because the names are words.
_PARAMETER = re.compile(r"([?&](?:key|sig|signature|auth|pass|jwt)=)[^\s&\"'<>]+", re.IGNORECASE)
_SCHEME = re.compile(
    rf"\b({_SCHEMES}(?:\s|\+){{1,20}}[\"']?)"
    r"(?:[A-Za-z0-9+/=._~-]{16,}|(?=[A-Za-z_+/=.~-]{0,15}[0-9])[A-Za-z0-9+/=._~-]{6,})",
    re.IGNORECASE,
)
_URL_PASSWORD = re.compile(
    r"(\b[a-z][a-z0-9+.-]{0,30}://[^\s:/@]{0,256}:)(?:[^\s\"'<>]{1,2048}|[^\s@]{1,2048})(@)",
    re.IGNORECASE,
)
_URL_TOKEN = re.compile(r"(\b[a-z][a-z0-9+.-]{0,30}://)[^\s:/@]{16,1024}(@)", re.IGNORECASE)
# Their form shows them: JSON Web Tokens; tokens of Cadastre, NetBox, OpenShift, GitHub, GitLab, Slack.
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:eyJ[\w=-]{10,}(?:\.[\w=-]*)*|cadw?_[\w-]{8,}|nbt_[\w-]{6,}(?:\.[\w-]+)?"
    r"|sha256~[\w-]{16,}|gh[oprsu]_\w{16,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,})",
    re.IGNORECASE,
)
# The key in the URL of an admission webhook, valid or not.
_WEBHOOK = re.compile(r"(/webhooks/v\d+/[^/\s]+/)[^/\s]+(/(?:validate|mutate)-)")
# The link by which a user sets a password, in an access log.
_SET_PASSWORD = re.compile(r"(/set-password/[^/\s]+/)(?!set-password/)[^/\s]+(/)")
# Of a request line as urllib3 logs it: the query of a webhook's URL may be its secret.
_POSTED_QUERY = re.compile(r"""("POST [^"\s?]{1,2000}\?)[^"\s]{1,4000}""")
_JSON_ESCAPE = re.compile(r"""\\(?:u([0-9a-fA-F]{4})|(["'/\\nrt]))""")
# A text without any of these has no secret that the patterns would find: most texts.
_HINTS = (
    "authorization", "cookie", "pass", "pwd", "bindpw", "token", "secret", "key", "session", "certificate-data", "amz", "goog", "sig=",
    "signature", "auth=", "jwt", "bearer", "basic", "negotiate", "://", "webhooks/", "post ", "-----begin", "eyj",
    "cad_", "cadw_", "nbt_", "sha256~", "gho_", "ghp_", "ghr_", "ghs_", "ghu_", "glpat-", "xox", "\\", "%", "&",
)  # fmt: skip
_WHITESPACE = {"n": "\n", "r": "\r", "t": "\t"}


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return a text without passwords, tokens, cookies, private keys, and without the given exact secrets.

    A text whose secrets appear only when it is decoded (JSON, percent-encoding, HTML) is returned decoded.
    """
    patterns = [pattern for secret in secrets for pattern in _patterns_of(secret)]
    lowered = text.lower()
    if not patterns and not any(hint in lowered for hint in _HINTS):
        return text
    text = decoded = _redact(text, patterns)
    for _ in range(_ENCODINGS):
        encoded, decoded = decoded, _decode(decoded)
        if decoded == encoded:
            break
        redacted = _redact(decoded, patterns)
        if redacted != decoded:
            text = decoded = redacted
    return text


def redact_values(value: Any) -> Any:
    """Return JSON with every string in it redacted."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: redact_values(item) for key, item in value.items()}
    return [redact_values(item) for item in value] if isinstance(value, list | tuple) else value


def _redact(text: str, patterns: Iterable[re.Pattern[str]]) -> str:
    for pattern in (*patterns, _PEM):
        text = pattern.sub(HIDDEN, text)
    for pattern in (_HEADER, _PAIR, _PARAMETER, _SCHEME, _POSTED_QUERY):
        text = pattern.sub(rf"\1{HIDDEN}", text)
    for pattern in (_URL_PASSWORD, _URL_TOKEN, _WEBHOOK, _SET_PASSWORD):
        text = pattern.sub(rf"\1{HIDDEN}\2", text)
    return _TOKEN.sub(HIDDEN, text)


def _patterns_of(secret: str) -> list[re.Pattern[str]]:
    """Return patterns that find a secret as it is, in Base64 and in a form."""
    if len(secret) < _SHORTEST:
        return []
    base = base64.b64encode(secret.encode()).decode().rstrip("=")
    url_safe = base.translate(str.maketrans("+/", "-_"))
    forms = dict.fromkeys([secret, base, url_safe, parse.quote_plus(secret)])
    patterns = [re.compile(re.escape(form)) for form in forms]
    if len(secret) >= _LONG and not secret.startswith("-----"):
        patterns.append(re.compile(rf"{re.escape(secret[:_PREFIX])}[A-Za-z0-9+/=._~-]*"))
    return patterns


def _decode(text: str) -> str:
    """Return a text with one layer of JSON escapes, percent-encoding and HTML entities removed."""
    if "\\" in text:
        text = _JSON_ESCAPE.sub(_unescape, text)
    if "%" in text:
        text = parse.unquote(text, errors="replace")
    return html.unescape(text) if "&" in text else text


def _unescape(match: re.Match[str]) -> str:
    char = _WHITESPACE.get(match[2], match[2]) or chr(int(match[1], 16))
    return char if not "\ud800" <= char <= "\udfff" else "\ufffd"
