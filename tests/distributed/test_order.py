"""Work runs while tensors are sent, and tensors do not change until they have been sent."""

from __future__ import annotations

from tests.distributed.programs import schedule, small_messages
from tests.distributed.ranks import of_all, results_of


def test_independent_work_overlaps_the_collective() -> None:
    first, second = of_all(results_of(2, schedule))
    assert first == second, "all ranks have the same order"
    names, sent, _ = first
    begun = next(at for at, name in enumerate(names) if "all_reduce" in name)
    waited = next(at for at, name in enumerate(names) if "wait_tensor" in name)
    product = next(at for at, name in enumerate(names) if "mm" in name)
    assert begun < product < waited
    assert [last for _, last in sent] == [waited], "it is used until then"


def test_small_messages_are_joined_on_all_ranks_and_values_equal_eager() -> None:
    (sent, fired), other = of_all(results_of(2, small_messages))
    assert (sent, fired) == other
    assert sent == ["all_reduce", "all_reduce_coalesced"], "the needed one is sent separately"
    assert "5 messages, 192 B together" in fired[0]
