"""One connection in every kind of file, link layer and IP packet: `weft dissect` tells the same text of each.

encapsulations.py WEFT CAPTURE: exit status 1 and a line for each failure. CAPTURE is of Ethernet and IPv4.
"""

import pathlib
import struct
import subprocess
import sys
import tempfile

from edit import read
from wrapping import LINKS, Pcap, Pcapng, fragmented, in_ipv6, with_ip_options

TICK = 1 / 64  # seconds between packets: a whole number in microseconds, nanoseconds and 2^-10 seconds
BEGIN = 1_700_000_000
ETHERNET = "Ethernet"


def dissect(weft, path, *options):
    return subprocess.run([weft, "dissect", *options, path], capture_output=True, text=True, timeout=120, check=False)


class Test:
    def __init__(self, weft, folder):
        self.weft, self.path, self.failures, self.num = weft, pathlib.Path(folder, "capture"), [], 0

    def told(self, octets, *options):
        self.path.write_bytes(octets)
        return dissect(self.weft, self.path, *options)

    def expect(self, good, name, outcome):
        self.num += 1
        if not good:
            self.failures.append(f"{name}: status {outcome.returncode}\n{outcome.stdout[:300]}\n{outcome.stderr[:300]}")

    def same(self, name, octets, text):
        outcome = self.told(octets)
        self.expect((outcome.returncode, outcome.stderr, outcome.stdout) == (0, "", text), name, outcome)


def timed(packets):
    return [(BEGIN + i * TICK, packet) for i, packet in enumerate(packets)]


def pcap(link, packets, **kind):
    return Pcap(LINKS[link].number, **kind).octets(timed([LINKS[link].wrap(packet) for packet in packets]))


def test_links(test, packets, text):
    for link in LINKS:
        if link != "LINKTYPE_IPV6":
            test.same(link, pcap(link, packets), text)


def test_ip(test, packets, text):
    test.same("IPv4 options", pcap(ETHERNET, [with_ip_options(packet) for packet in packets]), text)
    of_ipv6 = test.told(pcap(ETHERNET, [in_ipv6(packet) for packet in packets])).stdout
    head, _, rest = of_ipv6.partition("\n")
    good = head.startswith("connection 1: [2001:db8::") and rest == text.partition("\n")[2]
    test.num += 1
    if not good:
        test.failures.append(f"IPv6:\n{of_ipv6[:300]}")
    for headers in ([0], [60], [43], [44], [0, 60, 43, 44, 60]):
        test.same(f"IPv6 with headers {headers}", pcap(ETHERNET, [in_ipv6(packet, headers) for packet in packets]), of_ipv6)
    for link in ("Linux cooked", "Linux cooked 2", "raw IP", "LINKTYPE_IPV6", "802.1Q", "NULL of FreeBSD"):
        test.same(f"IPv6 in {link}", pcap(link, [in_ipv6(packet) for packet in packets]), of_ipv6)


def test_files(test, packets, text):
    for order in "<>":
        for nano in (False, True):
            test.same(f"pcap {order} nano={nano}", pcap(ETHERNET, packets, order=order, nano=nano), text)
        for resolution in (None, 6, 9, 0x80 | 10, 0x80 | 30):
            file = Pcapng(order)
            file.interface(LINKS[ETHERNET].number, resolution)
            for time, packet in timed(packets):
                file.packet(0, time, LINKS[ETHERNET].wrap(packet))
            test.same(f"pcapng {order} if_tsresol {resolution}", file.octets, text)
    # Every packet from another interface, with a link type and a resolution of its own.
    file, resolutions = Pcapng(), (None, 6, 9, 0x80 | 10, 0x80 | 20)
    names = [name for name in LINKS if name != "LINKTYPE_IPV6"]
    for i, name in enumerate(names):
        file.interface(LINKS[name].number, resolutions[i % len(resolutions)], offset=3600 * i, snaplen=65535 + i)
    for i, (time, packet) in enumerate(timed(packets)):
        name = names[i % len(names)]
        file.packet(i % len(names), time, LINKS[name].wrap(packet))
    test.same("pcapng of several interfaces", file.octets, text)
    # The file goes on with a section of the other byte order.
    parts, half = [Pcapng("<"), Pcapng(">")], len(packets) // 2
    for part, link in zip(parts, ("raw IP", ETHERNET)):
        part.interface(LINKS[link].number)
    for i, (time, packet) in enumerate(timed(packets)):
        link = "raw IP" if i < half else ETHERNET
        parts[i >= half].packet(0, time, LINKS[link].wrap(packet))
    test.same("pcapng of two sections", parts[0].octets + parts[1].octets, text)


