#!/usr/bin/env -S python3 -B
"""The captures of docs/learn/gallery: one classic mistake each, and two connections without a mistake.

gallery.py make          writes the captures but for those of PLAYED, the same bytes every time
gallery.py check WEFT    compares the captures in the tree with what the script makes, and the diagnosis of `weft
                         dissect` with the answers of docs/learn/10-answers.md

Every byte of the mistakes is written here, without Weft's code. Of the scenes in PLAYED the answers are those of `weft`,
as its --trace recorded them. Of the others they are written here, too: the Terminates are those that
tests/sim/evil_peer_test.cc expects of Weft, and the answers of the RPC server are those of RFC 8166 section 4.5.
"""
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/wireshark"))
from capture import ACK, CLIENT, SERVER, Capture, Connection, crc32c, fpdu, startup_frame, untagged  # noqa: E402

GALLERY = ROOT / "docs/learn/gallery"
RECORDED = {"siw-mount.pcap", "linux-read.pcap"}  # captures of Linux, which no script makes
# The server's octets here are those of the script. tests/dissect/evil_peer.py plays the client's against `weft`, and writes
# what that answers into the gallery.
PLAYED = {"wrong-key", "wrong-revision", "crc-one-side", "bad-crc", "msn-gap", "unknown-opcode",
          "rpc-bad-list", "rpc-version", "rpc-garbage"}
FIN = 0x01

# Memory of the server, 64 bytes each from BASE on.
WRITABLE, READABLE, OTHER_DOMAIN, SINK, BASE = 0x1A2B3C01, 0x2B3C4D02, 0x4D5E6F04, 0x6F708106, 0x1000
SEND, WRITE, READ_REQUEST, READ_RESPONSE, TERMINATE = 3, 0, 1, 2, 7
TEXT = bytes(range(ord("A"), ord("A") + 20))


# ---- messages

def ramp(length, first=0):
    return bytes((first + i) & 0xFF for i in range(length))


def send(msn, payload, last=True, offset=0):
    return struct.pack(">BBIIII", 0x41 if last else 0x01, 0x40 | SEND, 0, 0, msn, offset) + payload


def tagged(opcode, stag, offset, payload):
    return struct.pack(">BBIQ", 0xC1, 0x40 | opcode, stag, offset) + payload


def write(stag, offset, payload):
    return tagged(WRITE, stag, offset, payload)


def read_request(msn, sink, sink_offset, size, source, source_offset):
    header = struct.pack(">IQIIQ", sink, sink_offset, size, source, source_offset)
    return untagged(READ_REQUEST, header, msn, queue=1)


def terminate(layer_and_type, code, refused=b""):
    """RFC 5040 section 4.8. refused: the segment that the Terminate is about, whose headers it repeats."""
    if not refused:
        return untagged(TERMINATE, bytes([layer_and_type, code, 0, 0]), 1, queue=2)
    header_len = 14 if refused[0] & 0x80 else 18
    flags = 0xC0
    if layer_and_type == 0x01:  # an RDMA Read that was refused: its own header, too
        header_len, flags = header_len + 28, 0xE0
    body = struct.pack(">BBBBH", layer_and_type, code, flags, 0, len(refused)) + refused[:header_len]
    return untagged(TERMINATE, body, 1, queue=2)


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


# ---- connections

def connect(capture, flags=(0x50, 0x50), words=(0x0002, 0x0002), revision=2):
    """words: those of RFC 6581 in both frames: IRD 2, ORD 2 where nothing else is said."""
    connection = Connection(capture, 40000)
    private_data = struct.pack(">HH", *words)
    connection.add(CLIENT, startup_frame(CLIENT, private_data, revision, flags[0]))
    connection.add(SERVER, startup_frame(SERVER, private_data, revision, flags[1]))
    return connection


def end(connection, sender):
    connection.segment(sender, b"", ACK | FIN)


def refused(ulpdus, layer_and_type, code):
    """The client sends ULPDUs, and the server refuses the last one."""
    def draw(capture):
        connection = connect(capture)
        for ulpdu in ulpdus:
            connection.ulpdu(CLIENT, ulpdu)
        connection.ulpdu(SERVER, terminate(layer_and_type, code, ulpdus[-1]))
        end(connection, SERVER)
    return draw


