"""The memory of `weft dissect` does not depend on the length of the capture.

memory.py WEFT [SHORT LONG]: makes two captures of the same shape, of SHORT and LONG million octets (2 and 9), and
compares the peak of the resident memory in each output mode. Exit status 1 where the long one takes 4 MiB more.
"""

import os
import pathlib
import struct
import subprocess
import sys
import tempfile

MODES = [[], ["-v"], ["--check"], ["--summary"], ["--ladder"], ["--json"]]
ROOM_KIB = 4096
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
    """A pcap file with one TCP connection, raw IP."""

    def __init__(self, path):
        self.out = open(path, "wb")
        self.out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 101))
        self.seq = [1000, 2000]
        self.packets = 0
        self.octets = 0

    def segment(self, end, payload, flags=0x18):
        tcp = struct.pack(">HHIIBBHHH", 40000 if end == 0 else 20049, 20049 if end == 0 else 40000,
                          self.seq[end] & 0xFFFFFFFF, self.seq[1 - end] & 0xFFFFFFFF, 0x50, flags, 65535, 0, 0)
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40 + len(payload), 0, 0, 64, 6, 0, bytes([10, 0, 0, 1 + end]),
                         bytes([10, 0, 0, 2 - end]))
        octets = ip + tcp + payload
        self.packets += 1
        self.out.write(struct.pack("<IIII", self.packets // 1000000, self.packets % 1000000, len(octets), len(octets)))
        self.out.write(octets)
        self.octets += 16 + len(octets)
        self.seq[end] += len(payload) + (1 if flags & 0x02 else 0)


def make(path, octets):
    capture = Capture(path)
    capture.segment(0, b"", 0x02)
    capture.segment(1, b"", 0x12)
    capture.segment(0, startup(False))
    capture.segment(1, startup(True))
    xid = 0
    while capture.octets < octets:
        xid += 1
        capture.segment(0, send(xid, call(xid)))
        capture.segment(1, write(RESULT, 0x5000))
        capture.segment(1, send(xid, reply(xid)))
    capture.out.close()


def peak_kib(command):
    environment = dict(os.environ, ASAN_OPTIONS="quarantine_size_mb=1:detect_leaks=0")
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {status}")
    return usage.ru_maxrss


def main(weft, short=2, long=9):
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder, name) for name in ("short.pcap", "long.pcap")]
        for path, size in zip(paths, (short, long)):
            make(path, int(size) * 1000000)
        for mode in MODES:
            peaks = [peak_kib([weft, "dissect", *mode, path]) for path in paths]
            print(f"{' '.join(mode) or 'default':<10} {peaks[0]:>8} KiB for {short} MB, {peaks[1]:>8} KiB for {long} MB")
            failed |= peaks[1] > peaks[0] + ROOM_KIB
    if failed:
        sys.exit(f"FAILED: more than {ROOM_KIB} KiB on top")


if __name__ == "__main__":
    main(*sys.argv[1:])
