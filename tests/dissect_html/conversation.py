"""NFS over RPC-over-RDMA version 1 in a capture, one message in each TCP segment."""

import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "wireshark"))
from capture import CLIENT, SERVER, Capture  # noqa: E402 (the path comes first)

NFS, LOOKUP, READ = 100003, 3, 6
WRITE = 0  # the RDMAP opcode
CREDITS_ASKED, CREDITS_GRANTED = 32, 16


def connect(capture, private_data=b""):
    return capture.connect((private_data, private_data), revision=1, flags=0x40)


def opaque(octets):
    return struct.pack(">I", len(octets)) + octets + bytes(-len(octets) % 4)


def transport_header(xid, credits, write_chunk=None):
    """RDMA_MSG without a Read list. write_chunk: (handle, length, offset), or none."""
    header = struct.pack(">IIIII", xid, 1, credits, 0, 0)
    if write_chunk:
        header += struct.pack(">IIIIQ", 1, 1, *write_chunk)
    return header + struct.pack(">II", 0, 0)


def call(xid, procedure, arguments, write_chunk=None):
    rpc = struct.pack(">IIIIII", xid, 0, 2, NFS, 3, procedure) + bytes(16) + arguments
    return transport_header(xid, CREDITS_ASKED, write_chunk) + rpc


def reply(xid, results, write_chunk=None):
    rpc = struct.pack(">III", xid, 1, 0) + bytes(8) + struct.pack(">I", 0) + results
    return transport_header(xid, CREDITS_GRANTED, write_chunk) + rpc


def lookup(connection, xid, name):
    """LOOKUP of a name that does not exist."""
    connection.send(CLIENT, call(xid, LOOKUP, opaque(bytes(16)) + opaque(name)))
    connection.send(SERVER, reply(xid, struct.pack(">II", 2, 0)))


def tagged(opcode, stag, offset, payload):
    """A DDP segment that is a whole message."""
    return struct.pack(">BBIQ", 0xC1, 0x40 | opcode, stag, offset) + payload


def read(connection, xid, stag, data):
    """READ, whose data goes by RDMA Write."""
    chunk = (stag, len(data), 0x1000)
    connection.send(CLIENT, call(xid, READ, opaque(bytes(16)) + struct.pack(">QI", 0, len(data)), chunk))
    connection.ulpdu(SERVER, tagged(WRITE, stag, 0x1000, data))
    connection.send(SERVER, reply(xid, struct.pack(">IIIII", 0, 0, len(data), 1, len(data)), chunk))


__all__ = ["CLIENT", "SERVER", "Capture", "connect", "lookup", "read"]
