"""The scenes of docs/learn/gallery: the octets that the evil peer sends, and the end of Weft that hears them.

A script is a list of octets to send at once, with HEAR where a whole frame of the other end is awaited, and BYE where
the evil peer closes its direction of TCP. Without BYE it waits for the other end to close.
"""

from typing import Callable, NamedTuple

from messages import (CLIENT, NULL, READ, READ_RESPONSE, READDIR, SERVER, XID, MarkedFramer, call, fpdu, header, ramp,
                      read_request, reply, reply_frame, request, send, tagged, terminate, untagged, words, write)
from mount import mount_root

HEAR, BYE = "hear", "bye"

# The ends of Weft.
PING = ["weft", "ping", "--listen", "127.0.0.1:0"]
SERVE = ["weft", "serve", "--listen", "127.0.0.1:0", "--mount-listen", "127.0.0.1:0", "--ird", "2", "--ord", "2"]
RPC_SERVER, RPC_CLIENT = ["rpc_end", "serve"], ["rpc_end", "call"]

# Memory of the plain end (tests/dissect/ends) and of its peer, 64 bytes each.
WRITABLE, READABLE = (0x1A2B3C01, 0x10000), (0x2B3C4D02, 0x11000)
FOREIGN, SINK = (0x4D5E6F04, 0x12000), (0x6F708106, 0x13000)
PEER_SINK, PEER_SOURCE = (0x8192A307, 0x20000), (0x92A3B408, 0x21000)
UNKNOWN = 0x999
TEXT = "ABCDEFGHIJKLMNOPQRST"


def place(memory, offset=0):
    return f"{memory[0]:x}:{memory[1] + offset:x}"


def listener(*steps, options=()):
    """A plain end that owns memory of each kind."""
    memory = [(WRITABLE, "write"), (READABLE, "read"), (FOREIGN, "foreign"), (SINK, "sink")]
    flags = [f"--memory={place(one)}:{rights}" for one, rights in memory]
    return ["plain_end", "--listen", *flags, *options, "127.0.0.1", "0", *steps]


def client(*steps, options=()):
    flags = [f"--memory={place(one)}:{rights}" for one, rights in [(PEER_SINK, "sink"), (PEER_SOURCE, "read")]]
    return ["plain_end", *flags, *options, "127.0.0.1", "PORT", *steps]


class Scene(NamedTuple):
    """One end is Weft's, and its trace is the capture.

    script: a function where it needs what the end told of itself when it was ready.
    renames: gives the octets of the recorded frames that differ from run to run, with the octets of the gallery.
    """
    end: list
    script: list | Callable
    role: str = CLIENT  # of the evil peer
    renames: Callable = lambda frames: {}


class Pair(NamedTuple):
    """Both ends are Weft's, and the client's trace is the capture. lacks: the frames that it then loses."""
    server: list
    client: list
    lacks: tuple = ()


# ---- one connection

def connected(*script, **request_fields):
    return [request(**request_fields), HEAR, *script]


def refused(*ulpdus, end=None):
    """The client sends ULPDUs, and the end refuses the last one."""
    return Scene(end or listener(), connected(*map(fpdu, ulpdus)))


def text(msn):
    return send(msn, TEXT.encode())


def answered(question):
    """Two Calls of RPC. The first one is good, and both are answered."""
    return connected(fpdu(send(1, header(0x100) + call(0x100, NULL))), HEAR, fpdu(send(2, question)), HEAR, BYE)


# ---- without a mistake

def healthy():
    server = listener("receive", "receive", f"read:{place(PEER_SOURCE)}:{SINK[1]:x}", "done", "send:0123456789")
    return Pair(server, client(f"send:{TEXT}", f"write:{place(WRITABLE, 16)}:abcdefghijklmnopqrstuvwxyz012345",
                               f"read:{place(READABLE)}:{PEER_SINK[1]:x}", "done", "send:now you", "receive"))


def markers():
    long_text = "".join(chr(ord(" ") + i % 95) for i in range(900))
    return Pair(listener(options=["--markers"]), client(f"send:{long_text}", options=["--max-fpdu", "428"]))


def middle():
    """The capture begins behind the set-up and the first Send."""
    return Pair(listener(), client(f"send:{TEXT}", f"send:{TEXT}", f"write:{place(WRITABLE)}:{TEXT}"), lacks=(0, 1, 2))


# ---- mistakes in MPA

def one_bit_changed():
    octets = bytearray(fpdu(text(2)))
    octets[25] ^= 0x04
    return bytes(octets)


def bad_marker():
    framer = MarkedFramer()
    first = framer.frame(send(1, ramp(400)))
    return Scene(listener(options=["--markers"]), connected(first, framer.frame(send(2, ramp(400)), skew=4)))


# ---- mistakes with Reads

def too_many_reads():
    requests = [read_request(i + 1, PEER_SINK[0], PEER_SINK[1] + 8 * i, 8, *READABLE) for i in range(3)]
    return Scene(listener(), connected(b"".join(map(fpdu, requests))))


def reader(*reads):
    return listener("receive", *reads)


def response_order():
    """The server reads, and the client answers its second Read first."""
    first, second = (f"read:{place(PEER_SOURCE, offset)}:{SINK[1] + 2 * offset:x}" for offset in (0, 16))
    response = tagged(READ_RESPONSE, SINK[0], SINK[1] + 32, ramp(16))
    return Scene(reader(first, second), connected(fpdu(text(1)), HEAR, HEAR, fpdu(response)))


