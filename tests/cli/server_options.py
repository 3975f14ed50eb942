#!/usr/bin/python3
"""Options of `weft serve` and `weft gateway` reach the part of the program that they are for.

usage: server_options.py WEFT CASE

Unit tests prove what each part does with its configuration. Here the program runs with the option and without it.
"""
import contextlib
import os
import pathlib
import re
import select
import socket
import stat
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "metrics"))
from programs import LOOKUP, NFS, PATIENCE, Nfs3, Rpc, gateway, opaque, serve  # noqa: E402

MIB = 1 << 20
SETATTR, MKNOD = 2, 11
# Revision 1 without CRCs and private data (RFC 5044 section 7.1).
MPA_REQUEST = b"MPA ID Req Frame" + struct.pack(">BBH", 0, 1, 0)
OK, PERM, ACCES = 0, 1, 13
SERVE, TO_TCP, TO_RDMA = "serve", "gateway to tcp", "gateway to rdma"


def same(got, expected, what):
    assert got == expected, f"{what}: {got}, not {expected}"


class World:
    """A program with the options of the test. Behind a gateway is a server: `weft serve`, or one that says nothing.

    program: the path of the program under test, if it is another one than weft."""

    def __init__(self, weft, name, *words, export=None, program=None):
        self.stack = contextlib.ExitStack()
        folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        self.export = pathlib.Path(export or folder + "/export")
        if export is None:
            self.export.mkdir()
        self.silent = self.stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.name = name
        behind = () if name != SERVE else words
        program = program or weft
        self.server = self.stack.enter_context(
            serve(program if name == SERVE else weft, self.export, folder + "/state", *behind))
        if name == SERVE:
            self.program, address = self.server, self.server.ready["rdma"]
        else:
            to_tcp = f"rdma://127.0.0.1:0 tcp://127.0.0.1:{self.silent.getsockname()[1]}"
            to_rdma = f"tcp://127.0.0.1:0 rdma://{self.server.ready['rdma']}"
            self.program = self.stack.enter_context(
                gateway(program, *(to_tcp if name == TO_TCP else to_rdma).split(), *words))
            address = self.program.ready["listen"].split("//")[1]
        host, port = address.rsplit(":", 1)
        self.address = host, int(port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()

    def connect(self, source="127.0.0.9"):
        return self.stack.enter_context(
            socket.create_connection(self.address, timeout=PATIENCE, source_address=(source, 0)))

    def wait_for(self, is_so):
        """Asks for the metrics until they are so. ctest ends a test that waits in vain."""
        while not is_so(self.program.metrics()):
            pass


def is_ended(peers):
    """Waits until the program ends one of them."""
    poll = select.poll()
    for peer in peers:
        poll.register(peer, select.POLLRDHUP)
    return bool(poll.poll(PATIENCE * 1000))


class RawRdma:
    """A client of RPC-over-RDMA version 1 (RFC 8166) that sends and does not look at an answer. It uses no CRC."""

    def __init__(self, peer):
        self.peer = peer
        self.num_sent = 0
        peer.sendall(MPA_REQUEST)
        reply = peer.recv(20, socket.MSG_WAITALL)
        assert reply[:17] == b"MPA ID Rep Frame\0", reply

    def send(self, *words):
        """One RDMAP Send in one FPDU (RFC 5041 section 4.2, RFC 5044 section 4)."""
        self.num_sent += 1
        ulpdu = struct.pack(f">2B{4 + len(words)}I", 0x41, 0x43, 0, 0, self.num_sent, 0, *words)
        fpdu = struct.pack(">H", len(ulpdu)) + ulpdu
        self.peer.sendall(fpdu + bytes(-len(fpdu) % 4 + 4))

    def call_null(self):
        self.send(1, 1, 8, 0, 0, 0, 0, *(1, 0, 2, NFS, 3, 0, 0, 0, 0, 0))

    def long_call(self, size):
        """A Call by Read chunk (RDMA_NOMSG). The RDMA Read of its octets gets no answer."""
        self.send(1, 1, 8, 1, 1, 0, 77, size, 0, 0, 0, 0, 0)


def test_connections(weft):
    """--max-connections and --max-connections-per-address: the third connection of an address costs one of the three."""
    for name in (SERVE, TO_TCP, TO_RDMA):
        with World(weft, name, "--max-connections", "9", "--max-connections-per-address", "2", "--crc", "off") as world:
            same(world.program.metrics().value("weft_connections_limit"), 9, name)
            peers = [world.connect() for _ in range(3)]
            if name != TO_RDMA:
                for peer in peers:
                    peer.sendall(MPA_REQUEST)
            assert is_ended(peers), name


def limited(weft, folder, num):
    """`weft` with a limit of open files."""
    path = pathlib.Path(folder, f"weft-{num}")
    path.write_text(f"#!/bin/sh\nulimit -n {num} && exec {weft} \"$@\"\n")
    path.chmod(0o700)
    return path


def test_descriptors(weft):
    """A limit of open files that is too low: the program does not start. With the limit that it names, it serves."""
    words = {SERVE: ("serve", "/usr/share", "--listen", "127.0.0.1:0", "--mount-listen", "127.0.0.1:0"),
             TO_TCP: ("gateway", "--listen", "rdma://127.0.0.1:0", "--connect", "tcp://127.0.0.1:9"),
             TO_RDMA: ("gateway", "--listen", "tcp://127.0.0.1:0", "--connect", "rdma://127.0.0.1:9")}
    words = {name: (*of, "--metrics", "127.0.0.1:0") for name, of in words.items()}
    for name in (SERVE, TO_TCP, TO_RDMA):
        with tempfile.TemporaryDirectory() as folder:
            needed = 0
            for num in (24, 32, 48):
                refused = subprocess.run([limited(weft, folder, num), *words[name]], capture_output=True, text=True,
                                         timeout=PATIENCE, env=os.environ | {"XDG_STATE_HOME": folder})
                same((refused.returncode, refused.stdout), (1, ""), (name, num, refused.stderr))
                needed = int(re.search(f"is {num}, and at least ([0-9]+) are needed", refused.stderr)[1])
            with World(weft, name, "--crc", "off", program=limited(weft, folder, needed)) as world:
                same(world.program.metrics().value("weft_connections_limit"), 16, name)
                serve_newcomers(weft, world)


def serve_newcomers(weft, world):
    """All places are taken, and one client more is served."""
    for _ in range(17):
        if world.name == TO_RDMA:
            world.stack.enter_context(Rpc(world.program.ready["listen"])).call(NFS, 3, 0)
        else:
            RawRdma(world.connect()).call_null()
            if world.name == TO_TCP:
                world.stack.enter_context(world.silent.accept()[0])
    if world.name == SERVE:
        nfs, root = nfs_of(weft, world)
        (world.export / "file").touch()
        nfs.lookup(root, b"file")


def test_memory(weft):
    """--max-buffered and --max-buffered-per-address: long Calls of one address that do not arrive."""
    for name in (SERVE, TO_TCP):
        with World(weft, name, "--max-buffered", "192", "--max-buffered-per-address", "32", "--max-connections", "64",
                   "--crc", "off") as world:
            # Each connection has 64 KiB of its own.
            limit = world.program.metrics().value("weft_memory_limit_bytes", kind="calls")
            same(limit, 192 * MIB + 64 * 65536, name)
            # Less than a quarter of all, which an address has without the option.
            for _ in range(40):
                RawRdma(world.connect()).long_call(MIB)
            world.wait_for(lambda metrics: metrics.value("weft_rpc_calls_waiting") > 0)
    with World(weft, TO_RDMA, "--max-buffered", "400", "--max-buffered-per-address", "150") as world:
        for kind in ("calls", "replies"):
            same(world.program.metrics().value("weft_memory_limit_bytes", kind=kind), 200 * MIB, kind)
        # Half is for Calls. Without the option it would be 50 MiB at most.
        for _ in range(13):
            world.connect().sendall(struct.pack(">I", 1 << 31 | 5 * MIB - 1) + bytes(9 * MIB // 2))
        world.wait_for(lambda metrics: metrics.value("weft_memory_held_bytes", kind="calls") > 52 * MIB)


def test_allow(weft):
    """--allow: a client of another address is refused, and counted."""
    for name in (SERVE, TO_TCP, TO_RDMA):
        words = ("--allow", "192.0.2.0/24", "--allow", "127.0.0.8", "--crc", "off")
        with World(weft, name, *words) as world:
            unwelcome = world.connect()
            if name != TO_RDMA:
                with contextlib.suppress(OSError):
                    unwelcome.sendall(MPA_REQUEST)
            assert is_ended([unwelcome]), name
            world.wait_for(lambda metrics: metrics.value("weft_connections_refused_total", reason="not_admitted") == 1)
            welcome = world.connect("127.0.0.8")
            if name != TO_RDMA:
                welcome.sendall(MPA_REQUEST)
            world.wait_for(lambda metrics: metrics.value("weft_connections") == 1)


def test_reserved_port(weft):
    """The gateway's connections over TCP come from ports below 1024 only with --reserved-port, and as root."""
    for words in ((), ("--reserved-port",)):
        with World(weft, TO_TCP, "--crc", "off", *words) as world:
            RawRdma(world.connect()).call_null()
            connection, (_, port) = world.silent.accept()
            connection.close()
            same(port < 1024, bool(words) and os.geteuid() == 0, words)


def nfs_of(weft, world):
    """A client of the served folder through a gateway, and the handle of the folder."""
    to_rdma = world.stack.enter_context(gateway(weft, "tcp://127.0.0.1:0", "rdma://" + world.server.ready["rdma"]))
    nfs = world.stack.enter_context(Nfs3(to_rdma.ready["listen"]))
    return nfs, nfs.root(world.server.ready["mount"])


def status_of(nfs, procedure, arguments):
    accept, results = nfs.call(NFS, 3, procedure, arguments)
    same(accept, 0, "accept_stat")
    return struct.unpack(">I", results[:4])[0]


def test_set_id_files(weft):
    for words in ((), ("--set-id-files",)):
        with World(weft, SERVE, "--read-write", *words) as world:
            nfs, root = nfs_of(weft, world)
            path = world.export / "file"
            path.touch()
            # sattr3: a mode, and nothing else; no guard.
            wanted = struct.pack(">2I5I", 1, 0o4755, 0, 0, 0, 0, 0)
            same(status_of(nfs, SETATTR, opaque(nfs.lookup(root, b"file")) + wanted + bytes(4)), OK, words)
            same(stat.S_IMODE(path.stat().st_mode), 0o4755 if words else 0o755, words)


def test_devices(weft):
    """Devices like /dev/null, which only root makes. A server without the option refuses them also as root."""
    for words in ((), ("--devices",)):
        with World(weft, SERVE, "--read-write", *words) as world:
            nfs, root = nfs_of(weft, world)
            # NF3CHR, sattr3 without anything, specdata3.
            device = struct.pack(">I6I2I", 4, 0, 0, 0, 0, 0, 0, 1, 3)
            expected = OK if words and os.geteuid() == 0 else PERM
            same(status_of(nfs, MKNOD, opaque(root) + opaque(b"null") + device), expected, words)


def test_cross_mounts(weft):
    """What every Linux has: a filesystem beneath /dev."""
    mounted = [name for name in ("shm", "pts", "mqueue") if os.path.ismount("/dev/" + name)]
    if not mounted:
        sys.exit(77)
    for words in ((), ("--cross-mounts",)):
        with World(weft, SERVE, *words, export="/dev") as world:
            nfs, root = nfs_of(weft, world)
            same(status_of(nfs, LOOKUP, opaque(root) + opaque(mounted[0].encode())), OK if words else ACCES, words)


if __name__ == "__main__":
    globals()["test_" + sys.argv[2]](sys.argv[1])
