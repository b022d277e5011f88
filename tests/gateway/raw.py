"""HTTP as bytes, for what no well-behaved client can be made to send."""

import asyncio
from urllib.parse import urlsplit


async def exchange(url: str, request: bytes, timeout_s: float = 5.0) -> tuple[int, bytes]:
    """Status and everything that came back; 0 where the server only closed the connection."""
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        writer.write(request)
        await writer.drain()
        async with asyncio.timeout(timeout_s):
            answer = await reader.read(65536)
            while b"\r\n\r\n" not in answer and (more := await reader.read(65536)):
                answer += more
    finally:
        writer.close()
        await writer.wait_closed()
    return (int(answer.split(b" ", 2)[1]) if answer else 0), answer