def test_refusals(test, packets, text):
    whole = pcap(ETHERNET, packets)
    outcome = test.told(whole[:24])
    test.expect((outcome.returncode, outcome.stdout) == (0, "") and "no packets" in outcome.stderr, "no packet", outcome)
    import gzip
    refused = {"nothing": (b"", "file is empty"), "gzip": (gzip.compress(whole), "gunzip"), "text": (b"hello\n" * 9, "format"),
               "802.11": (Pcap(105).octets(timed(packets)), "link type")}
    for name, (octets, word) in refused.items():
        outcome = test.told(octets)
        good = (outcome.returncode, outcome.stdout) == (1, "") and word in outcome.stderr and outcome.stderr.count("\n") == 1
        test.expect(good, name, outcome)
    ng = Pcapng()
    ng.interface(LINKS[ETHERNET].number)
    for time, packet in timed(packets):
        ng.packet(0, time, LINKS[ETHERNET].wrap(packet))
    for name, octets in (("pcap", whole), ("pcapng", ng.octets)):
        for cut in (1, 5, 30, 500):
            outcome = test.told(octets[:-cut])
            good = outcome.returncode == 1 and "cut" in outcome.stderr or "truncated" in outcome.stderr
            test.expect(good and text.startswith(outcome.stdout[:1000]), f"{name} without the last {cut} octets", outcome)


def test_losses(test, packets, text):
    cut = [packet[:100] for packet in packets]
    file = Pcap(LINKS["raw IP"].number).octets(timed(cut), [len(packet) for packet in packets])
    outcome = test.told(file)
    kept = [line.partition(" (argument")[0] for line in text.splitlines() if ", MSN " in line or "MPA Re" in line]
    missing = [line for line in kept if line not in outcome.stdout]
    test.expect(len(kept) > 10 and not missing, f"packets cut to 100 octets: {missing[:2]}", outcome)
    outcome = test.told(file, "--check")
    test.expect(outcome.returncode == 0, "packets cut to 100 octets have no violation", outcome)
    large = max(range(len(packets)), key=lambda i: len(packets[i]))
    pieces = [piece for i, packet in enumerate(packets) for piece in (fragmented(packet) if i == large else [packet])]
    for option in ((), ("--check",)):
        outcome = test.told(pcap(ETHERNET, pieces), *option)
        test.expect(outcome.returncode == 0 and "1 TCP segment came in IP fragments" in outcome.stderr, "IP fragments", outcome)


def main(weft, path):
    header, records = read(path)
    assert struct.unpack_from("<I", header, 20)[0] == 1, "a capture of Ethernet is needed"
    # Without the octets that Ethernet pads with.
    packets = [octets[14:14 + struct.unpack_from(">H", octets, 16)[0]] for _, octets in records]
    with tempfile.TemporaryDirectory() as folder:
        test = Test(weft, folder)
        outcome = test.told(pcap(ETHERNET, packets))
        test.expect(outcome.returncode == 0 and outcome.stdout.count("\n") > 50, "Ethernet", outcome)
        for part in (test_links, test_ip, test_files, test_refusals, test_losses):
            part(test, packets, outcome.stdout)
    for failure in test.failures:
        print(f"FAILED: {failure}")
    print(f"{test.num} comparisons, {len(test.failures)} failures")
    return bool(test.failures)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