def healthy(capture):
    connection = connect(capture)
    connection.ulpdu(CLIENT, send(1, TEXT))
    connection.ulpdu(CLIENT, write(WRITABLE, BASE + 16, ramp(32, ord("a"))))
    connection.ulpdu(CLIENT, read_request(1, 0x77, 0x9000, 8, READABLE, BASE))
    connection.ulpdu(SERVER, tagged(READ_RESPONSE, 0x77, 0x9000, ramp(8)))
    connection.ulpdu(SERVER, read_request(1, SINK, BASE, 16, 0x55, 0x5000))
    connection.ulpdu(CLIENT, tagged(READ_RESPONSE, SINK, BASE, ramp(16)))
    connection.ulpdu(SERVER, send(1, b"0123456789"))
    end(connection, CLIENT)


def markers(capture):
    connection = connect(capture, flags=(0x50, 0xD0))
    framer = MarkedFramer()
    message = ramp(900)
    for first in (0, 400, 800):
        piece = message[first : first + 400]
        connection.add(CLIENT, framer.frame(send(1, piece, first == 800, first)))
    end(connection, CLIENT)


# ---- mistakes in MPA

def wrong_key(capture):
    connection = Connection(capture, 40000)
    connection.add(CLIENT, b"GET / HTTP/1.1\r\nHost: 192.0.2.2:20049\r\n\r\n")
    end(connection, SERVER)


def wrong_revision(capture):
    connection = Connection(capture, 40000)
    connection.add(CLIENT, startup_frame(CLIENT, struct.pack(">HH", 2, 2), revision=3))
    end(connection, SERVER)


def no_rtr(capture):
    connection = connect(capture, words=(0x8002, 0x4002))
    connection.ulpdu(CLIENT, send(1, TEXT))
    end(connection, SERVER)


def bad_crc(capture):
    connection = connect(capture)
    connection.ulpdu(CLIENT, send(1, TEXT))
    octets = bytearray(fpdu(send(2, TEXT)))
    octets[25] ^= 0x04
    connection.add(CLIENT, bytes(octets))
    connection.ulpdu(SERVER, terminate(0x20, 2))
    end(connection, SERVER)


def crc_one_side(capture):
    connection = connect(capture, flags=(0x10, 0x50))
    connection.add(CLIENT, fpdu(send(1, TEXT))[:-4] + bytes(4))
    end(connection, SERVER)


def bad_marker(capture):
    connection = connect(capture, flags=(0x50, 0xD0))
    framer = MarkedFramer()
    connection.add(CLIENT, framer.frame(send(1, ramp(400))))
    connection.add(CLIENT, framer.frame(send(2, ramp(400)), skew=4))
    connection.ulpdu(SERVER, terminate(0x20, 3))
    end(connection, SERVER)


def server_first(capture):
    """The server sends before the client has sent anything."""
    connection = connect(capture)
    connection.ulpdu(SERVER, send(1, b"220 ready"))
    connection.ulpdu(CLIENT, send(1, TEXT))
    end(connection, CLIENT)


# ---- captures that lack something

def lost(capture):
    connection = connect(capture)
    for msn in range(1, 6):
        octets = fpdu(send(msn, TEXT))
        if msn in (2, 3):
            connection.sequence[CLIENT] += len(octets)
        else:
            connection.add(CLIENT, octets)
    end(connection, CLIENT)


def middle(capture):
    connection = connect(capture)
    connection.ulpdu(CLIENT, send(1, TEXT))
    capture.packets.clear()
    connection.ulpdu(CLIENT, send(2, TEXT))
    connection.ulpdu(CLIENT, write(WRITABLE, BASE, TEXT))
    end(connection, CLIENT)


# ---- mistakes with Reads

def too_many_reads(capture):
    connection = connect(capture)
    requests = [read_request(i + 1, 0x77, 0x9000 + 8 * i, 8, READABLE, BASE) for i in range(3)]
    connection.add(CLIENT, b"".join(fpdu(request) for request in requests))
    connection.ulpdu(SERVER, terminate(0x12, 2, requests[2]))
    end(connection, SERVER)


