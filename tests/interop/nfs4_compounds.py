"""NFSv4.0 COMPOUNDs that no client of Debian's sends, to a server over TCP.

   nfs4_compounds.py ADDR PORT FILE LINK

FILE and LINK are in the root folder; what the server says of them is compared with itself: data READ alone and together
with attributes whose size nobody can foretell, and the texts of LINK, which has to be long."""
import socket
import struct
import sys

PUTROOTFH, LOOKUP, READ, READLINK, GETATTR = 24, 15, 25, 27, 9


def word(*values):
    return struct.pack(">%dI" % len(values), *values)


def opaque(octets):
    return word(len(octets)) + octets + bytes(-len(octets) % 4)


def lookup(name):
    return word(LOOKUP) + opaque(name)


def read(offset, count):
    return word(READ) + bytes(16) + struct.pack(">QI", offset, count)


class Server:
    def __init__(self, addr, port):
        self.socket = socket.create_connection((addr, port), timeout=30)
        self.xid = 0x4000

    def receive(self, count):
        octets = b""
        while len(octets) < count:
            more = self.socket.recv(count - len(octets))
            if not more:
                raise SystemExit("the connection ended")
            octets += more
        return octets

    def compound(self, *operations):
        """The results, behind their status and number."""
        self.xid += 1
        credential = opaque(word(0) + opaque(b"test") + word(0, 0, 0))
        call = word(self.xid, 0, 2, 100003, 4, 1, 1) + credential + word(0, 0)
        call += opaque(b"") + word(0, len(operations)) + b"".join(operations)
        self.socket.sendall(word(0x80000000 | len(call)) + call)
        reply = b""
        while True:
            mark = struct.unpack(">I", self.receive(4))[0]
            reply += self.receive(mark & 0x7FFFFFFF)
            if mark & 0x80000000:
                break
        header = struct.unpack(">6I", reply[:24])
        if header != (self.xid, 1, 0, 0, 0, 0):
            raise SystemExit("the Reply begins with %s" % (header,))
        status, tag, num = struct.unpack(">3I", reply[24:36])
        if (status, tag, num) != (0, 0, len(operations)):
            raise SystemExit("status %u, %u results" % (status, num))
        return reply[36:]


def after_lookup(results):
    """Behind the results of PUTROOTFH and LOOKUP."""
    return results[16:]


def read_data(results):
    """The data of a READ, and the octets behind them."""
    operation, status, _, length = struct.unpack(">4I", results[:16])
    assert (operation, status) == (READ, 0), (operation, status)
    end = 16 + length + -length % 4
    return results[16 : 16 + length], results[end:]


def attributes(results):
    operation, status, words = struct.unpack(">3I", results[:12])
    assert (operation, status) == (GETATTR, 0), (operation, status)
    at = 12 + 4 * words
    length = struct.unpack(">I", results[at : at + 4])[0]
    assert len(results) == at + 4 + length, (len(results), at, length)
    return results


def main():
    addr, port, file, link = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode(), sys.argv[4].encode()
    server = Server(addr, port)
    # acl, fs_locations; owner, owner_group
    getattr_all = word(GETATTR, 2, 1 << 12 | 1 << 24, 1 << 4 | 1 << 5)
    alone = attributes(after_lookup(server.compound(word(PUTROOTFH), lookup(file), getattr_all)))
    for count in (0, 5, 4000, 65536, 65537, 262143):
        plain, rest = read_data(after_lookup(server.compound(word(PUTROOTFH), lookup(file), read(0, count))))
        assert rest == b"" and len(plain) == count, (count, len(plain))
        reply = server.compound(word(PUTROOTFH), lookup(file), read(0, count), getattr_all)
        both, rest = read_data(after_lookup(reply))
        assert both == plain, "READ of %u octets: other data with GETATTR behind it" % count
        assert attributes(rest) == alone
        first, rest = read_data(
            after_lookup(server.compound(word(PUTROOTFH), lookup(file), read(0, count), read(count, 3000))))
        second, rest = read_data(rest)
        assert first == plain and len(second) == 3000 and rest == b"", "two READs, the first of %u octets" % count
    text = after_lookup(server.compound(word(PUTROOTFH), lookup(link), word(READLINK)))
    operation, status, length = struct.unpack(">3I", text[:12])
    assert (operation, status) == (READLINK, 0) and len(text) == 12 + length + -length % 4, (operation, status, length)
    print(text[12 : 12 + length].decode())


main()
