"""Programs for the tests of the metrics: `weft` processes, an RPC client of TCP, and a reader of OpenMetrics.

The reader is prometheus_client, which has nothing in common with Weft's own writer and parser.
"""
import http.client
import re
import socket
import struct
import subprocess
import sys

try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
except ImportError:
    print("skipped: python3-prometheus-client is not installed")
    sys.exit(77)

# The longest wait for anything that has to happen.
PATIENCE = 60


class Weft:
    """A `weft` that listens; its ready line is read."""

    def __init__(self, weft, *words):
        self.process = subprocess.Popen([weft, *words], stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("ready "), line
        self.ready = dict(part.split("=", 1) for part in line.split()[1:])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(PATIENCE)
        self.process.stdout.close()

    def metrics(self):
        return Metrics(*get(self.ready["metrics"]))


def serve(weft, folder, state, *words, metrics="127.0.0.1:0"):
    return Weft(weft, "serve", str(folder), "--state-dir", str(state), "--listen", "127.0.0.1:0", "--mount-listen",
                "127.0.0.1:0", "--metrics", metrics, *words)


def gateway(weft, listen, connect, *words):
    return Weft(weft, "gateway", "--listen", listen, "--connect", connect, "--metrics", "127.0.0.1:0", *words)


def get(address):
    """The headers and the body of /metrics."""
    host, port = address.rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE)
    connection.request("GET", "/metrics")
    response = connection.getresponse()
    assert response.status == 200, response.status
    return response.headers, response.read().decode()


class Metrics:
    """One answer. A text that is no OpenMetrics raises an exception."""

    def __init__(self, headers, text):
        assert headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8", headers
        self.families = {family.name: family for family in text_string_to_metric_families(text)}

    def samples(self, name):
        return [sample for family in self.families.values() for sample in family.samples if sample.name == name]

    def value(self, name, **labels):
        """The sum of the samples with these labels."""
        fitting = [sample.value for sample in self.samples(name) if labels.items() <= sample.labels.items()]
        assert fitting, f"no sample {name} {labels}"
        return sum(fitting)

    def calls(self, procedure):
        samples = self.samples("weft_rpc_duration_seconds_count")
        return sum(sample.value for sample in samples if sample.labels["procedure"] == procedure)

    def bytes(self, kind, direction):
        return self.value("weft_transfer_bytes_total", kind=kind, direction=direction)

    def operations(self, kind, direction):
        return self.value("weft_transfer_operations_total", kind=kind, direction=direction)


def opaque(octets):
    return struct.pack(">I", len(octets)) + octets + bytes(-len(octets) % 4)


class Rpc:
    """A client of ONC RPC over TCP (RFC 5531), one Call at a time."""

    def __init__(self, address):
        host, port = re.sub("^tcp://", "", address).rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=PATIENCE)
        self.xid = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def call(self, program, version, procedure, arguments=b""):
        """accept_stat and results."""
        self.xid += 1
        message = struct.pack(">10I", self.xid, 0, 2, program, version, procedure, 0, 0, 0, 0) + arguments
        self.socket.sendall(struct.pack(">I", 1 << 31 | len(message)) + message)
        reply = self.record()
        xid, kind, state, _, verifier_len, accept = struct.unpack(">6I", reply[:24])
        assert (xid, kind, state, verifier_len) == (self.xid, 1, 0, 0), reply[:24]
        return accept, reply[24:]

    def record(self):
        record = b""
        while True:
            mark = struct.unpack(">I", self.exactly(4))[0]
            record += self.exactly(mark & 0x7fffffff)
            if mark >> 31:
                return record

    def exactly(self, size):
        octets = b""
        while len(octets) < size:
            more = self.socket.recv(size - len(octets))
            assert more, "the connection ended"
            octets += more
        return octets


NFS, MOUNT = 100003, 100005
NULL, LOOKUP, READ, WRITE = 0, 3, 6, 7


class Nfs3(Rpc):
    """NFSv3 and MOUNT v3 (RFC 1813), as far as the tests need them."""

    def root(self, mount_address):
        with Rpc(mount_address) as mount:
            accept, results = mount.call(MOUNT, 3, 1, opaque(b"/"))
        status, size = struct.unpack(">2I", results[:8])
        assert (accept, status) == (0, 0)
        return results[8:8 + size]

    def ok(self, procedure, arguments):
        accept, results = self.call(NFS, 3, procedure, arguments)
        assert accept == 0 and results[:4] == bytes(4), (accept, results[:4])
        return results[4:]

    def null(self):
        assert self.call(NFS, 3, NULL) == (0, b"")

    def lookup(self, folder, name):
        results = self.ok(LOOKUP, opaque(folder) + opaque(name))
        size = struct.unpack(">I", results[:4])[0]
        return results[4:4 + size]

    def read(self, file, offset, count):
        results = self.ok(READ, opaque(file) + struct.pack(">QI", offset, count))
        results = results[4 + 84 * results[3]:]  # post_op_attr
        size = struct.unpack(">I", results[8:12])[0]
        return results[12:12 + size]

    def write(self, file, offset, octets):
        self.ok(WRITE, opaque(file) + struct.pack(">QII", offset, len(octets), 0) + opaque(octets))
