"""Was it right? A history of many clients against the promises of the allocator.

No false alarms by construction: only what a client knows counts. A *definite hold* of an address
lasts from the answer of its allocation to the moment its owner first asked to release it.

- double_holder: two definite holds of one address overlap (rule `address-has-one-holder`)
- cooldown_reuse: an address was given out sooner than its cooldown after the release was asked
  for, which even the kindest order of events does not excuse (rule `no-reuse-while-cooling`)
- idempotency: a replay of a key was answered otherwise than the first time (rule
  `one-answer-per-key`)
- taken_away: the first release of a block was refused although its owner held it (rule
  `release-names-its-holder`)
- lost_after_commit: acknowledged, never released, and yet not held by its owner at the end (rule
  `acknowledged-is-durable`)
- not_released: the release was acknowledged, and yet its owner holds it at the end
- dup_rows: at the end, two held rows of one key, or of one address
- unexpected: an answer that the contract does not know
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.concurrent import journal

EXPECTED = {journal.ALLOCATE: {"ipam_exhausted"}, journal.RELEASE: {"holder_changed"}}
Place = tuple[str, str]  # pool and address


@dataclass(frozen=True)
class Held:
    """One held row at the end of the run."""

    owner: str
    pool: str
    address: str


@dataclass(frozen=True)
class Violation:
    kind: str
    text: str


@dataclass(frozen=True)
class Hold:
    """`until` is infinite for what was never released."""

    owner: str
    since: float
    until: float


@dataclass(frozen=True)
class Numbers:
    """How much a run proves: without load, faults and reuse it would prove nothing."""

    operations: int
    allocations: int
    indeterminate: int
    addresses: int
    reused: int

    @property
    def reuse_share(self) -> float:
        return self.reused / self.addresses if self.addresses else 0.0


def check(
    history: Iterable[journal.Op], held: Sequence[Held], *, cooldowns: Mapping[str, float]
) -> list[Violation]:
    """All violations; `cooldowns` are seconds by pool. O(n log n)."""
    by_owner: dict[str, list[journal.Op]] = defaultdict(list)
    for op in history:
        by_owner[op.owner].append(op)
    holds = _holds(by_owner)
    result: list[Violation] = []
    for place, its in holds.items():
        result += _overlaps(place, its, cooldowns[place[0]])
    at_end = Counter((row.owner, row.address) for row in held)
    for owner, ops in by_owner.items():
        result += _answers(owner, ops)
        result += _end(owner, ops, at_end)
    return [*result, *_doubles(held)]


def numbers(history: Iterable[journal.Op]) -> Numbers:
    ops = list(history)
    by_owner: dict[str, list[journal.Op]] = defaultdict(list)
    for op in ops:
        by_owner[op.owner].append(op)
    holds = _holds(by_owner)
    return Numbers(
        operations=sum(op.ended is not None for op in ops),
        allocations=sum(len(its) for its in holds.values()),
        indeterminate=sum(op.result == journal.UNKNOWN for op in ops),
        addresses=len(holds),
        reused=sum(len(its) > 1 for its in holds.values()),
    )


def _given(ops: Iterable[journal.Op]) -> list[journal.Op]:
    return [op for op in ops if op.kind == journal.ALLOCATE and op.result == journal.OK]


def _releases(ops: Iterable[journal.Op]) -> list[journal.Op]:
    return [op for op in ops if op.kind == journal.RELEASE]


def _holds(by_owner: Mapping[str, list[journal.Op]]) -> dict[Place, list[Hold]]:
    holds: dict[Place, list[Hold]] = defaultdict(list)
    for owner, ops in by_owner.items():
        released = min((op.invoked for op in _releases(ops)), default=float("inf"))
        grant = min(_given(ops), key=lambda op: op.ended or 0, default=None)
        # A replay that was answered after the release tells nothing about that time.
        if grant is not None and grant.ended is not None and grant.ended < released:
            holds[grant.pool, grant.address].append(Hold(owner, grant.ended, released))
    return holds


def _overlaps(place: Place, holds: list[Hold], cooldown: float) -> Iterable[Violation]:
    holds.sort(key=lambda hold: hold.since)
    last = holds[0]
    for hold in holds[1:]:
        text = f"{place[1]}: {last} and {hold}"
        if hold.since < last.until:
            yield Violation("double_holder", text)
        elif hold.since - last.until < cooldown:
            yield Violation("cooldown_reuse", f"{text}: {hold.since - last.until:.3f} s")
        last = max(last, hold, key=lambda item: item.until)


def _answers(owner: str, ops: list[journal.Op]) -> Iterable[Violation]:
    grants = _given(ops)
    for op in grants[1:]:
        if (op.address, op.block) != (grants[0].address, grants[0].block):
            yield Violation("idempotency", f"{owner}: {grants[0].address}, then {op.address}")
    releases = sorted(_releases(ops), key=lambda op: op.invoked)
    if releases and releases[0].first and releases[0].result == journal.REFUSED:
        yield Violation("taken_away", f"{owner}: {releases[0].address} ({releases[0].code})")
    for op in ops:
        refused = op.result == journal.REFUSED and op.code not in EXPECTED[op.kind]
        if refused or op.result not in {journal.OK, journal.REFUSED, journal.UNKNOWN}:
            yield Violation("unexpected", f"{owner}: {op.kind} was answered {op.code}")


def _end(owner: str, ops: list[journal.Op], at_end: Counter[Place]) -> Iterable[Violation]:
    releases, grants = _releases(ops), _given(ops)
    if grants and not releases and not at_end[owner, grants[0].address]:
        yield Violation("lost_after_commit", f"{owner}: {grants[0].address}")
    for op in releases:
        if op.result == journal.OK and at_end[owner, op.address]:
            yield Violation("not_released", f"{owner}: {op.address}")
            break


def _doubles(held: Sequence[Held]) -> Iterable[Violation]:
    owners = Counter(row.owner for row in held)
    places = Counter((row.pool, row.address) for row in held)
    for what, count in itertools.chain(owners.items(), places.items()):
        if count > 1:
            yield Violation("dup_rows", f"{what} is there {count} times")