def response_order(capture):
    """The server reads, and the client answers its second Read first."""
    connection = connect(capture)
    connection.ulpdu(CLIENT, send(1, TEXT))
    connection.ulpdu(SERVER, read_request(1, SINK, BASE, 16, 0x55, 0x5000))
    connection.ulpdu(SERVER, read_request(2, SINK, BASE + 32, 16, 0x55, 0x6000))
    response = tagged(READ_RESPONSE, SINK, BASE + 32, ramp(16))
    connection.ulpdu(CLIENT, response)
    connection.ulpdu(SERVER, terminate(0x11, 1, response))
    end(connection, SERVER)


def siw_terminate(capture):
    """The server reads memory that the client does not have. The client is Linux siw, which swaps layer and type."""
    connection = connect(capture)
    connection.ulpdu(CLIENT, send(1, TEXT))
    connection.ulpdu(SERVER, read_request(1, SINK, BASE, 16, 0x999, 0x5000))
    connection.ulpdu(CLIENT, terminate(0x10, 0))
    end(connection, CLIENT)


# ---- mistakes in RPC-over-RDMA (RFC 8166 section 4, RFC 5531 section 9, RFC 1813)

def words(*values):
    return struct.pack(f">{len(values)}I", *values)


NULL, READ, READDIR = 0, 6, 16
ACCEPTED, GARBAGE_ARGS = 0, 4
FILE_HANDLE = words(8, 0x77656674, 1)


def header(xid, credit=8, version=1):
    return words(xid, version, credit, 0, 0, 0, 0)


def call(xid, procedure):
    return words(xid, 0, 2, 100003, 3, procedure, 0, 0, 0, 0)


def reply(xid, accept_stat=ACCEPTED):
    return words(xid, 1, 0, 0, 0, accept_stat)


def answered(question, answer):
    def draw(capture):
        connection = connect(capture)
        connection.send(CLIENT, header(0x100) + call(0x100, NULL))
        connection.send(SERVER, header(0x100) + reply(0x100))
        connection.send(CLIENT, question)
        connection.send(SERVER, answer)
        end(connection, CLIENT)
    return draw


def rpc_version(capture):
    """A Call of 2-cel05, and the answer of a server that has version 1 alone."""
    connection = connect(capture)
    connection.send(CLIENT, words(0x102, 2, 8, 0, 0, 0, 0, 0, 0) + call(0x102, NULL))
    connection.send(SERVER, words(0x102, 2, 8, 4, 1, 1, 1))
    end(connection, CLIENT)


def rpc_credits(capture):
    """The server grants 2 credits and has 4 Receives. The client sends 5 Calls at once."""
    connection = connect(capture)
    connection.send(CLIENT, header(0x201) + call(0x201, NULL))
    connection.send(SERVER, header(0x201, credit=2) + reply(0x201))
    for xid in range(0x202, 0x207):
        connection.send(CLIENT, header(xid) + call(xid, NULL))
    connection.ulpdu(SERVER, terminate(0x12, 2, send(6, header(0x206) + call(0x206, NULL))))
    end(connection, SERVER)


REPLY_CHUNK = words(0x104, 1, 8, 0, 0, 0, 1, 1, 0x5A5A0001, 64, 0, 0x9000)

