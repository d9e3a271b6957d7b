"""The same crowd that finds nothing wrong with the allocator finds the fault of every mutant."""

from collections import Counter
from pathlib import Path

import pytest

from tests.concurrent import crowd as crowds, doors, mutants
from tests.concurrent.scratch import Scratch

SECONDS = 4.0  # of one round
ROUNDS = 10  # on a busy machine one round may prove too little


def _crowd(folder: Path, scratch: Scratch, door: type[doors.Service]) -> crowds.Crowd:
    return crowds.Crowd(
        folder=folder,
        cooldowns=scratch.cooldowns,
        door=(door, (scratch.place,)),
        clients=6,
        late=0.4,
        seconds=SECONDS,
        faults=[crowds.kill_client],
    )


@pytest.mark.parametrize("door", [doors.Service, mutants.NoLock])
def test_nothing_is_wrong_with_the_allocator(
    door: type[doors.Service], scratch: Scratch, tmp_path: Path
) -> None:
    crowd = _crowd(tmp_path, scratch, door)
    for _ in range(ROUNDS):
        crowd.run()
        assert crowd.check(scratch.held()) == []
        numbers = crowd.numbers()
        proves = numbers.operations > 500 and numbers.reuse_share > 0.2
        if proves and crowd.took_effect["kill_client"] >= 2:
            break
    else:
        pytest.fail(f"this proves too little: {numbers}")
    assert scratch.deadlocks() == 0


@pytest.mark.parametrize("name", mutants.MUTANTS)
def test_a_mutant_is_caught(name: str, scratch: Scratch, tmp_path: Path) -> None:
    mutant = mutants.MUTANTS[name]
    scratch.run(*mutant.statements)
    if mutant.unlocked:
        (source,) = scratch.run("SELECT pg_get_functiondef('ipam_allocate'::regproc)")[0]
        scratch.run(mutants.without_skip_locked(source))
    crowd = _crowd(tmp_path, scratch, mutant.door)
    counter: Counter[str] = Counter()
    for _ in range(ROUNDS):
        crowd.run()
        counter = Counter(violation.kind for violation in crowd.check(scratch.held()))
        if mutant.violations & set(counter):
            return
    pytest.fail(f"not caught: {counter}, {crowd.numbers()}")
