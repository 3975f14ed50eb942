"""How many planted violations `weft dissect --check` names: in whole captures, and in captures whose packets were swapped
or lost.

planted.py WEFT [SEED [TRIALS]]: prints a line for each edit; exit status 1 if fewer than LEAST are named, or if an edit
of healthy traffic has a finding. Each trial is a connection of NFSv3 over RPC-over-RDMA version 1 with one violation at
a random place. The violation's own packets stay as they are. Needs no network.
"""

import json
import random
import struct
import subprocess
import sys
import tempfile

from messages import (CLIENT, NULL, READ, READ_REQUEST, READ_RESPONSE, SEND, SERVER, TERMINATE, WRITE, call, fpdu, header,
                      ramp, read_request, reply, reply_frame, request, tagged, untagged, words)
from capture import ACK, ADDRESSES, RAW_IPV4, SERVER_PORT, SYN  # noqa: E402

LEAST = {"whole": 0.85, "swapped": 0.85, "crossed": 0.85, "lost": 0.75}  # of the violations
NUM_ROUNDS = 10
WRITE_PROCEDURE, GETATTR, READDIRPLUS, MNT, MOUNT = 7, 1, 17, 1, (100005, 3)
ATOMIC_REQUEST, ATOMIC_RESPONSE, IMMEDIATE = 10, 11, 8
HANDLE = words(8, 0x77656674, 1)


def other(side):
    return SERVER if side == CLIENT else CLIENT


class Talk:
    """One connection: `packets` are (sender, TCP payload, acknowledged octets of the other side, whether it is planted)."""

    def __init__(self, rng):
        self.rng = rng
        self.packets = []
        self.octets = {CLIENT: 0, SERVER: 0}
        self.msn = {CLIENT: 0, SERVER: 0}
        self.reads = {CLIENT: 0, SERVER: 0}
        self.xid = rng.getrandbits(30)
        self.stag = 0x1000
        self.planting = False
        self.tcp(CLIENT, request((0x0004, 0x0004)))
        self.tcp(SERVER, reply_frame((0x0004, 0x0004)))

    def tcp(self, sender, octets):
        self.octets[sender] += len(octets)
        self.packets.append((sender, octets, self.octets[other(sender)], self.planting))

    def ulpdu(self, sender, ulpdu):
        self.tcp(sender, fpdu(ulpdu))

    def send(self, sender, message, opcode=SEND, word=0):
        self.msn[sender] += 1
        octets = untagged(opcode, message, self.msn[sender])
        self.ulpdu(sender, octets[:2] + words(word) + octets[6:])

    def write(self, stag, offset, payload, cut=None):
        """An RDMA Write in one segment, or in two."""
        if cut:
            first = bytearray(tagged(WRITE, stag, offset, payload[:cut]))
            first[0] &= 0xBF
            self.ulpdu(SERVER, bytes(first))
            offset, payload = offset + cut, payload[cut:]
        self.ulpdu(SERVER, tagged(WRITE, stag, offset, payload))

    def read(self, stag, offset, size, sink=0x99):
        self.reads[SERVER] += 1
        self.ulpdu(SERVER, read_request(self.reads[SERVER], sink, offset, size, stag, offset))

    def respond(self, size, offset=0, sink=0x99):
        self.ulpdu(CLIENT, tagged(READ_RESPONSE, sink, offset, ramp(size)))

    def next_xid(self):
        self.xid += 1
        return self.xid

    def next_stag(self):
        self.stag += 1
        return self.stag

    # ---- the three kinds of rounds

    def null(self):
        xid = self.next_xid()
        self.send(CLIENT, header(xid) + call(xid, NULL))
        self.send(SERVER, header(xid) + reply(xid))

    def begin_read(self, size=3000):
        xid, stag = self.next_xid(), self.next_stag()
        self.send(CLIENT, words(xid, 1, 8, 0, 0, 1, 1, stag, size, 0, 0x9000, 0, 0) + call(xid, READ) + HANDLE +
                  words(0, 0, size))
        return xid, stag

    def read_reply(self, xid, chunks, size):
        """chunks: the Write list as it comes back."""
        lists = b"".join(words(1, len(one)) + b"".join(words(*segment) for segment in one) for one in chunks)
        self.send(SERVER, words(xid, 1, 8, 0, 0) + lists + words(0, 0) + reply(xid) + words(0, 0, size, 1, size))

    def read_round(self, size=3000):
        xid, stag = self.begin_read(size)
        self.write(stag, 0x9000, ramp(size), self.rng.choice([None, 1400]))
        self.read_reply(xid, [[(stag, size, 0, 0x9000)]], size)

    def begin_write(self, size=2000, chunk=None, position=72, procedure=WRITE_PROCEDURE):
        xid, stag = self.next_xid(), self.next_stag()
        self.send(CLIENT, words(xid, 1, 8, 0, 1, position, stag, chunk or size, 0, 0x7000, 0, 0, 0) +
                  call(xid, procedure) + HANDLE + words(0, 0, size, 2, size))
        return xid, stag

    def write_reply(self, xid, size=2000):
        self.send(SERVER, header(xid) + reply(xid) + words(0, 0, 0, size, 2, 0, 0))

    def write_round(self, size=2000):
        xid, stag = self.begin_write(size)
        self.read(stag, 0x7000, size)
        self.respond(size, 0x7000)
        self.write_reply(xid, size)

    def pipelined(self):
        """Three Calls at once, and the Replies in another order."""
        xids = [self.next_xid() for _ in range(3)]
        for xid in xids:
            self.send(CLIENT, header(xid) + call(xid, NULL))
        for xid in reversed(xids):
            self.send(SERVER, header(xid) + reply(xid))

    def round(self):
        self.rng.choice([self.null, self.read_round, self.write_round, self.pipelined])()


