"""Whatever is given: a reading, or InvalidInput with a code; never anything else, and never a hang."""

import random
from collections.abc import Callable, Sequence

import hypothesis
import pytest
from hypothesis import strategies as st

from claims.core.vm_import import cells
from claims.imports import formats
from pools.core import errors
from tests import effort
from tests.claims.imports import corpus

ANY_TEXT = st.text(st.characters(exclude_categories=()))
CELL = st.one_of(
    st.text("0123456789abcdefABCDEF.:/-,;|% \t\n'\"=\u00a0\u200b\u0661\u00b2", max_size=40),
    st.sampled_from([corpus.mac(1), "10.0.0.1", "10.0.0.1 /24", "fe80::1", "2001:db8::1", "True"]),
    ANY_TEXT,
)
COLUMNS = [*corpus.VNETWORK[:14], *corpus.SHAPE_5, *corpus.VINFO, "Namespace", "Note", ""]
HEADERS = st.lists(st.sampled_from(COLUMNS), max_size=14)
NAMES = [
    "name",
    "nics",
    "guestNetworks",
    "mac",
    "ip",
    "prefix",
    "network",
    "addresses",
    "ipAddress",
    "kind",
    "metadata",
    "spec",
    "entries",
    "items",
    "vms",
    "rows",
    "ips",
    "vm",
    "status",
    "object",
    "apiVersion",
    "network-name",
    "deviceKey",
    "deviceConfigId",
    "isTemplate",
    "labels",
]
WORDS = st.sampled_from(
    ["IPPool", "IPAMClaim", "List", "Plan", "forklift.konveyor.io/v1beta1", "prod"]
)
JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS | CELL,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6)
    ),
    max_leaves=30,
)


def _survives(opened: Callable[[], formats.FileReading]) -> None:
    try:
        for item in opened().rows():
            assert item.row > 0
            assert not item.refused or item.problems
            _can_be_told(item.problems)
    except errors.InvalidInput as error:
        problems = error.problems
    else:
        return
    assert problems
    _can_be_told(problems)


def _can_be_told(problems: Sequence[errors.FieldProblem]) -> None:
    for problem in problems:
        assert problem.code.isidentifier()
        assert problem.message.encode()
        assert len(problem.value) <= errors.VALUE_SHOWN


@hypothesis.given(st.binary() | ANY_TEXT.map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_bytes(content: bytes) -> None:
    _survives(lambda: formats.open_file(content))


@hypothesis.given(ANY_TEXT | st.lists(st.lists(CELL, max_size=4).map(" ".join)).map("\n".join))
def test_pasted_texts(text: str) -> None:
    _survives(lambda: corpus.from_text(text))


@hypothesis.given(
    HEADERS, st.lists(st.lists(CELL, max_size=15), max_size=6), st.sampled_from(",;\t")
)
def test_tables(header: list[str], rows: list[list[str]], delimiter: str) -> None:
    text = corpus.to_csv([header, *rows], delimiter=delimiter)
    _survives(lambda: formats.open_file(text.encode("utf-8", "surrogatepass")))


@hypothesis.given(JSON_LIKE, st.sampled_from(["vms", "rows", "items", ""]))
def test_documents(value: object, under: str) -> None:
    _survives(lambda: formats.open_file(corpus.to_json({under: value} if under else value)))
    _survives(lambda: corpus.from_rows(value))  # type: ignore[arg-type]
    _survives(lambda: formats.open_file(corpus.to_json([corpus.vsphere_vm(nics=value)])))
    _survives(lambda: formats.open_file(corpus.to_json(corpus.vsphere_vm(guestNetworks=value))))


@hypothesis.given(st.lists(CELL, min_size=1, max_size=3), st.lists(CELL, max_size=3))
def test_cells(texts: list[str], prefixes: list[str]) -> None:
    addresses = cells.parse_addresses(*texts, prefixes=prefixes)
    assert addresses.unread <= bool(addresses.problems)
    again = cells.parse_addresses(", ".join(addresses.ips))
    assert addresses.unread or again.ips == addresses.ips


WHOLE = {
    "xlsx": corpus.rvtools_xlsx(20),
    "zip": corpus.to_zip({"a.csv": corpus.rvtools_csv(20), "b.csv": b"VM,MAC,IP\r\n"}),
    "csv": corpus.rvtools_csv(5),
    "json": corpus.to_json([corpus.vsphere_vm(n) for n in range(1, 4)]),
    "yaml": corpus.ippool(f'"{corpus.mac(1)}": [10.0.0.1/24]').encode(),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_damaged_files(kind: str) -> None:
    chance = random.Random(kind)  # noqa: S311
    for _ in range(150):
        content = bytearray(WHOLE[kind])
        for _ in range(chance.choice([1, 1, 3, 20])):
            content[chance.randrange(len(content))] = chance.randrange(256)
        if chance.random() < 0.2:
            del content[chance.randrange(len(content)) :]
        _survives(lambda content=bytes(content): formats.open_file(content))


@pytest.mark.sample(3)
@pytest.mark.parametrize("part", ["xl/worksheets/sheet1.xml", "xl/workbook.xml", "xl/styles.xml"])
def test_damaged_parts_of_workbooks(part: str) -> None:
    chance = random.Random(part)  # noqa: S311
    words = [b"<c>", b'r="', b"<v>", b"&amp;", b"<!DOCTYPE a>", b"<is><t>", b't="s"', b"\xff"]
    words.append(b"9" * 400)
    whole = corpus.member(WHOLE["xlsx"], part)
    for _ in range(60):
        at = chance.randrange(len(whole))
        cut = whole[:at] + chance.choice(words) + whole[at + chance.randrange(4) :]
        _survives(lambda cut=cut: formats.open_file(corpus.replaced(WHOLE["xlsx"], {part: cut})))


MIB = 1024 * 1024
NICS = [{"mac": corpus.mac(n), "deviceKey": n} for n in range(60_000)]
GUESTS = [{"mac": corpus.mac(n), "ip": "10.0.0.1"} for n in reversed(range(60_000))]
HEAVY = {
    "blanks in a cell": b"VM,MAC,IP\r\na,b," + b" " * 131_000 + b"\r\n" + b"a,b,c\r\n",
    "slashes": b"VM,MAC,IP\r\na,b," + b"/ " * 65_000 + b"\r\n",
    "commas": b'VM,MAC,IP\r\na,b,"' + b"," * 131_000 + b'"\r\n',
    "one line": b"VM,MAC,IP" + b",a" * 2 * MIB,
    "blank lines": b"VM,MAC,IP\r\n" + b"\n" * 19 * MIB,
    "one quote": b'"' + b"a" * 19 * MIB,
    "no end": b"a" * 19 * MIB,
    "many macs": b"VM,MAC,IP\r\n" + (b'a,"' + b"00:50:56:00:00:01," * 64 + b'",x\r\n') * 3000,
    "one VM of neighbours": b"VM,MAC,IP,Network\r\n"
    + b"".join(b"a,00:50:56:00:00:01,10.%d.%d.9,n\r\n" % (n >> 8, n & 255) for n in range(50_000)),
    "many interfaces": corpus.to_json({"name": "a", "nics": NICS, "guestNetworks": GUESTS}),
    "brackets": b"[" * 19 * MIB,
    "members": corpus.to_zip({f"{n}.csv": b"VM,MAC,IP\r\na,b,c\r\n" for n in range(1_500)}),
}


@pytest.mark.sample(12)
@pytest.mark.parametrize("case", HEAVY)
def test_nothing_takes_long(case: str) -> None:
    with effort.at_most(15_000):
        _survives(lambda: formats.open_file(HEAVY[case]))
