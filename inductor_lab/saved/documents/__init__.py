"""Results as JSON documents: what `to_dict()` returns and what `inductor-lab --json` prints.

`compile_types.py`, `tool_types.py` and others declare the documents, `kinds.py` lists them, and
`schemas/` has a JSON Schema for each kind.
"""