KINDS = {}  # by name: the requirement, the function, and whether the connection ends there


def plant(requirement, ends=False):
    def keep(function):
        KINDS[function.__name__] = requirement, function, ends
        return function
    return keep


def patched(octets, at, value):
    octets = bytearray(octets)
    octets[at] = value
    return bytes(octets)


# ---- MPA and DDP

@plant("MPA-4.4-20", ends=True)
def bad_crc(talk):
    talk.msn[CLIENT] += 1
    octets = fpdu(untagged(SEND, header(1) + call(1, NULL), talk.msn[CLIENT]))
    talk.tcp(CLIENT, patched(octets, 30, octets[30] ^ 4))


@plant("MPA-4.1-03")
def pad(talk):
    from capture import crc32c
    framed = struct.pack(">H", 17) + tagged(WRITE, 5, 0, ramp(3)) + b"\1"
    talk.tcp(CLIENT, framed + struct.pack("<I", crc32c(framed)))


@plant("DDP-7.2-07", ends=True)
def tagged_version(talk):
    talk.ulpdu(CLIENT, patched(tagged(WRITE, 5, 0, ramp(30)), 0, 0xC2))


@plant("DDP-7.2-13", ends=True)
def untagged_version(talk):
    talk.ulpdu(CLIENT, patched(untagged(SEND, ramp(30), talk.msn[CLIENT] + 1), 0, 0x42))


@plant("DDP-4.1-10")
def ddp_rsvd(talk):
    xid = talk.next_xid()
    talk.msn[CLIENT] += 1
    talk.ulpdu(CLIENT, patched(untagged(SEND, header(xid) + call(xid, NULL), talk.msn[CLIENT]), 0, 0x45))


@plant("DDP-7.1-01", ends=True)
def queue(talk):
    talk.ulpdu(CLIENT, untagged(SEND, ramp(30), 1, queue=9))


@plant("DDP-7.1-09", ends=True)
def msn_again(talk):
    talk.ulpdu(CLIENT, untagged(SEND, ramp(30), talk.msn[CLIENT]))


@plant("DDP-7.1-09", ends=True)
def msn_of_reads(talk):
    talk.ulpdu(SERVER, read_request(talk.reads[SERVER] + 3, 0x99, 0, 8, 5, 0))


