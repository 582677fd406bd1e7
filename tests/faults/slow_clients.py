"""Clients that hold a connection: they send headers or a body byte by byte, or never take their answers."""

from __future__ import annotations

import asyncio
import socket
import time

HEAD = b"POST /v1/translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
ASKED = b"GET /spec HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
FIRST = {"headers": HEAD + b"X-Slow: ", "body": HEAD + b"Content-Length: 100000\r\n\r\n{", "reading": ASKED * 20}
PAUSE_S = 0.5


async def held(port: int, kind: str, longest_s: float) -> float:
    """Seconds until the server ends the connection of such a client; ``longest_s``: it did not."""
    loop, started = asyncio.get_running_loop(), time.perf_counter()
    with socket.socket() as client:
        if kind == "reading":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1400)  # as over a network: else the server's
            # kernel takes megabytes for it, and the test measures what it costs to write them
        client.setblocking(False)
        await loop.sock_connect(client, ("127.0.0.1", port))
        piece = FIRST[kind]
        while (seconds := time.perf_counter() - started) < longest_s:
            try:
                async with asyncio.timeout(PAUSE_S):
                    await loop.sock_sendall(client, piece)
                    piece = ASKED if kind == "reading" else b"a"
                    if kind == "reading":
                        await asyncio.sleep(PAUSE_S)
                    elif not await loop.sock_recv(client, 1 << 16):
                        break
            except TimeoutError:
                pass
            except OSError:
                break
    return min(seconds, longest_s)


def hold(port: int, n_clients: int, longest_s: float) -> dict[str, list[float]]:
    """As many clients as that at once, a third of each kind: how long each held its connection."""

    async def all_of_them() -> list[tuple[str, float]]:
        kinds = [kind for kind, _ in zip(list(FIRST) * n_clients, range(n_clients), strict=False)]
        times = await asyncio.gather(*(held(port, kind, longest_s) for kind in kinds))
        return list(zip(kinds, times, strict=True))

    found: dict[str, list[float]] = {kind: [] for kind in FIRST}
    for kind, seconds in asyncio.run(all_of_them()):
        found[kind].append(seconds)
    return found
