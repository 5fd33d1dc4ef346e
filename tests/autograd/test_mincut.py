"""The minimum cut, on graphs that are small enough to see the answer."""

from __future__ import annotations

from inductor_lab.compiler.autograd.mincut import Pipe, cheapest_cut


def _pipe(name, inputs="", width=4, source=False, needed=False):
    return Pipe(name, tuple(inputs.split()), width, source, needed)


def test_the_narrowest_point_is_cut():
    pipes = [
        _pipe("x", width=8, source=True),
        _pipe("half", "x", width=4),
        _pipe("a", "half", width=8, needed=True),
        _pipe("b", "half", width=8, needed=True),
    ]
    assert cheapest_cut(pipes) == {"half"}


def test_of_equal_cuts_the_later_one_leaves_less_to_recompute():
    pipes = [_pipe("x", source=True), _pipe("y", "x"), _pipe("z", "y", needed=True)]
    assert cheapest_cut(pipes) == {"z"}


def test_a_value_that_cannot_be_recomputed_is_a_source():
    pipes = [
        _pipe("x", width=1, source=True),
        _pipe("mm", "x", width=100, source=True, needed=True),
        _pipe("unrelated", "x"),
    ]
    assert cheapest_cut(pipes) == {"mm"}


def test_items_of_a_tuple_are_saved_instead_of_it():
    pipes = [
        _pipe("pair", width=None, source=True),
        _pipe("first", "pair", needed=True),
        _pipe("second", "pair"),
    ]
    assert cheapest_cut(pipes) == {"first"}


def test_a_value_without_inputs_is_never_saved():
    assert cheapest_cut([_pipe("zeros", needed=True)]) == frozenset()


def test_no_needed_value_and_no_finite_cut():
    assert cheapest_cut([_pipe("x", source=True)]) == frozenset()
    assert cheapest_cut([_pipe("x", width=None, source=True, needed=True)]) is None