@plant("DDP-7.1-07", ends=True)
def mo(talk):
    octets = untagged(SEND, ramp(30), talk.msn[CLIENT] + 1)
    talk.ulpdu(CLIENT, patched(octets, 0, 0x01))
    talk.ulpdu(CLIENT, octets[:14] + words(40) + octets[18:])


@plant("DDP-7.1-15", ends=True)
def to_wrap(talk):
    talk.ulpdu(SERVER, tagged(WRITE, 5, 2**64 - 8, ramp(30)))


@plant("DDP-7.1-11", ends=True)
def stag(talk):
    talk.ulpdu(SERVER, tagged(WRITE, 0x777, 0x9000, ramp(30)))


@plant("DDP-7.1-14", ends=True)
def bounds(talk):
    _, where = talk.begin_read()
    talk.write(where, 0x9000, ramp(3001))


@plant("DDP-4.4-01", ends=True)
def short_segment(talk):
    talk.ulpdu(CLIENT, tagged(WRITE, 5, 0, b"")[:9])


# ---- RDMAP

@plant("RDMAP-7.2-03", ends=True)
def rdmap_version(talk):
    talk.ulpdu(CLIENT, patched(untagged(SEND, ramp(30), talk.msn[CLIENT] + 1), 1, 0x83))


@plant("RDMAP-7.2-02", ends=True)
def opcode(talk):
    talk.ulpdu(CLIENT, untagged(13, ramp(30), talk.msn[CLIENT] + 1))


@plant("RDMAP-7.2-02", ends=True)
def tagged_send(talk):
    talk.ulpdu(CLIENT, tagged(SEND, 5, 0, ramp(30)))


@plant("RDMAP-7.2-02", ends=True)
def tagged_inside_tagged(talk):
    xid, where = talk.begin_write()
    talk.read(where, 0x7000, 2000)
    talk.ulpdu(CLIENT, patched(tagged(READ_RESPONSE, 0x99, 0x7000, ramp(1000)), 0, 0x81))
    talk.ulpdu(CLIENT, tagged(WRITE, 5, 0, ramp(30)))


@plant("RDMAP-4.1-11")
def invalidate_word(talk):
    xid = talk.next_xid()
    talk.send(CLIENT, header(xid) + call(xid, NULL), word=9)


@plant("RDMAP-5.2.2-05", ends=True)
def response_unasked(talk):
    talk.respond(30)


@plant("RDMAP-5.2.2-08", ends=True)
def response_elsewhere(talk):
    _, where = talk.begin_write()
    talk.read(where, 0x7000, 2000)
    talk.respond(2000, 0x7100)


@plant("RDMAP-5.2.2-08", ends=True)
def response_too_long(talk):
    _, where = talk.begin_write()
    talk.read(where, 0x7000, 1000)
    talk.respond(1004, 0x7000)


@plant("RDMAP-7.2-06", ends=True)
def read_stag(talk):
    talk.read(0x777, 0, 100)


@plant("RDMAP-7.2-08", ends=True)
def read_bounds(talk):
    _, where = talk.begin_write()
    talk.read(where, 0x7000, 2001)


@plant("RDMAP-7.2-09", ends=True)
def read_wrap(talk):
    talk.reads[SERVER] += 1
    talk.ulpdu(SERVER, read_request(talk.reads[SERVER], 0x99, 0, 100, 5, 2**64 - 4))


@plant("RDMAP-4.4-01", ends=True)
def read_short(talk):
    talk.ulpdu(SERVER, untagged(READ_REQUEST, ramp(20), talk.reads[SERVER] + 1, queue=1))


@plant("DDP-7.1-02", ends=True)
def too_many_reads(talk):
    _, where = talk.begin_write()
    for at in range(5):
        talk.read(where, 0x7000 + 8 * at, 8)


@plant("RDMAP-5.4-09", ends=True)
def behind_terminate(talk):
    talk.ulpdu(CLIENT, untagged(TERMINATE, bytes(4), 1, queue=2))
    xid = talk.next_xid()
    talk.send(CLIENT, header(xid) + call(xid, NULL))


