"""JSON that a page shows, beside what the product answers."""

import json
from collections.abc import Iterator
from typing import Any

ANYTHING = "…"


def read_json_values(text: str) -> list[Any]:
    """Return the JSON values of a text in their order."""
    decoder, values, text = json.JSONDecoder(), [], text.strip()
    while text:
        value, end = decoder.raw_decode(text)
        values.append(value)
        text = text[end:].strip()
    return values


def differences(shown: Any, answer: Any, path: str = "") -> Iterator[str]:
    """Yield what the page shows and the answer lacks; the answer may have more fields."""
    if shown == ANYTHING:
        return
    if isinstance(shown, dict) and isinstance(answer, dict):
        for key, value in shown.items():
            yield from differences(value, answer.get(key, "no such field"), f"{path}.{key}")
    elif isinstance(shown, list) and isinstance(answer, list) and len(shown) == len(answer):
        for number, (remaining, right) in enumerate(zip(shown, answer, strict=True)):
            yield from differences(remaining, right, f"{path}[{number}]")
    elif shown != answer:
        yield f"{path}: the page shows {shown!r}, the answer is {answer!r}"
