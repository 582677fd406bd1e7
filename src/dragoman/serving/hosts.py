"""Names of this server: those that the Host header of a request may have.

A web page could let its own host name point to this machine and then read what the server answers (DNS rebinding). So
only names are accepted that no page can point here.

A page could also send a form to this server, without reading the answer: browsers say so in the header Sec-Fetch-Site.
They leave it out for a server that is neither on this machine nor reached over https; its own pages then have an origin
with the name in the Host header.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{0,5}))?")


class Hosts:
    """Accepted host names: those that are named, and on a network also addresses and names without a dot."""

    def __init__(self, names: Iterable[str], *, on_network: bool, origins: Iterable[str] = ()) -> None:
        """Accept ``names``; "*" accepts every name. Pages of ``origins`` may send requests."""
        self._origins = frozenset(origins)
        self._names = frozenset(map(_normalised, names))
        self._on_network = on_network

    def accept(self, header: str) -> bool:
        """Return True if a Host header names this server."""
        if "*" in self._names:
            return True
        match = _HOST.fullmatch(header.strip().lower())
        if match is None or int(match[2] or 0) > 65535:
            return False
        name = _normalised(match[1]) if not match[1].startswith("[") else _address(match[1][1:-1], 6)
        # Of a server in a container others know the container's name, and probes its address. Neither can be a name
        # that somebody registered, which has a dot.
        is_private = self._on_network and ("." not in name or _address(name) != "")
        return name in self._names or (is_private and name != "")

    def is_foreign(self, headers: Mapping[bytes, bytes], *, reads: bool = False) -> bool:
        """Return True if a page of another host or port sends a request, and its origin is not one that may.

        Args:
            reads: The request changes nothing: links of all pages may lead here. But no page may let this server
                compute, as for a picture of it.
        """
        origin = headers.get(b"origin", b"").decode("latin-1")
        # For a picture or a frame browsers send no origin, but most pages let them name theirs as the referrer.
        referrer = "/".join(headers.get(b"referer", b"").decode("latin-1").split("/", 3)[:3])
        if (origin or referrer if reads else origin) in self._origins:
            return False
        # Browsers send another scheme for their extensions, which the user has allowed to use this server.
        is_page = origin == "null" or origin.startswith(("http://", "https://"))
        if (site := headers.get(b"sec-fetch-site")) is None:
            host = headers.get(b"host", b"").decode("latin-1").strip().lower()
            return is_page and not reads and origin.lower().partition("://")[2] != host
        # Another port of this machine is the same site to a browser, and another subdomain too.
        is_elsewhere = site in (b"cross-site", b"same-site")
        if reads:
            is_link = headers.get(b"sec-fetch-dest", b"document") == b"document"
            is_page = not is_link and (is_page or headers.get(b"sec-fetch-mode") != b"cors")
        return is_elsewhere and is_page


def _normalised(name: str) -> str:
    name = name.lower()
    return _address(name) or name.removesuffix(".")


def _address(text: str, version: int | None = None) -> str:
    """Return an IP address in its usual form; "" if the text is none, or none of that version."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return ""
    return str(address) if version in (None, address.version) else ""
