"""YAML and JSON documents, parsed so strictly that a text has only one meaning.

Other loaders take the last of two equal keys, turn `no` into false and `11:22:33:44:55:06` into a number,
expand aliases without limit and crash on deep nesting. Here YAML is built from the parser's events, with the
scalars of YAML 1.2 (decimal numbers, true, false, null), and JSON through the hooks of Python's parser. Both
put a flaw in the place of a bad value, and then report all flaws with their paths.
"""

import codecs
import json
import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from pools.core import errors
from pools.core.object_reader import RepeatedKey

LARGEST = 2 * 1024 * 1024  # bytes
DEEPEST = 32  # objects and lists inside each other
LONGEST_NUMBER = 40  # characters; the largest IPv6 address has 39 digits
MOST_PROBLEMS = 100

# The C parser is some ten times faster; both give the same events.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_BOMS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
_JSON_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]|[\]}]', re.DOTALL)
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")  # PostgreSQL's text and jsonb refuse them
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_CONSTANTS: dict[str, bool | None] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


@dataclass(frozen=True)
class Document:
    """A document of a YAML text: its number from 0, its first line from 1, its object (or another of `roots`)."""

    index: int
    line: int
    data: dict[str, Any]


@dataclass(frozen=True)
class _Flaw:
    """A problem in the place of a value."""

    code: str
    message: str


class _RepeatedKey(RepeatedKey):
    """The values of a repeated key, and the flaw that it is unless the key is repeatable."""

    def __init__(self, first: object, flaw: _Flaw) -> None:
        super().__init__([first])
        self.flaw = flaw


Path = tuple[str, ...]


def load_yaml(
    text: str | bytes,
    *,
    limit: int = LARGEST,
    repeatable: Collection[Path] = (),
    roots: tuple[type, ...] = (dict,),
) -> list[Document]:
    """Return the documents of a YAML text, which must be objects (`roots`); empty documents are skipped.

    Keys are the strings as written. The objects at the paths `repeatable` (within a document) may repeat a
    key, whose values become Repeated. Raises InvalidInput: too_large, encoding, yaml_syntax and too_deep
    (with the line), object_expected, duplicate_key, anchors_not_allowed (also for aliases and merge keys),
    tags_not_allowed, key_not_text, not_finite, bad_number. Paths begin with `documents.N` if the text has
    several documents.
    """
    trees = [tree for tree in _trees(_decoded(text, limit)) if tree.root is not None]
    if not trees:
        raise errors.InvalidInput.for_field(
            "", "object_expected", "there is no document in the text"
        )
    problems: list[errors.FieldProblem] = []
    for index, tree in enumerate(trees):
        prefix = ("documents", str(index)) if len(trees) > 1 else ()
        problems += _problems(tree.root, prefix, repeatable, roots)
    if problems:
        raise errors.InvalidInput.all(problems[:MOST_PROBLEMS])
    return [Document(index, tree.line, tree.root) for index, tree in enumerate(trees)]


def dump_yaml(document: object) -> str:
    """Return a YAML manifest of one document, with the fields in their order."""
    return str(yaml.dump(document, Dumper=_DUMPER, sort_keys=False, allow_unicode=True))


def load_json(
    text: str | bytes, *, limit: int = LARGEST, repeatable: Collection[Path] = ()
) -> dict[str, Any]:
    """Return the object of a JSON text; `repeatable` as in load_yaml.

    Raises InvalidInput: too_large, encoding, too_deep, json_syntax (with line and column),
    object_expected, duplicate_key, not_finite, bad_number.
    """
    data = load_json_value(text, limit=limit, repeatable=repeatable)
    if not isinstance(data, dict):
        raise errors.InvalidInput.for_field("", "object_expected", "an object is expected")
    return data


def load_json_value(
    text: str | bytes, *, limit: int = LARGEST, repeatable: Collection[Path] = ()
) -> dict[str, Any] | list[Any]:
    """Return the object or the list of a JSON text. Raises as load_json."""
    decoded = _decoded(text, limit)
    _check_depth(decoded)
    if not decoded.strip():
        raise errors.InvalidInput.for_field("", "object_expected", "the text is empty")
    try:
        data = json.loads(
            decoded,
            object_pairs_hook=_json_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_not_finite,
        )
    except json.JSONDecodeError as error:
        message = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise errors.InvalidInput.for_field("", "json_syntax", message) from None
    if problems := _problems(data, (), repeatable, (dict, list)):
        raise errors.InvalidInput.all(problems[:MOST_PROBLEMS])
    return data  # type: ignore[no-any-return]  # _problems refuses everything else


def _decoded(text: str | bytes, limit: int) -> str:
    try:
        raw = text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError as error:
        message = f"character {error.start} is half of a surrogate pair"
        raise errors.InvalidInput.for_field("", "encoding", message) from None
    if len(raw) > limit:
        raise errors.InvalidInput.for_field("", "too_large", f"may have at most {limit} bytes")
    if raw.startswith(_BOMS):
        raise errors.InvalidInput.for_field(
            "", "encoding", "must be UTF-8 without a byte order mark"
        )
    if b"\0" in raw:
        raise errors.InvalidInput.for_field("", "encoding", "contains NUL; must be UTF-8 text")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        message = f"byte {error.start} is not UTF-8"
        raise errors.InvalidInput.for_field("", "encoding", message) from None


def _check_depth(text: str) -> None:
    # Before parsing: Python's parser recurses at each level.
    depth = 0
    for token in _JSON_TOKEN.finditer(text):
        char = token[0][0]
        depth += (char in "[{") - (char in "]}")
        if depth > DEEPEST:
            raise errors.InvalidInput.for_field(
                "", "too_deep", f"nested deeper than {DEEPEST} levels"
            )


