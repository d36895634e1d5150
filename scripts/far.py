"""A proxy that makes a server far away: each byte takes half of DELAY seconds in each direction.

    python3 scripts/far.py PORT SERVER_PORT DELAY

The first bytes of a connection take DELAY more, as the handshake of TCP does. The bandwidth is not
limited.
"""

import asyncio
import sys


async def carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter, delay: float) -> None:
    """Passes on what comes, after a delay, and goes on reading meanwhile."""
    loop = asyncio.get_running_loop()
    due: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def send() -> None:
        while True:
            at, data = await due.get()
            await asyncio.sleep(max(0.0, at - loop.time()))
            if not data:
                sink.close()
                return
            sink.write(data)

    sending = asyncio.create_task(send())
    try:
        while data := await source.read(1 << 20):
            due.put_nowait((loop.time() + delay, data))
    except ConnectionError:
        pass
    due.put_nowait((loop.time() + delay, b""))
    await sending


async def serve(port: int, server: int, delay: float) -> None:
    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(delay)
        there, back = await asyncio.open_connection("127.0.0.1", server)
        await asyncio.gather(carry(reader, back, delay / 2), carry(there, writer, delay / 2))

    async with await asyncio.start_server(connect, "127.0.0.1", port) as listening:
        await listening.serve_forever()


asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
