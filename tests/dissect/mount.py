"""A client of MOUNT version 3 over TCP (RFC 1813 appendix I), for the handle of an export's root."""

import socket

from messages import MNT, MOUNT, call, words

LAST_FRAGMENT = 0x80000000
XID = 0x300


def receive(peer, count):
    """As many octets as are due, or fewer at the end of the stream."""
    octets = b""
    while len(octets) < count:
        try:
            piece = peer.recv(count - len(octets))
        except ConnectionResetError:
            piece = b""
        if not piece:
            break
        octets += piece
    return octets


def mount_root(port):
    """The handle of /, as XDR: its length, and its octets."""
    message = call(XID, MNT, MOUNT) + words(1) + b"/\0\0\0"
    with socket.create_connection(("127.0.0.1", port), 60) as peer:
        peer.sendall(words(LAST_FRAGMENT | len(message)) + message)
        answer = receive(peer, int.from_bytes(receive(peer, 4), "big") & ~LAST_FRAGMENT)
    status, handle_len = (int.from_bytes(answer[at:at + 4], "big") for at in (24, 28))
    assert status == 0, f"MNT / failed: {status}"
    return answer[28:32 + handle_len]