SCENES = {
    "healthy": healthy,
    "markers": markers,
    "wrong-key": wrong_key,
    "wrong-revision": wrong_revision,
    "no-rtr": no_rtr,
    "bad-crc": bad_crc,
    "crc-one-side": crc_one_side,
    "bad-marker": bad_marker,
    "server-first": server_first,
    "lost": lost,
    "middle": middle,
    "msn-gap": refused([send(1, TEXT), send(3, TEXT)], 0x12, 3),
    "no-receive": refused([send(msn, TEXT) for msn in range(1, 6)], 0x12, 2),
    "send-too-long": refused([send(1, TEXT), send(2, ramp(1028))], 0x12, 5),
    "stag-unknown": refused([write(WRITABLE, BASE, TEXT), write(0x999, BASE, TEXT)], 0x11, 0),
    "out-of-bounds": refused([write(WRITABLE, BASE, TEXT), write(WRITABLE, BASE + 56, TEXT)], 0x11, 1),
    "read-only": refused([write(READABLE, BASE, TEXT)], 0x11, 0),
    "write-only": refused([read_request(1, 0x77, 0x9000, 8, WRITABLE, BASE)], 0x01, 2),
    "other-domain": refused([write(OTHER_DOMAIN, BASE, TEXT)], 0x11, 2),
    "unknown-opcode": refused([send(1, TEXT), untagged(15, TEXT, 2)], 0x02, 6),
    "too-many-reads": too_many_reads,
    "response-order": response_order,
    "siw-terminate": siw_terminate,
    "rpc-bad-list": answered(words(0x101, 1, 8, 0, 2, 0, 0) + call(0x101, NULL), words(0x101, 1, 8, 4, 2)),
    "rpc-version": rpc_version,
    "rpc-reply-chunk": answered(REPLY_CHUNK + call(0x104, READDIR) + FILE_HANDLE + words(0, 0, 0, 0, 4096),
                                words(0x104, 1, 8, 4, 2)),
    "rpc-garbage": answered(header(0x105) + call(0x105, READ) + FILE_HANDLE, header(0x105) + reply(0x105, GARBAGE_ARGS)),
    "rpc-unknown-xid": answered(header(0x106) + call(0x106, NULL), header(0x601) + reply(0x601)),
    "rpc-credits": rpc_credits,
}


def make(folder):
    for name, draw in SCENES.items():
        if name in PLAYED:
            continue
        capture = Capture()
        draw(capture)
        capture.write(folder / f"{name}.pcap")


def check_files():
    with tempfile.TemporaryDirectory(prefix="weft-gallery-") as directory:
        made = pathlib.Path(directory)
        make(made)
        names = {file.name for file in made.iterdir()}
        if names | RECORDED | {f"{name}.pcap" for name in PLAYED} != {file.name for file in GALLERY.iterdir()}:
            sys.exit("docs/learn/gallery has other files than gallery.py makes")
        for name in sorted(names):
            if (made / name).read_bytes() != (GALLERY / name).read_bytes():
                sys.exit(f"docs/learn/gallery/{name} is not what gallery.py makes")
            if (made / name).stat().st_size > 20000:
                sys.exit(f"{name} is above 20,000 bytes")


def check_answers(weft):
    """What an answer says of `weft dissect`, it says: a requirement of a violation, or words that it prints."""
    text = (ROOT / "docs/learn/10-answers.md").read_text()
    answers = dict(re.findall(r"^## ([\w-]+)\n(.*?)(?=^## |\Z)", text, re.M | re.S))
    pictures = set(SCENES) - {"healthy", "markers"}
    if set(answers) != pictures:
        sys.exit(f"answers without a capture, or captures without an answer: {sorted(set(answers) ^ pictures)}")
    for name, answer in answers.items():
        said = ""
        for option in ([], ["--check"]):
            command = [weft, "dissect", *option, str(GALLERY / f"{name}.pcap")]
            said += subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
        answer = " ".join(answer.split())
        names = re.findall(r"`weft dissect` names ([A-Z0-9]+-[\w.]+-\d+)", answer)
        violations = re.findall(r"^  VIOLATION ([^ :]+):", said, re.M)
        prints = re.findall(r"`weft dissect` prints `(.+?)`", answer)
        if not names + prints:
            sys.exit(f"{name}: the answer says nothing of weft dissect")
        wrong = [claim for claim in names if claim not in violations] + [claim for claim in prints if claim not in said]
        if wrong:
            sys.exit(f"{name}: weft dissect does not say {', '.join(wrong)}; its violations are {', '.join(violations)}")


def main():
    if sys.argv[1:] == ["make"]:
        return make(GALLERY)
    if len(sys.argv) != 3 or sys.argv[1] != "check":
        return __doc__
    check_files()
    return check_answers(sys.argv[2])


if __name__ == "__main__":
    sys.exit(main())
