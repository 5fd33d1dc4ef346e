"""Judge a candidate for a function: is it correct, and how fast is it?

    verdict = lab.judge(reference, candidate, cases=[(x, y)])
    print(verdict)

The candidate is text: a Python function, a Triton kernel with the function that launches it, or a
function in C++.  It runs in a confined process (`debug/untrusted`), which gets inputs and returns
outputs.  The judge has the reference, the expected values, the secret that cases are drawn from,
and the clock.

    candidate.py         the text of a candidate
    cases.py             awkward cases, derived from examples
    applied.py           a function with its arguments, and its gradients
    serve_candidate.py   the side of the candidate: calls it, and sends its results
    guarded.py           memory that ends at a page which cannot be accessed
    remote_call.py       the side that judges: one call of the candidate
    expected.py          what the reference computes: as given, in float64, and perturbed
    correctness.py       every case, compared
    speed.py             interleaved rounds of calls, and what they say
    timed_call.py        one sample: calls of one process, timed by the judge
    timing_memory.py     memory that the judge shares with a process: main memory, or a GPU's
    cuda_driver.py       memory of a GPU as a file descriptor
    gpu_timing.py        the processes of candidate and reference on a GPU
    tree.py              the processes of a candidate, stopped while it is not called
    check_part.py        a part of a compilation as a candidate
    judge_kernel.py      an edited kernel as a candidate
    verdict.py           the result
"""
