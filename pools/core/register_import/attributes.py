"""Tags, owners and custom fields of an imported prefix: what the source says, and what an object of this register gets.

The details of a row keep what the source says: `tags` as NetBox's slugs, joined by commas, and each custom field as
`cf_NAME`. If it refers to other objects of the source, this is what is displayed of them, and `ref_NAME` are their ids. An
object gets what has a place here; `unset` names the custom fields that had none.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pools.core import custom_fields, errors, object_reader
from pools.core.errors import FieldProblem

PREFIX = "cf_"
REFERENCE = "ref_"
LONGEST = custom_fields.LONGEST_LINK
Definitions = Mapping[
    str, tuple[str, list[str]]
]  # name of a custom field -> its type and its choices

# How NetBox makes a slug of the name of a tag (project-static/src/buttons/reslug.ts).
_UNNEEDED = re.compile(r"[^-.\w\s]", re.ASCII)
_ENDS = re.compile(r"^[\s.]+|[\s.]+$")
_GAPS = re.compile(r"[-.\s]+")


@dataclass
class Attributes:
    """The attributes of an object, as models.Attributed has them."""

    tags: list[str] = field(default_factory=list)
    owner: str = ""
    custom_fields: dict[str, str] = field(default_factory=dict)


def read_tags(text: str) -> str:
    """Return the slugs of tags that are written as names or slugs with commas between; a name without a slug stays."""
    tags = filter(None, (tag.strip() for tag in text.split(",")))
    return ",".join(sorted({_slug(tag) or tag for tag in tags}))


def _slug(name: str) -> str:
    return _GAPS.sub("-", _ENDS.sub("", _UNNEEDED.sub("", name))).lower()


def is_attribute(name: str) -> bool:
    return name == "tags" or is_custom(name)


def is_custom(name: str) -> bool:
    return name.startswith(PREFIX)


def reference_of(column: str) -> str:
    """Return the name of the ids of the objects that the custom field of a column refers to."""
    return f"{REFERENCE}{column.removeprefix(PREFIX)}"


def read_attributes(
    details: Mapping[str, str], definitions: Definitions
) -> tuple[Attributes, list[FieldProblem]]:
    """Return the attributes that an object gets by the details of its row, and why it does not get the others."""
    report = object_reader.ProblemReport()
    tags = set()
    for tag in filter(None, details.get("tags", "").split(",")):
        with report.collect():
            tags.add(custom_fields.parse_tag(tag, "tags"))
    if left_out := sorted(tags)[custom_fields.MOST_TAGS :]:
        message = (
            f"an object has at most {custom_fields.MOST_TAGS} tags; not set: {', '.join(left_out)}"
        )
        report.add("tags", "too_many", message)
    values = {}
    unset = details.get("unset", "").split(",")
    for name in filter(is_custom, details):
        if name not in unset:
            with report.collect():
                values[_field_name(name)] = _read_value(name, details[name], definitions)
    attributes = Attributes(
        sorted(tags)[: custom_fields.MOST_TAGS],
        details.get("owner", ""),
        {name: value for name, value in values.items() if value},
    )
    return attributes, report.problems


def _field_name(column: str) -> str:
    """Return the name that a custom field of a column has here."""
    return column.removeprefix(PREFIX).lower()


def _read_value(name: str, text: str, definitions: Definitions) -> str:
    definition = definitions.get(_field_name(name))
    if definition is None:
        message = "there is no such custom field here; the value is kept beside the object"
        raise errors.InvalidInput.for_field(name, "unknown_custom_field", message, text)
    return custom_fields.parse_value(*definition, text, name)


def merge(
    current: Attributes, before: Attributes, after: Attributes, *, keep: bool = False
) -> Attributes:
    """Return the current attributes with the changes of the source; what users set here stays.

    With `keep` also what they have changed since it was that of `before`.
    """

    def value(now: str, former: str, latter: str) -> str:
        return now if former == latter or (keep and now != former) else latter

    names = {*current.custom_fields, *before.custom_fields, *after.custom_fields}
    sides = (current.custom_fields, before.custom_fields, after.custom_fields)
    values = {name: value(*(side.get(name, "") for side in sides)) for name in names}
    removed, added = {*before.tags} - {*after.tags}, {*after.tags} - {*before.tags}
    return Attributes(
        tags=sorted({*current.tags} - removed | added)[: custom_fields.MOST_TAGS],
        owner=value(current.owner, before.owner, after.owner),
        custom_fields={name: text for name, text in values.items() if text},
    )


def write_back(
    details: Mapping[str, str], current: Attributes | None, definitions: Definitions
) -> dict[str, str]:
    """Return tags and custom fields of an object as columns of NetBox: as it wrote them, or as they are here now.

    An object that has none here (None) goes back as it came. NetBox's import form takes other objects by their ids.
    """
    written = {name: details[name] for name in filter(is_attribute, details)}
    texts = {name: details.get(reference_of(name)) or text for name, text in written.items()}
    if current is None:
        return texts
    slugs, replaced = set(), set()
    for slug in filter(None, written.pop("tags", "").split(",")):
        read, problems = read_attributes({"tags": slug}, {})
        if problems or read.tags[0] in current.tags:
            slugs.add(slug)
            replaced |= {*read.tags}
    slugs |= {*current.tags} - replaced
    columns = {"tags": ",".join(sorted(slugs))} if slugs else {}
    columns |= {f"{PREFIX}{name}": value for name, value in current.custom_fields.items()}
    for name, text in written.items():
        known = _field_name(name)
        read, problems = read_attributes({name: text}, definitions)
        value = current.custom_fields.get(known)
        if (problems and value is None) or read.custom_fields.get(known, "") == value:
            columns.pop(f"{PREFIX}{known}", None)
            columns[name] = texts[name]
    return columns
