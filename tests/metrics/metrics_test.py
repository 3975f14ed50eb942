#!/usr/bin/python3
"""The metrics of whole programs: exact numbers, the documentation, hostile clients of HTTP, and `weft top`.

usage: metrics_test.py WEFT CASE
"""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading

from programs import NFS, PATIENCE, Metrics, Nfs3, Weft, gateway, get, serve

DOCUMENT = pathlib.Path(__file__).parents[2] / "docs/metrics.md"
SIZE = 1 << 20


class World:
    """A folder with one file, a server of it, and a gateway for clients of TCP."""

    def __init__(self, weft):
        self.weft = weft
        self.folder = tempfile.TemporaryDirectory()
        export = pathlib.Path(self.folder.name) / "export"
        export.mkdir()
        self.content = os.urandom(SIZE)
        (export / "file").write_bytes(self.content)
        self.server = serve(weft, export, pathlib.Path(self.folder.name) / "state", "--read-write")
        self.gateway = gateway(weft, "tcp://127.0.0.1:0", "rdma://" + self.server.ready["rdma"])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.gateway.__exit__()
        self.server.__exit__()
        self.folder.cleanup()

    def client(self):
        return Nfs3(self.gateway.ready["listen"])


def same(got, expected, what):
    assert got == expected, f"{what}: {got}, not {expected}"


def test_exact(weft):
    """So many Calls of so many bytes are exactly these numbers, at the server and at the gateway."""
    with World(weft) as world, world.client() as nfs:
        file = nfs.lookup(nfs.root(world.server.ready["mount"]), b"file")
        for _ in range(5):
            nfs.null()
        for i in range(3):
            same(nfs.read(file, i * 65536, 65536), world.content[i * 65536:(i + 1) * 65536], "data")
        for i in range(2):
            nfs.write(file, i * 32768, bytes(32768))
        same(nfs.call(NFS, 3, 99)[0], 3, "PROC_UNAVAIL")
        same(nfs.call(300000, 1, 0)[0], 1, "PROG_UNAVAIL")
        same(nfs.call(NFS, 9, 0)[0], 2, "PROG_MISMATCH")
        server, gate = world.server.metrics(), world.gateway.metrics()
        for name, metrics in (("server", server), ("gateway", gate)):
            for procedure, count in (("NULL", 5), ("LOOKUP", 1), ("READ", 3), ("WRITE", 2), ("GETATTR", 0)):
                same(metrics.calls(procedure), count, f"{name} {procedure}")
            same(metrics.value("weft_rpc_answers_total", outcome="success"), 11, f"{name} success")
            same(metrics.value("weft_rpc_answers_total", outcome="proc_unavail"), 1, f"{name} PROC_UNAVAIL")
            same(metrics.value("weft_clients"), 1, f"{name} clients")
            same(metrics.value("weft_connections"), 1, f"{name} connections")
            same(metrics.value("weft_connections_opened_total"), 1, f"{name} connections opened")
            same(metrics.value("weft_rpc_calls_under_way"), 0, f"{name} Calls under way")
            clients = metrics.samples("weft_client_rpc_duration_seconds_count")
            counts = {sample.labels["client"]: sample.value for sample in clients}
            same(counts, {"127.0.0.1": 12 if name == "server" else 14, "other": 0}, f"{name} Calls by client")
        # The gateway refuses the unknown program and version itself.
        same(server.calls("other"), 1, "server: unknown procedures")
        same(gate.value("weft_rpc_answers_total", outcome="prog_unavail"), 1, "gateway PROG_UNAVAIL")
        same(gate.value("weft_rpc_answers_total", outcome="prog_mismatch"), 1, "gateway PROG_MISMATCH")
        # The server pushes the data of READs and pulls the data of WRITEs; seen from the gateway it is the reverse.
        for metrics, out, into in ((server, "out", "in"), (gate, "in", "out")):
            same(metrics.bytes("rdma_write", out), 3 * 65536, "bytes of RDMA Writes")
            same(metrics.operations("rdma_write", out), 3, "RDMA Writes")
            same(metrics.bytes("rdma_read", into), 2 * 32768, "bytes of RDMA Reads")
            same(metrics.operations("rdma_read", into), 2, "RDMA Reads")
            same(metrics.operations("send", into), 12, "Sends with Calls")
            same(metrics.operations("send", out), 12, "Sends with Replies")
            same(metrics.bytes("rdma_write", into), 0, "RDMA Writes of the other direction")
        same(server.bytes("send", "in"), gate.bytes("send", "out"), "bytes of Sends with Calls")
        same(server.bytes("send", "out"), gate.bytes("send", "in"), "bytes of Sends with Replies")
        same(server.value("weft_client_transfer_bytes_total", client="127.0.0.1", kind="rdma_write"), 3 * 65536,
             "bytes of the client")


