"""The memory of `weft dissect` does not depend on the length of the capture.

memory.py WEFT [SHORT LONG]: makes two captures of one long connection, of SHORT and LONG million octets, and two of short
connections, one after the other. Compares the peak of the resident memory in each output mode. Without SHORT and LONG
these are 1 and 4. Exit status 1 where the long capture takes 1.75 MiB more (4 MiB with other lengths), where ten times as
many messages of a peer that means harm take 8 MiB more, or where an attempt to connect that nothing answers holds more
than 8 KiB, or an open connection more than 12 with --summary.
"""

import os
import pathlib
import struct
import subprocess
import sys
import tempfile

MODES = ([], ["-v"], ["--check"], ["--summary"], ["--ladder"], ["--json"])
SIZES = (1, 4)  # million octets of the captures, unless told otherwise
ROOM_KIB, ROOM_OF_OTHER_SIZES_KIB = 1792, 4096
HOSTILE_KIB = 8192
CONNECTION_KIB = 8
OPEN_KIB = 12
FIN, SYN, ACK = 0x01, 0x02, 0x10
RESULT = 64  # octets of each READ: the shorter the messages, the more of them a leak would keep


def startup(reply):
    return (b"MPA ID Rep Frame" if reply else b"MPA ID Req Frame") + bytes([0, 1, 0, 0])


def fpdu(ulpdu):
    octets = struct.pack(">H", len(ulpdu)) + ulpdu
    return octets + bytes(-len(octets) % 4) + bytes(4)  # both sides want no CRC


def send(msn, message):
    return fpdu(struct.pack(">BBIIII", 0x41, 0x43, 0, 0, msn & 0xFFFFFFFF, 0) + message)


def write(length, to):
    return fpdu(struct.pack(">BBIQ", 0xC1, 0x40, 0xABC, to) + bytes(length))


def call(xid):
    header = struct.pack(">7I", xid, 1, 32, 0, 0, 1, 1) + struct.pack(">IIQ", 0xABC, RESULT, 0x5000) + bytes(8)
    rpc = struct.pack(">10I", xid, 0, 2, 100003, 3, 6, 0, 0, 0, 0)
    return header + rpc + struct.pack(">I4sQI", 4, b"file", 0, RESULT)


def reply(xid):
    header = struct.pack(">7I", xid, 1, 32, 0, 0, 1, 1) + struct.pack(">IIQ", 0xABC, RESULT, 0x5000) + bytes(8)
    return header + struct.pack(">7I", xid, 1, 0, 0, 0, 0, 0) + struct.pack(">IIII", 0, RESULT, 1, RESULT)


