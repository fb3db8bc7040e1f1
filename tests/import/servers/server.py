"""A server of the Python SDK with two tools, over stdio."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("py-notes", version="1.0.0", instructions="Keeps notes.")


@server.tool()
def add_note(text: str, tags: list[str] | None = None) -> str:
    """Adds a note."""
    return f"added: {text} {tags or []}"


@server.tool()
def count(words: str) -> dict[str, int]:
    """Counts words."""
    return {"words": len(words.split())}


server.run()