@plant("RDMAP-7.1-03", ends=True)
def terminate_of_nothing(talk):
    about = untagged(SEND, b"", talk.msn[CLIENT] + 4)
    talk.ulpdu(SERVER, untagged(TERMINATE, bytes([0x12, 5, 0xC0, 0]) + struct.pack(">H", 900) + about, 1, queue=2))


@plant("DDP-7.2-09", ends=True)
def no_receive(talk):
    xid = talk.next_xid()
    talk.send(CLIENT, header(xid) + call(xid, NULL))
    about = untagged(SEND, b"", talk.msn[CLIENT])
    talk.ulpdu(SERVER, untagged(TERMINATE, bytes([0x12, 2, 0xC0, 0]) + struct.pack(">H", 86) + about, 1, queue=2))


@plant("EXT-5.1.1-04", ends=True)
def atomic_address(talk):
    talk.reads[CLIENT] += 1
    talk.ulpdu(CLIENT, untagged(ATOMIC_REQUEST, struct.pack(">IIIQ", 0, 7, 5, 3) + bytes(32), talk.reads[CLIENT], queue=1))


@plant("DDP-7.1-02", ends=True)
def atomic_response_unasked(talk):
    talk.ulpdu(CLIENT, untagged(ATOMIC_RESPONSE, bytes(12), 1, queue=3))


@plant("EXT-6.3-04", ends=True)
def immediate(talk):
    talk.send(CLIENT, ramp(9), opcode=IMMEDIATE)


# ---- RPC-over-RDMA

def faulty_call(talk, fields):
    xid = talk.next_xid()
    talk.send(CLIENT, words(xid) + fields + call(xid, NULL))


@plant("R1-5.2.2-01")
def version(talk):
    faulty_call(talk, words(3, 8, 0, 0, 0, 0))


@plant("R1-5.3-01")
def discriminator(talk):
    faulty_call(talk, words(1, 8, 0, 0, 2, 0))


@plant("R1-5.5.2-02")
def procedure(talk):
    faulty_call(talk, words(1, 8, 5, 0, 0, 0))


@plant("R1-5.6.2-01")
def done(talk):
    talk.send(CLIENT, words(talk.next_xid(), 1, 8, 3, 0, 0, 0))


@plant("R1-5.2.4-02")
def empty_nomsg(talk):
    talk.send(CLIENT, words(talk.next_xid(), 1, 8, 1, 0, 0, 0))


@plant("R1-5.2.1-01")
def xids_differ(talk):
    xid = talk.next_xid()
    talk.send(CLIENT, header(xid) + call(xid + 0x1000, NULL))


@plant("R1-4.4.5-05")
def position(talk):
    talk.begin_write(position=73)


@plant("R1-4.4.4.1-03")
def read_chunk_length(talk):
    talk.begin_write(size=2000, chunk=1996)


@plant("R1-8.1.1-01")
def argument(talk):
    xid, where = talk.next_xid(), talk.next_stag()
    talk.send(CLIENT, words(xid, 1, 8, 0, 1, 44, where, 8, 0, 0x7000, 0, 0, 0) + call(xid, GETATTR) + words(8))


@plant("R1-5.3.1-02")
def reply_with_read_list(talk):
    xid = talk.next_xid()
    talk.send(CLIENT, header(xid) + call(xid, NULL))
    talk.send(SERVER, words(xid, 1, 8, 0, 1, 0, 5, 8, 0, 0, 0, 0, 0) + reply(xid))


@plant("R1-3.1.2-01")
def reply_unasked(talk):
    xid = talk.next_xid()
    talk.send(SERVER, header(xid) + reply(xid))


@plant("R1-3.1.2-01")
def reply_twice(talk):
    xid = talk.next_xid()
    talk.send(CLIENT, header(xid) + call(xid, NULL))
    for _ in range(2):
        talk.send(SERVER, header(xid) + reply(xid))


def faulty_reply(talk, chunks, size=3000):
    xid, where = talk.begin_read()
    talk.write(where, 0x9000, ramp(size))
    talk.read_reply(xid, chunks(where), 3000)


@plant("R1-4.4.6-05")
def segments(talk):
    faulty_reply(talk, lambda where: [[(where, 1500, 0, 0x9000), (where, 1500, 0, 0x9000 + 1500)]])


