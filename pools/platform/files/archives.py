"""File type detection by content, and safe opening of ZIP archives."""

import io
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from pools.core import errors

LARGEST = 20 * 1024 * 1024  # bytes of a file
MOST_UNPACKED = 50 * 1024 * 1024  # bytes of all members that are read as a whole
MOST_STREAMED = 400 * 1024 * 1024  # bytes of all members: 100,000 rows of RVTools' 93 columns
HIGHEST_RATIO = 100
SMALL = 1024 * 1024  # unpacked bytes up to which the ratio is not checked
MOST_MEMBERS = 2000

STREAMED = re.compile(r"worksheets/[^/]*\.xml$|\.(?:csv|txt|tsv)$", re.IGNORECASE)
ZIP = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_FOREIGN = {
    b"\x1f\x8b": "a gzip archive; unpack it first",
    b"BZh": "a bzip2 archive; unpack it first",
    b"\xfd7zXZ": "an xz archive; unpack it first",
    b"7z\xbc\xaf": "a 7z archive; unpack it first",
    b"Rar!": "a RAR archive; unpack it first",
    b"%PDF": "a PDF document; export the table as CSV or XLSX",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
    b"\x7fELF": "a program",
    b"MZ\x90": "a program",
}


def file_error(code: str, message: str, value: object = "") -> errors.InvalidInput:
    return errors.InvalidInput.for_field("file", code, message, value)


def check_kind(content: bytes) -> None:
    """Check the size and the type of a file by its content.

    Raises InvalidInput empty, too_large, encrypted, legacy_format, unsupported_file.
    """
    if len(content) > LARGEST:
        raise file_error("too_large", f"a file may have at most {LARGEST // 1024**2} MiB")
    if not content.strip(b" \t\r\n\0\xef\xbb\xbf\xff\xfe"):
        raise file_error("empty", "the file is empty")
    if content.startswith(_OLE):
        if _ENCRYPTED in content:
            raise file_error("encrypted", "the workbook has a password; save it without one")
        raise file_error("legacy_format", "an .xls file of Excel 97-2003; save it as .xlsx or CSV")
    for magic, description in _FOREIGN.items():
        if content.startswith(magic):
            raise file_error("unsupported_file", f"the file is {description}")


@contextmanager
def open_archive(content: bytes) -> Iterator[zipfile.ZipFile]:
    """Open a ZIP archive after checking the sizes in its directory (zipfile reads no more than these).

    Sheets and tables are streamed, so they may be larger than other members.

    Raises InvalidInput zip_bomb, encrypted, damaged.
    """
    with translate_errors(), zipfile.ZipFile(io.BytesIO(content)) as archive:
        _check(archive.infolist(), len(content))
        yield archive


@contextmanager
def translate_errors() -> Iterator[None]:
    """Translate the errors that zipfile raises for damaged archives to InvalidInput `damaged`."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError) as error:
        raise file_error(
            "damaged", "the archive is damaged, or its compression method is not supported"
        ) from error
    except (OSError, KeyError, ValueError, OverflowError, RuntimeError, struct.error) as error:
        raise file_error("damaged", "the archive is damaged") from error


def _check(members: list[zipfile.ZipInfo], packed_size: int) -> None:
    if len(members) > MOST_MEMBERS:
        raise file_error("zip_bomb", f"the archive has more than {MOST_MEMBERS} members")
    if any(member.flag_bits & 1 for member in members):
        raise file_error("encrypted", "the archive has a password; save it without one")
    buffered_size = sum(
        member.file_size for member in members if not STREAMED.search(member.filename)
    )
    total_size = sum(member.file_size for member in members)
    if buffered_size > MOST_UNPACKED or total_size > MOST_STREAMED:
        limit = (MOST_UNPACKED if buffered_size > MOST_UNPACKED else MOST_STREAMED) // 1024**2
        raise file_error("zip_bomb", f"the archive unpacks to more than {limit} MiB")
    if total_size > max(SMALL, HIGHEST_RATIO * packed_size):
        raise file_error(
            "zip_bomb", f"the archive unpacks to more than {HIGHEST_RATIO} times its size"
        )
    for member in members:
        if member.file_size > max(SMALL, HIGHEST_RATIO * member.compress_size):
            message = f"a part unpacks to more than {HIGHEST_RATIO} times its size"
            raise file_error("zip_bomb", message, member.filename)
