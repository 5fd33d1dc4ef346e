"""What people see: pictures, the explorer and the report, drawn from finished values.

`links` says what came from what, `model` turns a compilation into plain JSON data, and the ES
modules beside these files draw that data.  Nothing in the compiler imports this package.
"""