@plant("R1-4.4.6-04")
def other_handle(talk):
    faulty_reply(talk, lambda where: [[(where + 0x50, 3000, 0, 0x9000)]])


@plant("R1-4.4.6-09")
def no_chunk(talk):
    faulty_reply(talk, lambda where: [])


@plant("R1-4.4.6.1-03")
def not_written(talk):
    faulty_reply(talk, lambda where: [[(where, 3000, 0, 0x9000)]], size=2000)


@plant("R1-5.3.3-05")
def no_reply_chunk(talk):
    xid, where = talk.next_xid(), talk.next_stag()
    talk.send(CLIENT, words(xid, 1, 8, 0, 0, 0, 1, 1, where, 4096, 0, 0) + call(xid, NULL))
    talk.send(SERVER, header(xid) + reply(xid))


@plant("R1-8.1.1-04")
def eligible_inline(talk):
    xid, where = talk.begin_read(200)
    talk.send(SERVER, words(xid, 1, 8, 0, 0, 1, 1, where, 0, 0, 0x9000, 0, 0) + reply(xid) + words(0, 0, 200, 1, 200) +
              ramp(200))


@plant("R1-4.3.1-05")
def no_credits(talk):
    xid = talk.next_xid()
    talk.send(CLIENT, header(xid) + call(xid, NULL))
    talk.send(SERVER, words(xid, 1, 0, 0, 0, 0, 0) + reply(xid))


@plant("R1-4.3.1-04")
def too_many_calls(talk):
    for _ in range(9):
        xid = talk.next_xid()
        talk.send(CLIENT, header(xid) + call(xid, NULL))


@plant("R1-5.5-04")
def error_unasked(talk):
    talk.send(SERVER, words(talk.next_xid(), 1, 8, 4, 2))


@plant("R1-5.5-05")
def error_of_other_version(talk):
    xid = talk.next_xid()
    talk.send(CLIENT, header(xid) + call(xid, NULL))
    talk.send(SERVER, words(xid, 2, 8, 4, 2))


@plant("R1-5.5.1-01")
def version_that_is_supported(talk):
    xid = talk.next_xid()
    talk.send(CLIENT, header(xid) + call(xid, NULL))
    talk.send(SERVER, words(xid, 1, 8, 4, 1, 1, 1))


@plant("R1-4.3.2-16")
def invalidates_what_was_not_offered(talk):
    xid, where = talk.begin_read()
    talk.write(where, 0x9000, ramp(3000))
    talk.send(SERVER, words(xid, 1, 8, 0, 0, 1, 1, where, 3000, 0, 0x9000, 0, 0) + reply(xid) +
              words(0, 0, 3000, 1, 3000), opcode=4, word=0x4444)


# ---- edits

def whole(rng, packets, planted):
    return packets


def pairs(packets, last, is_good):
    """Places of neighbours among the packets behind the set-up, up to `last`."""
    return [i for i in range(3, last + 1) if is_good(packets[i - 1][0] == packets[i][0]) and
            not (packets[i - 1][3] and packets[i][3])]


def exchange(packets, i):
    return packets[:i - 1] + [packets[i], packets[i - 1]] + packets[i + 1:]


def swapped(rng, packets, planted):
    """One packet overtakes the one before it, of the same side."""
    places = pairs(packets, planted, lambda is_same: is_same)
    return exchange(packets, rng.choice(places)) if places else None


def crossed(rng, packets, planted):
    """The capture has two neighbours of both sides in the wrong order."""
    places = pairs(packets, planted, lambda is_same: not is_same)
    return exchange(packets, rng.choice(places)) if places else None


def lost(rng, packets, planted):
    places = [i for i in range(2, planted) if not packets[i][3]]
    if not places:
        return None
    i = rng.choice(places)
    return packets[:i] + packets[i + 1:]


EDITS = {"whole": whole, "swapped": swapped, "crossed": crossed, "lost": lost}


