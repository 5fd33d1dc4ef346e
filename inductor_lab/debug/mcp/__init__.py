"""An MCP server: tools for coding agents, `inductor-lab mcp FOLDER` (docs/mcp.md).

    client ── JSON-RPC over stdio ──> server ── a request ──> keeper ──> process of the user's code
                                        │                                  runs one command of
                                        └ checks arguments and paths,      `inductor-lab --json`
                                          keeps documents

The server runs no code of the user.  Each command runs in a new confined process
(`debug/untrusted`), which has limits of time and memory, reads the folder and the Python
installation, writes to a folder of its own and opens no connection.  What comes back is bytes, and
the server reads a JSON document from them.

    tools.py      the tools: their parameters, and the command that each runs
    folder.py     paths of arguments: inside the folder that the user named
    worker.py     the side of the user's code: runs the command
    job.py        one command, from the side of the server: it starts, reports progress, is stopped
    documents.py  the documents of earlier answers, with their ids and the limit of bytes
    resources.py  documents, schemas, pages of the documentation and the glossary, by URI
    server.py     the handlers of the protocol
    skill.py      `inductor-lab skill`: the same for agents that use the command line
"""
