"""Writes captures: the formats of files, the link layers, and what may stand between IP and TCP."""

import collections
import struct

IPV4, IPV6, VLAN, QINQ, OLD_QINQ = 0x0800, 0x86DD, 0x8100, 0x88A8, 0x9100
ADDRESSES = bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1])


def ether_type(packet):
    return IPV6 if packet[0] >> 4 == 6 else IPV4


# ---- link layers: https://www.tcpdump.org/linktypes.html

def ethernet(packet, *tags):
    octets = ADDRESSES
    for tag in tags:
        octets += struct.pack(">HH", tag, 7)
    return octets + struct.pack(">H", ether_type(packet)) + packet


def padded(packet):
    return ethernet(packet).ljust(60, b"\0") + b"\x11\x22\x33\x44"  # and the frame check sequence


def cooked(packet):
    return struct.pack(">HHH8sH", 0, 1, 6, ADDRESSES[:8], ether_type(packet)) + packet


def cooked_2(packet):
    return struct.pack(">HHIHBB8s", ether_type(packet), 0, 3, 1, 0, 6, ADDRESSES[:8]) + packet


def family(order, of_ipv6):
    """The address family of the machine that captured, in its byte order."""
    return lambda packet: struct.pack(order + "I", of_ipv6 if packet[0] >> 4 == 6 else 2) + packet


Link = collections.namedtuple("Link", "number wrap")
LINKS = {
    "Ethernet": Link(1, ethernet),
    "Ethernet with padding": Link(1, padded),
    "802.1Q": Link(1, lambda packet: ethernet(packet, VLAN)),
    "QinQ": Link(1, lambda packet: ethernet(packet, QINQ, VLAN)),
    "QinQ of old": Link(1, lambda packet: ethernet(packet, OLD_QINQ, VLAN)),
    "Linux cooked": Link(113, cooked),
    "Linux cooked 2": Link(276, cooked_2),
    "raw IP": Link(101, bytes),
    "LINKTYPE_IPV4": Link(228, bytes),
    "LINKTYPE_IPV6": Link(229, bytes),
    "NULL of Linux": Link(0, family("<", 10)),
    "NULL of FreeBSD": Link(0, family("<", 28)),
    "NULL, big-endian": Link(0, family(">", 30)),
    "LOOP": Link(108, family(">", 24)),
}


# ---- IP

def with_ip_options(packet):
    """Two No Operations, an End, and its padding."""
    length = struct.unpack_from(">H", packet, 2)[0] + 4
    return bytes([packet[0] + 1]) + packet[1:2] + struct.pack(">H", length) + packet[4:20] + b"\1\1\0\0" + packet[20:]


def fragmented(packet):
    """Two fragments of an IPv4 packet."""
    cut = len(packet) // 16 * 8
    pieces = ((packet[20:20 + cut], 0x2000), (packet[20 + cut:], cut // 8))
    return [packet[:2] + struct.pack(">HHH", 20 + len(piece), 7, at) + packet[8:20] + piece for piece, at in pieces]


def in_ipv6(packet, headers=()):
    """The TCP of an IPv4 packet, behind IPv6 extension headers (RFC 8200 section 4), 8 or 16 octets each."""
    tcp = packet[20:]
    chain = [*headers, 6]
    octets = b""
    for i, header in enumerate(chain[:-1]):
        units = 1 if header == 60 else 0
        octets += struct.pack(">BBHI", chain[i + 1], 0 if header == 44 else units, 0, 0) + bytes(8 * units)
    addresses = [bytes.fromhex("20010db8") + bytes(8) + packet[at:at + 4] for at in (12, 16)]
    return struct.pack(">IHBB", 6 << 28, len(octets) + len(tcp), chain[0], 64) + addresses[0] + addresses[1] + octets + tcp


# ---- files

class Pcap:
    def __init__(self, link, order="<", nano=False):
        self.link, self.order, self.per_second = link, order, 10**9 if nano else 10**6
        self.magic = 0xA1B23C4D if nano else 0xA1B2C3D4

    def octets(self, timed, wire_lens=None):
        out = struct.pack(self.order + "IHHiIII", self.magic, 2, 4, 0, 0, 262144, self.link)
        for i, (time, packet) in enumerate(timed):
            wire_len = wire_lens[i] if wire_lens else len(packet)
            seconds = int(time)
            part = round((time - seconds) * self.per_second)
            out += struct.pack(self.order + "IIII", seconds, part, len(packet), wire_len) + packet
        return out


class Pcapng:
    """A section (https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html)."""

    def __init__(self, order="<"):
        self.order, self.interfaces = order, []
        self.octets = self.block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))

    def block(self, kind, body):
        body += bytes(-len(body) % 4)
        length = struct.pack(self.order + "I", 12 + len(body))
        return struct.pack(self.order + "I", kind) + length + body + length

    def option(self, code, value):
        return struct.pack(self.order + "HH", code, len(value)) + value + bytes(-len(value) % 4)

    def interface(self, link, resolution=None, offset=0, snaplen=0):
        options = b""
        if resolution is not None:
            options += self.option(9, bytes([resolution]))
        if offset:
            options += self.option(14, struct.pack(self.order + "q", offset))
        if options:
            options += self.option(0, b"")
        resolution = 6 if resolution is None else resolution
        per_second = 2 ** (resolution & 0x7F) if resolution & 0x80 else 10**resolution
        self.interfaces.append((per_second, offset))
        self.octets += self.block(1, struct.pack(self.order + "HHI", link, 0, snaplen) + options)

    def packet(self, interface, time, octets):
        per_second, offset = self.interfaces[interface]
        seconds = int(time)
        units = (seconds - offset) * per_second + round((time - seconds) * per_second)
        head = struct.pack(self.order + "IIIII", interface, units >> 32, units & 0xFFFFFFFF, len(octets), len(octets))
        self.octets += self.block(6, head + octets)