class Capture:
    """A pcap file with a TCP connection, raw IP."""

    def __init__(self, path):
        self.out = open(path, "wb")
        self.out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 101))
        self.seq = [1000, 2000]
        self.port = 40000
        self.packets = 0
        self.octets = 0

    def segment(self, end, payload, flags=ACK):
        tcp = struct.pack(">HHIIBBHHH", self.port if end == 0 else 20049, 20049 if end == 0 else self.port,
                          self.seq[end] & 0xFFFFFFFF, self.seq[1 - end] & 0xFFFFFFFF, 0x50, flags, 65535, 0, 0)
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40 + len(payload), 0, 0, 64, 6, 0, bytes([10, 0, 0, 1 + end]),
                         bytes([10, 0, 0, 2 - end]))
        octets = ip + tcp + payload
        self.packets += 1
        self.out.write(struct.pack("<IIII", self.packets // 1000000, self.packets % 1000000, len(octets), len(octets)))
        self.out.write(octets)
        self.octets += 16 + len(octets)
        self.seq[end] += len(payload) + (1 if flags & (SYN | FIN) else 0)


def begin(capture):
    capture.segment(0, b"", SYN)
    capture.segment(1, b"", SYN | ACK)
    capture.segment(0, startup(False))
    capture.segment(1, startup(True))


def read(capture, xid, msn):
    capture.segment(0, send(msn, call(xid)))
    capture.segment(1, write(RESULT, 0x5000))
    capture.segment(1, send(msn, reply(xid)))


def one_connection(path, octets):
    capture = Capture(path)
    begin(capture)
    xid = 0
    while capture.octets < octets:
        xid += 1
        read(capture, xid, xid)
    capture.out.close()


def many_connections(path, octets):
    """The client's ports go round, as those of a machine do."""
    capture = Capture(path)
    while capture.octets < octets:
        capture.port = 1024 + (capture.port - 1023) % 64000
        begin(capture)
        read(capture, 7, 1)
        capture.segment(0, b"", FIN | ACK)
        capture.segment(1, b"", FIN | ACK)
    capture.out.close()


def empty_chunks(path, calls):
    """One connection whose open Calls each have 7,000 Write chunks without segments."""
    capture = Capture(path)
    begin(capture)
    for xid in range(1, calls + 1):
        header = struct.pack(">5I", xid, 1, 32, 0, 0) + struct.pack(">II", 1, 0) * 7000 + struct.pack(">II", 0, 0)
        capture.segment(0, send(xid, header + struct.pack(">10I", xid, 0, 2, 100003, 3, 0, 0, 0, 0, 0)))
    capture.out.close()


def joined_messages(path, connections, part=32000, parts=30):
    """Open connections, each with a Call of draft-ietf-nfsv4-rpcrdma-version-two-07 in parts."""
    capture = Capture(path)
    null = [0, 2, 100003, 3, 0, 0, 0, 0, 0]
    for port in range(1024, 1024 + connections):
        capture.port = port
        begin(capture)
        capture.segment(0, send(1, struct.pack(">8I", 1, 2, 100, 10, 0, 0, 0, 0) + struct.pack(">10I", 1, *null)))
        rest = struct.pack(">10I", 7, *null) + bytes(part * parts - 40)
        for msn in range(2, parts + 1):
            head, rest = rest[:part], rest[part:]
            capture.segment(0, send(msn, struct.pack(">5I", 7, 2, 100, 9, len(rest)) + head))
        capture.segment(0, send(parts + 1, struct.pack(">8I", 7, 2, 100, 10, 0, 0, 0, 0) + rest))
    capture.out.close()


def scan(path, attempts):
    """One connection, then a SYN from each of so many ports."""
    capture = Capture(path)
    begin(capture)
    for port in range(1024, 1024 + attempts):
        capture.port = port
        capture.segment(0, b"", SYN)
    capture.out.close()


def scan_stays_small(weft, folder, few=1000, many=21000):
    path = pathlib.Path(folder, "scan.pcap")
    peaks = []
    for attempts in (few, many):
        scan(path, attempts)
        peaks.append(peak_kib([weft, "dissect", path]))
    each = (peaks[1] - peaks[0]) / (many - few)
    print(f"scan\n  {each:.1f} KiB for each of {many - few} SYNs", flush=True)
    return each <= CONNECTION_KIB


def open_at_once(path, connections):
    """So many connections that are all open, each after one READ."""
    capture = Capture(path)
    for number in range(connections):
        capture.port, capture.seq = 1024 + number, [1000, 2000]
        begin(capture)
        read(capture, 7, 1)
    capture.out.close()


def summary_stays_small(weft, folder, few=1000, many=11000):
    path = pathlib.Path(folder, "open.pcap")
    peaks = []
    for connections in (few, many):
        open_at_once(path, connections)
        peaks.append(peak_kib([weft, "dissect", "--summary", path]))
    each = (peaks[1] - peaks[0]) / (many - few)
    print(f"open_at_once --summary\n  {each:.1f} KiB for each of {many - few} connections", flush=True)
    return each <= OPEN_KIB


def stays_small(weft, folder, make, few, many):
    """Whether the larger capture of a peer that means harm takes no more memory than the smaller one."""
    path = pathlib.Path(folder, "hostile.pcap")
    peaks = []
    for num in (few, many):
        make(path, num)
        peaks.append(peak_kib([weft, "dissect", "-v", path]))
    print(f"{make.__name__}\n  {peaks[0]:>8} KiB for {few}, {peaks[1]:>8} KiB for {many}", flush=True)
    return peaks[1] <= peaks[0] + HOSTILE_KIB


def peak_kib(command):
    """Through time(1): a child begins with the peak of the process that forked it, and Python's is high."""
    environment = dict(os.environ, ASAN_OPTIONS="quarantine_size_mb=1:detect_leaks=0")
    with tempfile.NamedTemporaryFile(mode="r") as peak:
        timed = ["time", "--format=%M", f"--output={peak.name}", *command]
        status = subprocess.run(timed, stdout=subprocess.DEVNULL, env=environment, check=False).returncode
        if status != 0:
            sys.exit(f"{' '.join(map(str, command))}: status {status}")
        return int(peak.read())


def capture_of_any_length(weft, folder, make, sizes):
    """Whether each mode takes no more memory for the longer one of two captures."""
    paths = [pathlib.Path(folder, name) for name in ("short.pcap", "long.pcap")]
    for path, size in zip(paths, sizes):
        make(path, size * 1000000)
    print(make.__name__)
    room_kib = ROOM_KIB if sizes == SIZES else ROOM_OF_OTHER_SIZES_KIB
    small = True
    for mode in MODES:
        peaks = [peak_kib([weft, "dissect", *mode, path]) for path in paths]
        name = " ".join(mode) or "default"
        print(f"  {name:<10} {peaks[0]:>8} KiB for {sizes[0]} MB, {peaks[1]:>8} KiB for {sizes[1]} MB", flush=True)
        small &= peaks[1] <= peaks[0] + room_kib
    return small


def main(weft, *sizes):
    sizes = tuple(map(int, sizes)) or SIZES
    with tempfile.TemporaryDirectory() as folder:
        any_length = [capture_of_any_length(weft, folder, make, sizes) for make in (one_connection, many_connections)]
        for make, few, many in ((empty_chunks, 20, 200), (joined_messages, 2, 20)):
            if not stays_small(weft, folder, make, few, many):
                sys.exit(f"FAILED: more than {HOSTILE_KIB} KiB on top")
        if not scan_stays_small(weft, folder):
            sys.exit(f"FAILED: more than {CONNECTION_KIB} KiB for a SYN")
        if not summary_stays_small(weft, folder):
            sys.exit(f"FAILED: more than {OPEN_KIB} KiB for an open connection")
    if not all(any_length):
        sys.exit("FAILED: the longer capture takes more memory")


if __name__ == "__main__":
    main(*sys.argv[1:])