def break_a_rule(peer):
    """What follows the start-up frame is no FPDU. Returns when the server has ended the connection."""
    peer.sendall(b"MPA ID Req Frame" + struct.pack(">BBH", 0x40, 1, 0))
    assert peer.recv(20)[:16] == b"MPA ID Rep Frame"
    peer.sendall(bytes(64))
    while peer.recv(65536):
        pass


def test_ends(weft):
    """A client that leaves stays in the sums."""
    with World(weft) as world:
        with world.client() as nfs:
            nfs.null()
        while (metrics := world.server.metrics()).value("weft_connections") != 0:
            pass
        same(metrics.value("weft_connections_ended_total", reason="client"), 1, "ends by the client")
        same(metrics.value("weft_connections_ended_total"), 1, "ends")
        same(metrics.calls("NULL"), 1, "NULL")
        same(metrics.operations("send", "in"), 1, "Sends")
        same(metrics.value("weft_client_connections", client="127.0.0.1"), 0, "connections of the client")
        host, port = world.server.ready["rdma"].rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as peer:
            break_a_rule(peer)
        while (metrics := world.server.metrics()).value("weft_connections") != 0:
            pass
        same(metrics.value("weft_terminates_total", direction="sent"), 1, "Terminates")
        same(metrics.value("weft_connections_ended_total", reason="protocol"), 1, "ends by a broken rule")


def test_other_gateway(weft):
    """A gateway for clients of RDMA, with `weft nfs` as the client: the bytes of the file, no more and no less."""
    with World(weft) as world:
        listen = world.gateway.ready["listen"]
        with gateway(weft, "rdma://127.0.0.1:0", listen) as to_tcp:
            rdma = to_tcp.ready["listen"].removeprefix("rdma://")
            mount = world.server.ready["mount"].rsplit(":", 1)[1]
            url = f"nfs+rdma://{rdma}/file?mountport={mount}"
            got = subprocess.run([weft, "nfs", "cat", url], capture_output=True, check=True, timeout=PATIENCE).stdout
            assert got == world.content
            outer, inner = to_tcp.metrics(), world.server.metrics()
            same(outer.bytes("rdma_write", "out"), SIZE, "bytes of RDMA Writes")
            for procedure in ("READ", "LOOKUP", "GETATTR", "NULL", "FSINFO"):
                same(outer.calls(procedure), inner.calls(procedure), procedure)
            assert outer.calls("READ") > 0
            same(outer.value("weft_rpc_answers_total"), outer.value("weft_rpc_answers_total", outcome="success"),
                 "answers")


def documented():
    """The rows of the tables of metrics: name, type, unit and labels."""
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| *(\w*) *\|([^|]*)\|", DOCUMENT.read_text(), re.MULTILINE)
    return {name: (kind, unit, set(re.findall(r"`(\w+)`", labels))) for name, kind, unit, labels in rows}


def test_documented(weft):
    """docs/metrics.md has every metric with its type, unit and labels, and no other."""
    rows = documented()
    seen = {}
    with World(weft) as world, world.client() as nfs:
        nfs.null()
        host, port = world.server.ready["rdma"].rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as peer:
            break_a_rule(peer)
        for program in (world.server, world.gateway):
            for name, family in program.metrics().families.items():
                labels = {label for sample in family.samples for label in sample.labels} - {"le"}
                kind, unit, before = seen.get(name, (family.type, family.unit, set()))
                seen[name] = (kind, unit, before | labels)
    for name in sorted(rows.keys() | seen.keys()):
        assert name in rows, f"{name} is not in {DOCUMENT.name}"
        assert name in seen, f"{name} is in {DOCUMENT.name} alone"
        same(seen[name], rows[name], name)


def flood(address, stop):
    """Clients that ask and do not read, say nothing, or send garbage, as many and as fast as they can."""
    host, port = address.rsplit(":", 1)
    kept = []
    requests = (b"GET /metrics HTTP/1.1\r\n\r\n", b"", b"GET /metrics", b"\0" * 10000, b"POST /metrics HTTP/1.1\r\n\r\n")
    while not stop.is_set():
        try:
            peer = socket.create_connection((host, int(port)), timeout=PATIENCE)
            peer.sendall(requests[len(kept) % len(requests)])
            kept.append(peer)
        except OSError:
            pass
        if len(kept) > 200:
            kept.pop(0).close()
    for peer in kept:
        peer.close()


