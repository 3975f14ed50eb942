"""An evil peer: it plays the mistakes of docs/learn/gallery against Weft's own end, and compares what that end answers.

evil_peer.py WEFT          exit status 1 and a line for each scene whose capture is not what `--trace` recorded
evil_peer.py WEFT update   writes the recorded captures into the gallery

The peer is a TCP socket that sends the octets of a scene of tests/learn/gallery.py, and no code of Weft's. The end under
attack is a real one with `--trace`. Its trace becomes the capture of the gallery: addresses, ports, sequence numbers and
times are those of the gallery, and every octet above TCP, the order and the ends are those of the trace.
"""

import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT / "tests/wireshark"), str(ROOT / "tests/learn")]
from capture import ACK, CLIENT, SERVER, SERVER_PORT, Capture, Connection  # noqa: E402
import gallery  # noqa: E402

FIN = 0x01
PATIENCE = 60  # seconds for an answer; no answer takes one

# The options of the server that a scene attacks.
PING = ["ping", "--listen", "127.0.0.1:0"]
SERVE = ["serve", "--listen", "127.0.0.1:0", "--mount-listen", "127.0.0.1:0", "--ird", "2", "--ord", "2"]
SCENES = {
    "wrong-key": PING,
    "wrong-revision": PING,
    "crc-one-side": PING,
    "bad-crc": SERVE,
    "msn-gap": SERVE,
    "unknown-opcode": SERVE,
    "rpc-bad-list": SERVE,
    "rpc-version": [*SERVE, "--rpcrdma", "1"],
    "rpc-garbage": SERVE,
}

# Why the others are written by tests/learn/gallery.py alone.
MEMORY = "no command of Weft offers memory under an STag that the scene can know"
RECEIVES = "no command of Weft has so few Receives, or such short ones"
HARMLESS = "no mistake to answer"
SCRIPTED = {
    "healthy": HARMLESS,
    "markers": HARMLESS,
    "lost": HARMLESS,
    "middle": HARMLESS,
    "no-rtr": "Weft takes any first message for the ready-to-receive",
    "server-first": "the client's first message and the server's cross",
    "bad-marker": "the server answers the first message, and the answer and the second message cross",
    "no-receive": RECEIVES,
    "send-too-long": RECEIVES,
    "rpc-credits": RECEIVES,
    "stag-unknown": MEMORY,
    "out-of-bounds": MEMORY,
    "read-only": MEMORY,
    "write-only": MEMORY,
    "other-domain": MEMORY,
    "too-many-reads": MEMORY,
    "response-order": "no server of Weft reads before it has a whole Call",
    "siw-terminate": "Linux siw sends it",
    "rpc-reply-chunk": "no file of the scene has so long a list of names",
    "rpc-unknown-xid": "a server makes the mistake, and a client's XIDs differ from run to run",
}


def parts(path):
    """What a capture of the gallery has above TCP: (sender, octets, whether it is a FIN) for each segment of raw IPv4."""
    octets, at = pathlib.Path(path).read_bytes(), 24
    while at < len(octets):
        size = struct.unpack_from("<I", octets, at + 8)[0]
        yield from segment(octets[at + 16:at + 16 + size], SERVER_PORT)
        at += 16 + size


def segment(ip, server_port):
    """The same for a packet. A segment without octets and without FIN or RST gives nothing."""
    tcp = ip[(ip[0] & 15) * 4:struct.unpack_from(">H", ip, 2)[0]]
    source, flags, payload = struct.unpack_from(">H", tcp)[0], tcp[13], tcp[(tcp[12] >> 4) * 4:]
    sender = SERVER if source == server_port else CLIENT
    if payload or flags & FIN:
        yield sender, payload, bool(flags & FIN)


def trace_parts(path, server_port):
    """The same for a trace: pcapng, with one interface of raw IP."""
    octets, at = path.read_bytes(), 0
    while at < len(octets):
        kind, size = struct.unpack_from("<II", octets, at)
        if kind == 6:  # an Enhanced Packet Block
            length = struct.unpack_from("<I", octets, at + 20)[0]
            yield from segment(octets[at + 28:at + 28 + length], server_port)
        at += size


def capture_of(played):
    capture = Capture()
    connection = Connection(capture, 40000)
    for sender, octets, is_end in played:
        if octets:
            connection.add(sender, octets)
        if is_end:
            connection.segment(sender, b"", ACK | FIN)
    return capture


def receive(peer, count):
    """As many octets as are due, or fewer at the end of the stream."""
    octets = b""
    while len(octets) < count:
        try:
            piece = peer.recv(count - len(octets))
        except ConnectionResetError:
            piece = b""
        if not piece:
            break
        octets += piece
    return octets


class Frames:
    """What the other end sends, frame by frame."""

    def __init__(self, peer):
        self.peer, self.is_first = peer, True

    def next(self):
        """Waits for a whole MPA Reply or FPDU without Markers, or for the end of the stream."""
        if self.is_first:
            head = receive(self.peer, 20)
            length = struct.unpack(">H", head[18:])[0] if len(head) == 20 else 0
        else:
            head = receive(self.peer, 2)
            length = (struct.unpack(">H", head)[0] + 5) // 4 * 4 + 2 if len(head) == 2 else 0
        self.is_first = False
        receive(self.peer, length)


def play(peer, script):
    """Sends the octets of the client, and waits for each frame that the script has of the server."""
    frames = Frames(peer)
    for sender, octets, _ in script:
        if sender == CLIENT and octets:
            peer.sendall(octets)
        elif octets:
            frames.next()
    if script[-1][0] == CLIENT:
        peer.shutdown(socket.SHUT_WR)
    while receive(peer, 1):
        pass


def attack(weft, script, arguments, trace):
    """The evil peer is the client. Returns the port of the server."""
    command = [weft, *arguments, "--trace", str(trace)]
    if arguments[0] == "serve":
        command.append(str(trace.parent))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            port = int(re.search(r"rdma=[^ ]*:(\d+)", server.stdout.readline())[1])
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as peer:
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                play(peer, script)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(PATIENCE)
    return port


def record(weft, name, folder):
    """The capture of a scene, in the file whose name is returned."""
    scripted, trace, recorded = (folder / f"{name}{end}" for end in (".script", ".pcapng", ".pcap"))
    capture = Capture()
    gallery.SCENES[name](capture)
    capture.write(scripted)
    port = attack(weft, list(parts(scripted)), SCENES[name], trace)
    capture_of(trace_parts(trace, port)).write(recorded)
    return recorded


def main(weft, update):
    if SCENES.keys() != gallery.PLAYED or SCENES.keys() ^ SCRIPTED.keys() != gallery.SCENES.keys():
        sys.exit("each scene of the gallery is either recorded or scripted")
    failures = []
    with tempfile.TemporaryDirectory(prefix="weft-evil-") as directory:
        for name in SCENES:
            recorded = record(weft, name, pathlib.Path(directory))
            kept = gallery.GALLERY / recorded.name
            if update:
                kept.write_bytes(recorded.read_bytes())
            elif recorded.read_bytes() != kept.read_bytes():
                failures.append(name)
                for title, path in (("the gallery", kept), ("the trace", recorded)):
                    print(f"{name}: {title} has", file=sys.stderr)
                    for sender, octets, is_end in parts(path):
                        print(f"  {sender} {len(octets)}: {octets[:64].hex()}{' FIN' if is_end else ''}", file=sys.stderr)
    if failures:
        sys.exit(f"FAILED: {', '.join(failures)}")
    print(f"{len(SCENES)} captures of the gallery are recorded ones, {len(SCRIPTED)} are scripted")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] == ["update"])