def conversation(rng, kind):
    """The packets with their sequence numbers, and the place of the last planted one."""
    talk = Talk(rng)
    talk.null()
    at = rng.randrange(2, NUM_ROUNDS) if kind else NUM_ROUNDS
    for _ in range(at):
        talk.round()
    last = len(talk.packets) - 1
    ends = False
    if kind:
        _, function, ends = KINDS[kind]
        talk.planting = True
        function(talk)
        talk.planting = False
        last = len(talk.packets) - 1
    if kind and not ends:
        talk.round()
    sequence, numbered = {CLIENT: 1, SERVER: 1}, []
    for sender, octets, acknowledged, is_planted in talk.packets:
        numbered.append((sender, octets, sequence[sender], is_planted, acknowledged))
        sequence[sender] += len(octets)
    return numbered, last


def ip_packet(port, sender, sequence, acknowledged, flags, octets):
    ports = (port, SERVER_PORT) if sender == CLIENT else (SERVER_PORT, port)
    tcp = struct.pack(">HHIIBBHHH", *ports, sequence, acknowledged, 0x50, flags, 65535, 0, 0)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40 + len(octets), 0, 0x4000, 64, 6, 0, ADDRESSES[sender],
                     ADDRESSES[other(sender)])
    return ip + tcp + octets


def write_capture(path, connections):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, RAW_IPV4))
        number = 0

        def put(packet):
            nonlocal number
            file.write(struct.pack("<IIII", number // 10000, number % 10000 * 100, len(packet), len(packet)) + packet)
            number += 1

        for port, packets in connections:
            put(ip_packet(port, CLIENT, 0, 0, SYN, b""))
            put(ip_packet(port, SERVER, 0, 1, SYN | ACK, b""))
            put(ip_packet(port, CLIENT, 1, 1, ACK, b""))
            for sender, octets, sequence, _, acknowledged in packets:
                put(ip_packet(port, sender, sequence, 1 + acknowledged, ACK, octets))


def findings(weft, connections):
    """The requirements that are named, by the port of the client."""
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        write_capture(file.name, connections)
        run = subprocess.run([weft, "dissect", "--json", file.name], capture_output=True, check=True)
    ports, named = {}, {port: [] for port, _ in connections}
    for line in run.stdout.splitlines():
        told = json.loads(line)
        if next(iter(told)) == "connection":
            ports[int(told["connection"])] = int(told["client"].rsplit(":", 1)[1])
        for one in told.get("violations", []) if "frame" in told else []:
            named[ports[int(told["connection"])]].append(one["requirement"])
    return named


def trials(weft, edit, seed, num):
    """For each kind: how many of its violations are named, of how many. None: healthy traffic."""
    plan, connections = {}, []
    for i, kind in enumerate([*KINDS] * num + [None] * 10 * num):
        rng = random.Random(f"{seed} {i}")
        packets, last = conversation(rng, kind)
        edited = EDITS[edit](rng, packets, last)
        if edited is None:
            continue
        port = 1024 + len(plan)
        plan[port] = kind
        connections.append((port, edited))
    named, counts = findings(weft, connections), {}
    for port, kind in plan.items():
        good = KINDS[kind][0] in named[port] if kind else not named[port]
        if not kind and named[port]:
            print(f"{edit}, healthy, port {port}: {named[port]}", file=sys.stderr)
        before = counts.get(kind, (0, 0))
        counts[kind] = before[0] + good, before[1] + 1
    return counts


def main(weft, seed=28, num=20):
    failures = []
    for edit, least in LEAST.items():
        counts = trials(weft, edit, seed, int(num))
        healthy = counts.pop(None)
        good, of = (sum(column) for column in zip(*counts.values()))
        print(f"{edit}: {good} of {of} violations are named ({good / of:.0%}), {healthy[1] - healthy[0]} of {healthy[1]} "
              f"healthy connections have findings; seed {seed}")
        weak = [f"{kind} {hit}/{total}" for kind, (hit, total) in counts.items() if hit < total * least]
        if weak:
            print("    least: " + ", ".join(weak))
        if good < least * of or healthy[0] != healthy[1]:
            failures.append(edit)
    return f"FAILED: {', '.join(failures)}" if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