def _json_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        members = {}
        for key, value in pairs:
            members[key] = _repeat(members[key], value) if key in members else value
    return members


def _repeat(previous: object, value: object, where: str = "") -> _RepeatedKey:
    flaw = _Flaw("duplicate_key", f"{where}duplicate key")
    repeated = previous if isinstance(previous, _RepeatedKey) else _RepeatedKey(previous, flaw)
    repeated.append(value)
    return repeated


def _integer(text: str) -> int | _Flaw:
    if len(text) > LONGEST_NUMBER:
        return _Flaw("bad_number", f"a number of {len(text)} digits")
    return int(text)


def _float(text: str) -> float | _Flaw:
    value = float(text)
    return value if math.isfinite(value) else _not_finite(text)


def _not_finite(text: str) -> _Flaw:
    return _Flaw("not_finite", f"{text[:LONGEST_NUMBER]} is not a finite number")


def _problems(
    root: object, prefix: Path, repeatable: Collection[Path], roots: tuple[type, ...] = (dict,)
) -> list[errors.FieldProblem]:
    if not isinstance(root, (*roots, _Flaw)):
        root = _Flaw("object_expected", "an object is expected")
    allowed = {(*prefix, *path) for path in repeatable}
    flaws = _flaws(root, prefix, allowed)
    return [errors.FieldProblem(".".join(path), flaw.code, flaw.message) for path, flaw in flaws]


def _flaws(value: object, path: Path, allowed: Collection[Path]) -> Iterator[tuple[Path, _Flaw]]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _flaws(key, path, allowed)
            yield from _flaws(member, (*path, errors.display_value(key)), allowed)
    elif isinstance(value, _RepeatedKey) and path[:-1] not in allowed:
        yield path, value.flaw
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _flaws(member, (*path, str(index)), allowed)
    elif isinstance(value, _Flaw):
        yield path, value
    elif isinstance(value, str) and _UNSTORABLE.search(value):
        yield path, _Flaw("encoding", "contains NUL or half of a surrogate pair")


@dataclass
class _Open:
    """An unfinished collection; `key` is the key whose value comes next."""

    members: dict[str, Any] | list[Any]
    key: str | None = None
    line: int = 0  # of the key
    flaw: _Flaw | None = None  # of the key


class _Tree:
    """A document while it is built from events."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.root: Any = None
        self._open: list[_Open] = []

    def feed(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.CollectionEndEvent):
            self._open.pop()
        elif isinstance(event, yaml.ScalarEvent):
            self._add(event, _scalar(event))
        elif isinstance(event, yaml.AliasEvent):
            self._add(event, None)  # refused there, as it names an anchor
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._begin(event)

    def _begin(self, event: yaml.CollectionStartEvent) -> None:
        if len(self._open) == DEEPEST:
            message = f"line {_line(event)}: nested deeper than {DEEPEST} levels"
            raise errors.InvalidInput.for_field("", "too_deep", message)
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        members: dict[str, Any] | list[Any] = {} if is_mapping else []
        self._add(event, members)
        self._open.append(_Open(members))

    def _add(self, event: yaml.NodeEvent, value: object) -> None:
        flaw = _refused(event)
        if not self._open:
            self.line, self.root = _line(event), flaw or value
            return
        parent = self._open[-1]
        if isinstance(parent.members, list):
            parent.members.append(flaw or value)
        elif parent.key is None:
            parent.line = _line(event)
            parent.key, parent.flaw = _key(event)
        else:
            key, value = parent.key, parent.flaw or flaw or value
            if key in parent.members:
                value = _repeat(parent.members[key], value, f"line {parent.line}: ")
            parent.members[key], parent.key = value, None


def _trees(text: str) -> Iterator[_Tree]:
    tree = _Tree(1)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.DocumentStartEvent):
                tree = _Tree(_line(event))
            elif isinstance(event, yaml.DocumentEndEvent):
                yield tree
            else:
                tree.feed(event)
    except yaml.reader.ReaderError as error:
        message = f"contains a control character at {error.position}"
        raise errors.InvalidInput.for_field("", "encoding", message) from None
    except yaml.MarkedYAMLError as error:
        raise errors.InvalidInput.for_field(
            "", "yaml_syntax", _syntax_message(text, error)
        ) from None


def _syntax_message(text: str, error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    number = mark.line if mark else 0
    lines = text.splitlines()
    line = lines[number] if number < len(lines) else ""
    tabs = "; indent with blanks, not with tabs" if re.match(r" *\t", line) else ""
    return f"line {number + 1}: {error.problem}{tabs}"


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _refused(event: yaml.NodeEvent) -> _Flaw | None:
    if event.anchor is not None:
        message = f"line {_line(event)}: anchors and aliases are not allowed"
        return _Flaw("anchors_not_allowed", message)
    if getattr(event, "tag", None) is not None:
        return _Flaw("tags_not_allowed", f"line {_line(event)}: tags are not allowed")
    return None


def _key(event: yaml.NodeEvent) -> tuple[str, _Flaw | None]:
    """Return the text of a key, and its flaw."""
    line = _line(event)
    if not isinstance(event, yaml.ScalarEvent):
        return "?", _refused(event) or _Flaw("key_not_text", f"line {line}: a key must be a text")
    key = str(event.value)
    if key == "<<":
        return key, _Flaw("anchors_not_allowed", f"line {line}: merge keys are not allowed")
    return key, _refused(event)


def _scalar(event: yaml.ScalarEvent) -> object:
    text = str(event.value)
    if event.style:  # in quotes, or a block of text
        return text
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return _integer(text)
    if _FLOAT.fullmatch(text):
        return _float(text)
    return _not_finite(text) if _NOT_FINITE.fullmatch(text) else text
