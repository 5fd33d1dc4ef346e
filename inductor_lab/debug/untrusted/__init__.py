"""Run untrusted code and get back parsed values: never a pickle, never a verdict.

    with copy_of_this_process(solution, limits) as process:    # or fresh.start(...)
        process.root(3, torch.ones(2))         the function is called there; the result is data here

The other process returns outputs only.  The process that reads them parses bytes (`wire.py`) and
decides what they are worth.  Nothing that the decision needs (references, expected values, seeds)
is sent there.

    process that judges ── requests, answers ──> keeper ──> process of the untrusted code
                                                  │          limits, and confined if it is fresh
                                                  └ ends all descendants, in new sessions too

    wire.py      values as bytes: JSON, and raw bytes of tensors
    remote.py    the side that judges: functions and objects that live in the other process
    serve.py     the side of the untrusted code
    keeper.py    the process between the two, which ends the whole tree
    processes.py what descendants use; a confined process asks its keeper
    confine.py   limits of memory and time; files that cannot be read or written (Landlock)
    fresh.py     a process that has loaded torch, and forks without anything of this process
"""