def test_hostile(weft):
    """NFS goes on, and one who asks for the metrics is served, beside clients of HTTP that behave badly."""
    with World(weft) as world, world.client() as nfs:
        stop = threading.Event()
        threads = [threading.Thread(target=flood, args=(program.ready["metrics"], stop))
                   for program in (world.server, world.gateway)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(300):
                nfs.null()
            # A flood may push one request out, but not all of them.
            metrics = None
            while metrics is None:
                try:
                    metrics = Metrics(*get(world.server.ready["metrics"]))
                except (OSError, AssertionError):
                    pass
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        same(metrics.calls("NULL"), 300, "NULL")
        assert len(os.listdir(f"/proc/{world.server.process.pid}/fd")) < 100


def test_off(weft):
    """Without --metrics there are none, and the address of --metrics is told if other hosts reach it."""
    with tempfile.TemporaryDirectory() as folder:
        words = ("serve", folder, "--state-dir", folder + "/../state" + str(os.getpid()), "--listen", "127.0.0.1:0",
                 "--mount-listen", "127.0.0.1:0")
        with Weft(weft, *words) as server:
            assert "metrics" not in server.ready
        process = subprocess.Popen([weft, *words, "--metrics", "0.0.0.0:0"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        assert "metrics=0.0.0.0:" in process.stdout.readline()
        process.terminate()
        errors = process.communicate(timeout=PATIENCE)[1]
        assert "every host that reaches this address can read the metrics" in errors, errors


def calls_until(nfs, stop):
    while not stop.is_set():
        nfs.null()


def test_top_json(weft):
    """`weft top --once --json` has the rates of one interval, for scripts."""
    with World(weft) as world, world.client() as nfs:
        nfs.null()
        stop = threading.Event()
        thread = threading.Thread(target=calls_until, args=(nfs, stop))
        thread.start()
        try:
            command = [weft, "top", world.server.ready["metrics"], "--once", "--json", "--interval", "0.3"]
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
        finally:
            stop.set()
            thread.join()
        same(done.stderr, "", "stderr")
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        same([row["type"] for row in rows], ["all", "client", "procedure"], "types")
        everything, client, procedure = rows
        same(everything["command"], "serve", "command")
        same(everything["clients"], 1, "clients")
        same(client["name"], "127.0.0.1", "client")
        same(procedure["name"], "NFSv3 NULL", "procedure")
        assert everything["seconds"] > 0
        for row in rows:
            assert row["calls_per_s"] > 0 and 0 < row["p50_ns"] <= row["p99_ns"], row
        assert client["send_in_octets_per_s"] > 0 and client["credits"] > 0, client
        same(subprocess.run([weft, "top", world.server.ready["rdma"], "--once"], capture_output=True,
                            timeout=PATIENCE).returncode, 1, "status for an address that has no metrics")


class OnTerminal:
    """`weft top` on a terminal of its own, 120 columns of 30 lines."""

    def __init__(self, weft, *words):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execv(weft, [weft, "top", *words])
        self.seen = ""
        self.resize(30, 120)

    def resize(self, lines, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def wait_for(self, text):
        """Reads until this text has come after everything that was waited for before."""
        while text not in self.seen:
            assert select.select([self.fd], [], [], PATIENCE)[0], f"no {text!r} in {self.seen!r}"
            self.seen += os.read(self.fd, 65536).decode()
        self.seen = self.seen.split(text, 1)[1]

    def press(self, key):
        os.write(self.fd, key.encode())

    def status(self):
        """The rest of the output, and how it ended."""
        rest = self.seen
        try:
            while more := os.read(self.fd, 65536).decode():
                rest += more
        except OSError:
            pass
        _, status = os.waitpid(self.pid, 0)
        local_modes = termios.tcgetattr(self.fd)[3]
        assert local_modes & termios.ECHO and local_modes & termios.ICANON, "the terminal is not as it was"
        os.close(self.fd)
        return rest, os.waitstatus_to_exitcode(status)


ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


def test_top_terminal(weft):
    """On a terminal: keys, another size, a server that goes and comes back, and a screen that is restored."""
    with World(weft) as world, world.client() as nfs:
        nfs.null()
        address = world.server.ready["metrics"]
        top = OnTerminal(weft, address, "--interval", "0.1")
        top.wait_for(ENTER)
        top.wait_for("weft serve")
        top.wait_for("127.0.0.1 ")
        top.wait_for("[c calls]")
        top.press("n")
        top.wait_for("[n name]")
        top.resize(10, 40)
        top.wait_for("q quits")
        world.server.__exit__()
        top.wait_for("asking again")
        again = serve(weft, world.folder.name + "/export", world.folder.name + "/state", metrics=address)
        with again:
            top.wait_for("weft serve")
            top.press("q")
            rest, status = top.status()
        assert rest.endswith(LEAVE), rest[-100:]
        same(status, 0, "status after q")

        top = OnTerminal(weft, address)
        top.wait_for(ENTER)
        os.kill(top.pid, signal.SIGINT)
        rest, status = top.status()
        assert rest.endswith(LEAVE), rest[-100:]
        same(status, -signal.SIGINT, "status after Ctrl-C")


CASES = {name.removeprefix("test_"): case for name, case in list(globals().items()) if name.startswith("test_")}

if __name__ == "__main__":
    CASES[sys.argv[2]](sys.argv[1])
    print("ok")
