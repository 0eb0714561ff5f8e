"""The MCP server: takeback for agents that speak the Model Context Protocol. Needs the extra `takeback[mcp]`.

    server.py ─► tools/  what each tool is asked ─► calls.py      which workspace, and by whom
                                                ─► proposals.py  what is done at once, and what a person is asked
                                                   approvals.py  that question, through the client
                                                ─► answers.py    text to read, and the same as data

auth.py is who may connect over HTTP; resources.py the log and the diff as documents; windows.py parts of long ones.
"""
