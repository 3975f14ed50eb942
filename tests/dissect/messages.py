"""The octets of the evil peer's messages, without Weft's code: MPA, DDP and RDMAP, and RPC-over-RDMA version 1."""

import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "wireshark"))
from capture import CLIENT, SEND, SERVER, crc32c, fpdu, startup_frame, untagged  # noqa: E402

WRITE, READ_REQUEST, READ_RESPONSE, TERMINATE = 0, 1, 2, 7


# ---- set-up (RFC 5044 section 7.1, RFC 6581): IRD 2, ORD 2 where nothing else is said

DEPTHS = 0x0002, 0x0002


def request(depths=DEPTHS, revision=2, flags=0x50):
    return startup_frame(CLIENT, struct.pack(">HH", *depths), revision, flags)


def reply_frame(depths=DEPTHS):
    return startup_frame(SERVER, struct.pack(">HH", *depths))


# ---- messages of RDMAP (RFC 5040 section 4)

def ramp(length, first=0):
    return bytes((first + i) & 0xFF for i in range(length))


def send(msn, payload):
    return untagged(SEND, payload, msn)


def tagged(opcode, stag, offset, payload):
    return struct.pack(">BBIQ", 0xC1, 0x40 | opcode, stag, offset) + payload


def write(stag, offset, payload):
    return tagged(WRITE, stag, offset, payload)


def read_request(msn, sink, sink_offset, size, source, source_offset):
    header = struct.pack(">IQIIQ", sink, sink_offset, size, source, source_offset)
    return untagged(READ_REQUEST, header, msn, queue=1)


def terminate(layer_and_type, code):
    return untagged(TERMINATE, bytes([layer_and_type, code, 0, 0]), 1, queue=2)


class MarkedFramer:
    """FPDUs with Markers (RFC 5044 section 4.3), one byte after the other."""

    def __init__(self):
        self.position = 0

    def frame(self, ulpdu, skew=0):
        """skew: by how much the Markers within the FPDU are wrong."""
        self.octets, self.begin, self.skew = b"", None, skew
        for octet in struct.pack(">H", len(ulpdu)) + ulpdu + bytes(-(2 + len(ulpdu)) % 4):
            self._put(octet)
        self._marker()
        for octet in struct.pack("<I", crc32c(self.octets)):
            self._put(octet)
        return self.octets

    def _put(self, octet):
        self._marker()
        if self.begin is None:
            self.begin = self.position
        self.octets += bytes([octet])
        self.position += 1

    def _marker(self):
        if self.position % 512 == 0:
            back = 0 if self.begin is None else self.position - self.begin + self.skew
            self.octets += struct.pack(">HH", 0, back)
            self.position += 4


# ---- RPC-over-RDMA (RFC 8166 section 4, RFC 5531 section 9, RFC 1813)

def words(*values):
    return struct.pack(f">{len(values)}I", *values)


NFS, MOUNT = (100003, 3), (100005, 3)  # programs and versions
NULL, READ, READDIR, MNT = 0, 6, 16, 1  # procedures of these


def header(xid):
    """RDMA_MSG of version 1 with 8 credits and without chunks."""
    return words(xid, 1, 8, 0, 0, 0, 0)


def call(xid, procedure, program=NFS):
    return words(xid, 0, 2, *program, procedure, 0, 0, 0, 0)


def reply(xid):
    return words(xid, 1, 0, 0, 0, 0)


XID = slice(18, 22)  # of the ULPDU of a Send