def siw_terminate():
    """The server reads memory that the client does not have. The client ends as Linux siw does, which swaps layer and
    type."""
    read = f"read:{UNKNOWN:x}:{PEER_SOURCE[1]:x}:{SINK[1]:x}"
    return Scene(reader(read), connected(fpdu(text(1)), HEAR, fpdu(terminate(0x10, 0)), BYE))


# ---- mistakes in RPC-over-RDMA

def version_2(xid):
    """A Call of 2-cel05."""
    return words(xid, 2, 8, 0, 0, 0, 0, 0, 0) + call(xid, NULL)


FILE_HANDLE = words(8, 0x77656674, 1)


def reply_chunk():
    """READDIR of a directory with many names."""
    front = words(0x104, 1, 8, 0, 0, 0, 1, 1, 0x5A5A0001, 64, 0, 0x9000) + call(0x104, READDIR)
    handle_at = 2 + 18 + len(front) + 4

    def script(ready):
        return answered(front + mount_root(ready["mount"]) + words(0, 0, 0, 0, 4096))

    def renames(frames):
        """A server makes the handle of a file, and the key for that is a new one each time."""
        question = [octets for sender, octets in frames if sender == CLIENT][-1]
        handle = question[handle_at:handle_at + int.from_bytes(question[handle_at - 4:handle_at], "big")]
        return {handle: ramp(len(handle), 0x80)}

    return Scene(SERVE, script, renames=renames)


def unknown_xid():
    """The evil peer is a server. XIDs begin with a random number."""
    def answer(call_heard, xid=None):
        xid = xid or int.from_bytes(call_heard[XID], "big")
        return header(xid) + reply(xid)

    def renames(frames):
        calls = [octets[2:] for sender, octets in frames if sender == CLIENT and octets][1:]
        return {one[XID]: words(0x105 + i) for i, one in enumerate(calls)}

    script = [HEAR, reply_frame(), HEAR, lambda heard: fpdu(send(1, answer(heard))), HEAR,
              lambda heard: fpdu(send(2, answer(heard, 0x601)))]
    return Scene(RPC_CLIENT, script, role=SERVER, renames=renames)


def rpc_credits():
    """The server grants 2 credits and has 4 Receives. The client sends 5 Calls at once."""
    def one(msn, xid):
        return fpdu(send(msn, header(xid) + call(xid, NULL)))

    return Scene(RPC_SERVER, connected(one(1, 0x201), HEAR, b"".join(one(2 + i, 0x202 + i) for i in range(5))))


SCENES = {
    "healthy": healthy(),
    "markers": markers(),
    "wrong-key": Scene(PING, [b"GET / HTTP/1.1\r\nHost: 192.0.2.2:20049\r\n\r\n"]),
    "wrong-revision": Scene(PING, [request(revision=3)]),
    # The peer-to-peer model with a ready-to-receive message by RDMA Read (RFC 6581 section 9.2).
    "no-rtr": Scene(listener(), connected(fpdu(text(1)), BYE, depths=(0x8002, 0x4002))),
    "bad-crc": Scene(SERVE, connected(fpdu(text(1)), one_bit_changed())),
    "crc-one-side": Scene(PING, connected(fpdu(text(1))[:-4] + bytes(4), flags=0x10)),
    "bad-marker": bad_marker(),
    "server-first": Scene(client("receive", f"send:{TEXT}"), [HEAR, reply_frame(), fpdu(send(1, b"220 ready"))],
                          role=SERVER),
    "lost": Pair(listener(options=["--receives=5"]), client(*[f"send:{TEXT}"] * 5), lacks=(3, 4)),
    "middle": middle(),
    "msn-gap": refused(text(1), text(3), end=SERVE),
    "no-receive": refused(*map(text, range(1, 6))),
    "send-too-long": refused(text(1), send(2, ramp(1028))),
    "stag-unknown": refused(write(*WRITABLE, TEXT.encode()), write(UNKNOWN, WRITABLE[1], TEXT.encode())),
    "out-of-bounds": refused(write(*WRITABLE, TEXT.encode()), write(WRITABLE[0], WRITABLE[1] + 56, TEXT.encode())),
    "read-only": refused(write(*READABLE, TEXT.encode())),
    "write-only": refused(read_request(1, *PEER_SINK, 8, *WRITABLE)),
    "other-domain": refused(write(*FOREIGN, TEXT.encode())),
    "unknown-opcode": refused(text(1), untagged(15, TEXT.encode(), 2), end=SERVE),
    "too-many-reads": too_many_reads(),
    "response-order": response_order(),
    "siw-terminate": siw_terminate(),
    "rpc-bad-list": Scene(SERVE, answered(words(0x101, 1, 8, 0, 2, 0, 0) + call(0x101, NULL))),
    "rpc-version": Scene([*SERVE, "--rpcrdma", "1"], connected(fpdu(send(1, version_2(0x102))), HEAR, BYE)),
    "rpc-reply-chunk": reply_chunk(),
    "rpc-garbage": Scene(SERVE, answered(header(0x105) + call(0x105, READ) + FILE_HANDLE)),
    "rpc-unknown-xid": unknown_xid(),
    "rpc-credits": rpc_credits(),
}
