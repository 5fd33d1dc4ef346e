"""Describe a failed guard: the value in the call, and the value that the code was compiled for."""

from __future__ import annotations

import re

from inductor_lab.compiler.capture.capture import Recompile, readable_source
from inductor_lab.notebook.language import say

_WORDS = (
    (r"tensor '(?P<it>.*)' size mismatch at index (?P<n>\d+)\. expected (?P<was>\S+), "
     r"actual (?P<is_>\S+)",
     "{it} has size {is_} in dimension {n}; the code was compiled for {was}"),
    (r"tensor '(?P<it>.*)' stride mismatch at index (?P<n>\d+)\. expected (?P<was>\S+), "
     r"actual (?P<is_>\S+)",
     "{it} has stride {is_} in dimension {n}; the code was compiled for {was}"),
    (r"tensor '(?P<it>.*)' rank mismatch\. expected (?P<was>\S+), actual (?P<is_>\S+)",
     "{it} has {is_} dimensions; the code was compiled for {was}"),
    (r"tensor '(?P<it>.*)' dtype mismatch\. expected (?P<was>.+), actual (?P<is_>.+)",
     "{it} has dtype {is_}; the code was compiled for {was}"),
    (r"tensor '(?P<it>.*)' requires_grad mismatch\. expected requires_grad=1.*",
     "{it} does not require grad; the code was compiled for a tensor that does"),
    (r"tensor '(?P<it>.*)' requires_grad mismatch\. expected requires_grad=0.*",
     "{it} requires grad; the code was compiled for a tensor that does not"),
    (r"tensor '(?P<it>.*)' dispatch key set mismatch\. expected (?P<was>.+), actual (?P<is_>.+)",
     "{it} has dispatch keys {is_}; the code was compiled for {was}"),
    (r"tensor '(?P<it>.*)' Tensor device index mismatch.*expected (?P<was>\S+), "
     r"actual (?P<is_>\S+)",
     "{it} is on device {is_}; the code was compiled for {was}"),
    (r"2 <= (?P<it>\S+\.size\(\)\[\d+\])",
     "{it} is 0 or 1; the code was compiled for sizes from 2"),
    (r"GLOBAL_STATE changed: (?P<it>.*?)\s*", "changed between calls: {it}"),
    (r"___check_type_id\((?P<it>.+?), .*", "the type of {it} changed"),
    (r"___check_obj_id\((?P<it>.+?), .*", "{it} is a different object"),
)  # fmt: skip
"""TorchDynamo's messages and our sentences.  A message that matches none of them is a condition."""


def in_words(recompile: Recompile) -> str:
    """One sentence about the failed guard, or its condition if no sentence matches.

    >>> reason = "tensor 'x' size mismatch at index 0. expected 4, actual 5"
    >>> in_words(Recompile("0/1", "0/0", reason, None))
    'x has size 5 in dimension 0; the code was compiled for 4'
    >>> in_words(Recompile("0/1", "0/0", "L['scale'] == 1.0", None))
    'guard failed: scale == 1.0'
    """
    reason = readable_source(recompile.reason)
    for pattern, words in _WORDS:
        found = re.fullmatch(pattern, reason)
        if found:
            return say(words, **found.groupdict())
    return say("guard failed: {condition}", condition=reason)
