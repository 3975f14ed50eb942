"""Writes captures of iWARP connections from octets: one startup frame or one FPDU in each TCP segment, raw IPv4."""

import struct

RAW_IPV4 = 101  # LINKTYPE_RAW
CLIENT, SERVER = "client", "server"
ADDRESSES = {CLIENT: bytes([192, 0, 2, 1]), SERVER: bytes([192, 0, 2, 2])}
SERVER_PORT = 20049
SYN, ACK = 0x02, 0x10

SEND = 3


def crc32c_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


CRC32C = crc32c_table()


def crc32c(octets):
    value = 0xFFFFFFFF
    for octet in octets:
        value = value >> 8 ^ CRC32C[(value ^ octet) & 0xFF]
    return value ^ 0xFFFFFFFF


def startup_frame(sender, private_data=b"", revision=2, flags=0x50):
    """flags: 0x40 says that CRCs are in use, 0x10 is the S bit of RFC 6581."""
    key = b"MPA ID Req Frame" if sender == CLIENT else b"MPA ID Rep Frame"
    return key + struct.pack(">BBH", flags, revision, len(private_data)) + private_data


def fpdu(ulpdu):
    framed = struct.pack(">H", len(ulpdu)) + ulpdu
    framed += bytes(-len(framed) % 4)
    return framed + struct.pack("<I", crc32c(framed))


def untagged(opcode, payload, msn, queue=0):
    """A DDP segment that is a whole message."""
    return struct.pack(">BBIIII", 0x41, 0x40 | opcode, 0, queue, msn, 0) + payload


class Capture:
    """The packets of a file. A frame number is that of Wireshark, from 1."""

    def __init__(self):
        self.packets = []
        self.num_connections = 0

    def connect(self, private_data=(b"", b""), sequence=0, **startup):
        connection = Connection(self, 40000 + self.num_connections, sequence)
        self.num_connections += 1
        connection.frame_of_request = connection.add(CLIENT, startup_frame(CLIENT, private_data[0], **startup))
        connection.add(SERVER, startup_frame(SERVER, private_data[1], **startup))
        return connection

    def add(self, packet):
        self.packets.append(packet)
        return len(self.packets)

    def write(self, path):
        with open(path, "wb") as file:
            file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, RAW_IPV4))
            for number, packet in enumerate(self.packets):
                file.write(struct.pack("<IIII", number // 1000, number % 1000 * 1000, len(packet), len(packet)))
                file.write(packet)


class Connection:
    def __init__(self, capture, port, sequence=0):
        """sequence: the first number of both sides."""
        self.capture = capture
        self.ports = {CLIENT: port, SERVER: SERVER_PORT}
        self.sequence = {CLIENT: sequence, SERVER: sequence}
        self.msn = {CLIENT: 0, SERVER: 0}
        self.segment(CLIENT, b"", SYN)
        self.segment(SERVER, b"", SYN | ACK)
        self.sequence = {CLIENT: sequence + 1, SERVER: sequence + 1}
        self.segment(CLIENT, b"", ACK)

    def segment(self, sender, octets, flags=ACK):
        receiver = SERVER if sender == CLIENT else CLIENT
        tcp = struct.pack(">HHIIBBHHH", self.ports[sender], self.ports[receiver], self.sequence[sender],
                          self.sequence[receiver] if flags & ACK else 0, 0x50, flags, 65535, 0, 0)
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40 + len(octets), 0, 0x4000, 64, 6, 0, ADDRESSES[sender],
                         ADDRESSES[receiver])
        return self.capture.add(ip + tcp + octets)

    def add(self, sender, octets):
        frame = self.segment(sender, octets)
        self.sequence[sender] += len(octets)
        return frame

    def ulpdu(self, sender, octets):
        return self.add(sender, fpdu(octets))

    def send(self, sender, message, opcode=SEND):
        self.msn[sender] += 1
        return self.ulpdu(sender, untagged(opcode, message, self.msn[sender]))
