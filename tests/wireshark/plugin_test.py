#!/usr/bin/env python3
"""Runs tshark with the plugin of docs/wireshark over captures made of the test vectors, and compares what it shows.

plugin_test.py CASE: CASE is the name of a function below whose name begins with case_, without that.
"""

import itertools
import os
import pathlib
import pwd
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from capture import CLIENT, SEND, SERVER, Capture, fpdu, untagged

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLUGIN = sorted((ROOT / "docs/wireshark").glob("*.lua"))
VECTORS = ROOT / "tests/vectors"
SKIPPED = 77

DRAFTS = {"cel05": "draft-cel-nfsv4-rpcrdma-version-two-05", "wg07": "draft-ietf-nfsv4-rpcrdma-version-two-07"}

# The last part of a name in the vector file, and the plugin's field.
FIELDS = {
    "rdma_xid": "xid", "rdma_vers": "version", "rdma_credit": "credit", "rdma_proc": "type", "rdma_htype": "type",
    "rdma_direction": "direction", "rdma_optdir": "direction", "rdma_inv_handle": "inv_handle",
    "rdma_remaining": "remaining", "present": "list.present", "absent": "list.present", "end": "list.present",
    "rdma_position": "position", "rdma_handle": "handle", "rdma_length": "length", "rdma_offset": "offset",
    "segment count": "segment_count", "rdma_err": "error", "rdma_vers_low": "vers_low",
    "rdma_vers_high": "vers_high", "rdma_max_chunks": "max_chunks", "rdma_max_segments": "max_segments",
    "rdma_chunk_index": "chunk_index", "rdma_length_needed": "length_needed", "rdma_opttype": "opttype",
    "rdma_optinfo": "optinfo", "count": "property_count", "rdma_which": "property.id", "len": "property.length",
    "rdma_data": ("property.value", "property.octets"), "word count": "subset_count", "word": "subset_word",
}
NAMES = {"rdma_proc": "type_name", "rdma_htype": "type_name", "rdma_err": "error_name"}

# Fewer than 16 bytes: these are left to other dissectors.
TOO_SHORT = {"S81", "W47"}
# As the first message of a connection, it means something in the other draft.
OTHER_DRAFT_FIRST = {"S46"}
# A server's, which tell the draft like a client's.
SERVERS_FIRST = {"S48", "S51"}
# A message of cel05 on a connection of wg07. The plugin reads it and what follows as cel05, as behind a client's retry.
OTHER_DRAFT = {"W40"}
# Their parts make no RPC message.
NO_RPC_INSIDE = {"W08c", "W09b"}


class Mismatches:
    def __init__(self):
        self.lines = []

    def expect(self, what, shown, wanted):
        if shown != wanted:
            self.lines.append(f"{what}: shown is {shown!r}, wanted is {wanted!r}")


def read_vectors(name):
    """The blocks of a file: their "key: value" lines, and the words of the comments as (offset, hex, name)."""
    for block in (VECTORS / name).read_text().split("\n\n"):
        vector, words = {}, []
        for line in block.splitlines():
            if line.startswith("#"):
                words.append(line[1:].split(None, 1))
            elif line.startswith("["):
                vector["id"] = line[1:line.index("]")]
            elif ": " in line:
                key, value = line.split(": ", 1)
                vector[key] = value
        if "id" in vector and "hex" in vector:
            vector["octets"] = bytes.fromhex(vector["hex"])
            vector["words"] = [(int(word[0]), *split_word(word[1])) for word in words if word and word[0].isdigit()]
            yield vector


def split_word(text):
    """The octets in hex, and their name."""
    digits = []
    parts = text.split()
    while parts and all(c in "0123456789abcdef." for c in parts[0]):
        digits.append(parts.pop(0))
    return "".join(digits).rstrip("."), " ".join(parts)


def as_user(folder):
    """Arguments of subprocess.run: root runs tshark as the user nobody, who gets the folder. From Wireshark 4.4 on, root
    gets no plugin in Lua, and no word about it."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    for path in (pathlib.Path(folder), *pathlib.Path(folder).iterdir()):
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def tshark(capture, *options, plugin=True, changes=()):
    """Standard output; what tshark says to standard error beside its warning of root is an error.

    changes: texts of the plugins that are other ones in this run.
    """
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "capture.pcap"
        capture.write(path)
        command = ["tshark", "-n"]
        if plugin:
            for file in PLUGIN:
                text = file.read_text()
                for before in changes:
                    text = text.replace(before, changes[before])
                changed = pathlib.Path(scratch) / file.name
                changed.write_text(text)
                command += ["-X", f"lua_script:{changed}"]
        result = subprocess.run(command + ["-r", path, *options], capture_output=True, text=True, timeout=100,
                                env=dict(os.environ, HOME=scratch, XDG_CONFIG_HOME=scratch), **as_user(scratch))
    trouble = [line for line in result.stderr.splitlines() if line and not line.startswith("Running as user")]
    if trouble or result.returncode != 0:
        sys.exit("tshark failed: " + "\n".join(trouble))
    return result.stdout


class Frame:
    """What tshark shows of a packet: its protocols and its fields, by name."""

    def __init__(self, packet):
        self.protocols = [proto.get("name") for proto in packet.iter("proto")]
        self.fields = {}
        for field in packet.iter("field"):
            self.fields.setdefault(field.get("name"), []).append(field)

    def show(self, name):
        # Wireshark up to 4.2 shows a bool as a number.
        words = {"True": "1", "False": "0"}
        return [words.get(field.get("show"), field.get("show")) for field in self.fields.get(name, [])]

    def is_malformed(self):
        return any(name.endswith(".malformed") and not name.startswith("_ws.") for name in self.fields)

    def fields_with_octets(self, prefix):
        """Offset in the packet, octets and field of every field that stands for octets."""
        for name, fields in self.fields.items():
            for field in fields if name.startswith(prefix) else []:
                if field.get("value") is not None:
                    yield int(field.get("pos")), field.get("value"), name[len(prefix):]


def read_frames(capture, *options, **how):
    """The frames by number, read in one pass, and in two as Wireshark does."""
    for passes in ([], ["-2"]):
        root = xml.etree.ElementTree.fromstring(tshark(capture, *passes, *options, "-T", "pdml", **how))
        yield dict(enumerate(map(Frame, root.iter("packet")), 1))


def drafts_vectors():
    return [v for v in read_vectors("rpcrdma2-vectors.txt") if v["profile"] in DRAFTS]


def is_accepted(vector):
    return vector["expect"].startswith("accept")


def wanted_words(vector):
    for offset, digits, name in vector["words"]:
        if not name or name.startswith("("):
            continue
        name, _, value = name.partition(" = ")
        name = name.split(" (+")[0]
        name = name.split("] ", 1)[-1] if "] " in name and "word[" not in name else name
        last = name.split(".")[-1].split("[")[0]
        for known in (last, last.split(" ", 1)[-1], last.rsplit(" ", 1)[-1]):
            if known in FIELDS:
                yield offset, digits, FIELDS[known], NAMES.get(known), value
                break
        else:
            sys.exit(f"{vector['id']}: no field is known for {name!r}")


def judge_words(vector, frame, mismatches):
    base = min(int(field.get("pos")) for field in frame.fields["rpcrdma2.xid"])
    shown = {(position - base, field): octets for position, octets, field in frame.fields_with_octets("rpcrdma2.")}
    for offset, digits, field, name_field, value in wanted_words(vector):
        fields = field if isinstance(field, tuple) else (field,)
        octets = next((shown[(offset, one)] for one in fields if (offset, one) in shown), "")
        length = min(len(octets), len(digits)) if octets else len(digits)
        mismatches.expect(f"{vector['id']}: {fields} at {offset}", octets[:length], digits[:length])
        if name_field:
            mismatches.expect(f"{vector['id']}: {name_field}", value in frame.show(f"rpcrdma2.{name_field}"), True)


def judge_message(vector, frame, mismatches, draft=None):
    name = vector["id"]
    if name in TOO_SHORT:
        mismatches.expect(f"{name}: protocols", "rpcrdma2" in frame.protocols, False)
        return
    is_good = is_accepted(vector) and name not in NO_RPC_INSIDE or name in OTHER_DRAFT
    mismatches.expect(f"{name}: malformed", frame.is_malformed(), not is_good)
    if is_accepted(vector) or draft:
        mismatches.expect(f"{name}: draft", frame.show("rpcrdma2.draft"), [draft or DRAFTS[vector["profile"]]])


def case_drafts():
    """Every message of a draft in one connection, word by word."""
    capture, sent = Capture(), {}
    for profile in DRAFTS:
        connection = capture.connect()
        vectors = [vector for vector in drafts_vectors() if vector["profile"] == profile]
        for vector in sorted(vectors, key=lambda vector: vector["id"] in OTHER_DRAFT):
            sent[connection.send(vector["from"], vector["octets"])] = vector
    mismatches = Mismatches()
    for frames in read_frames(capture):
        for number, vector in sent.items():
            other = DRAFTS["cel05"] if vector["id"] in OTHER_DRAFT else None
            judge_message(vector, frames[number], mismatches, other)
            if is_accepted(vector):
                judge_words(vector, frames[number], mismatches)
    return mismatches


def case_first_messages():
    """The first message of a connection tells the draft."""
    capture, sent = Capture(), {}
    for vector in drafts_vectors():
        is_first = vector["from"] == CLIENT or vector["id"] in SERVERS_FIRST
        if is_first and vector["id"] not in NO_RPC_INSIDE:
            sent[capture.connect().send(vector["from"], vector["octets"])] = vector
    mismatches = Mismatches()
    for frames in read_frames(capture):
        for number, vector in sent.items():
            if not is_accepted(vector) and vector["id"] not in TOO_SHORT:
                continue
            other = DRAFTS["wg07"] if vector["id"] in OTHER_DRAFT_FIRST else None
            judge_message(vector, frames[number], mismatches, other)
    return mismatches


def case_rpc():
    """RPC messages reach Wireshark's dissectors of RPC and NFS, whole or in parts or with data in chunks."""
    vectors = {v["id"]: v["octets"] for v in drafts_vectors()}
    capture, wanted = Capture(), {}
    for ids in (("S01", "S02", "S03", "S04", "S05"), ("W01", "W02", "W03", "W04", "W05")):
        connection = capture.connect()
        for vector in ids:
            wanted[connection.send(CLIENT if vector[1:] in ("01", "03", "05") else SERVER, vectors[vector])] = vector
    call = vectors["W01"][-40:]
    connection = capture.connect()
    middle = vectors["W01"][:12] + bytes.fromhex("0000000900000014") + call[:20]
    part = connection.send(CLIENT, middle)
    whole = connection.send(CLIENT, vectors["W01"][:-40] + call[20:])
    no_call = capture.connect().send(SERVER, vectors["W04"])
    filled = ["zeros stand for the data that went by chunks"]
    notes = {"S04": filled, "S05": filled, "W04": filled, "W05": filled}
    mismatches = Mismatches()
    for frames in read_frames(capture):
        for number, vector in wanted.items():
            frame = frames[number]
            mismatches.expect(f"{vector}: NFS", "nfs" in frame.protocols, True)
            mismatches.expect(f"{vector}: malformed", "_ws.malformed" in frame.protocols, False)
            mismatches.expect(f"{vector}: note", frame.show("rpcrdma2.note"), notes.get(vector, []))
        mismatches.expect("Reply without its Call: RPC", "rpc" in frames[no_call].protocols, False)
        mismatches.expect("Reply without its Call", frames[no_call].show("rpcrdma2.note"),
                          ["data went by Write chunks: its place in the RPC message is not known"])
        mismatches.expect("first part: RPC", "rpc" in frames[part].protocols, False)
        mismatches.expect("second part: NFS", "nfs" in frames[whole].protocols, True)
        mismatches.expect("second part", frames[whole].show("rpcrdma2.note"), ["put together from 2 messages"])
    return mismatches


def call_in_parts(connection, vectors, xid, length):
    """A Call of `length` bytes and more in parts of 1000. Returns the frame with its end."""
    call = struct.pack(">I", xid) + vectors["W01"][-36:] + bytes(length)
    first = struct.pack(">I", xid) + vectors["W01"][4:12]
    while len(call) > 1000:
        connection.send(CLIENT, first + struct.pack(">II", 9, len(call) - 1000) + call[:1000])
        call = call[1000:]
    return connection.send(CLIENT, first + vectors["W01"][12:-40] + call)


def case_long_messages():
    """A message that is too long is not put together, and takes no room from the others."""
    vectors = {v["id"]: v["octets"] for v in drafts_vectors()}
    limits = {"MAX_ASSEMBLED = 1048576": "MAX_ASSEMBLED = 4096", "MAX_KEPT = 67108864": "MAX_KEPT = 12000"}
    capture = Capture()
    connection = capture.connect()
    connection.send(CLIENT, vectors["W01"])
    long = [call_in_parts(connection, vectors, xid, 5000) for xid in range(1, 9)]
    short = [call_in_parts(connection, vectors, xid, 3000) for xid in range(9, 12)]
    beyond = call_in_parts(connection, vectors, 12, 3000)
    mismatches = Mismatches()
    for frames in read_frames(capture, changes=limits):
        for number, note, has_rpc in [
            *((number, "the end of 6 messages that are too long to be put together", False) for number in long),
            *((number, "put together from 4 messages", True) for number in short),
            (beyond, "the end of 4 messages that are too long to be put together", False),
        ]:
            mismatches.expect(f"{number}: note", frames[number].show("rpcrdma2.note"), [note])
            mismatches.expect(f"{number}: RPC", "rpc" in frames[number].protocols, has_rpc)
    return mismatches


def case_same_ports():
    """A connection knows nothing of the one before it on its ports: neither the draft nor a part of a message."""
    vectors = {v["id"]: v["octets"] for v in drafts_vectors()}
    capture = Capture()
    connection = capture.connect()
    connection.send(CLIENT, vectors["S01"])
    connection.send(CLIENT, struct.pack(">I", 1) + vectors["W01"][4:12] + struct.pack(">II", 9, 40) + bytes(20))
    capture.num_connections = 0
    connection = capture.connect(sequence=100000)
    call = connection.send(CLIENT, struct.pack(">I", 1) + vectors["W01"][4:-40] + struct.pack(">I", 1) +
                           vectors["W01"][-36:])
    mismatches = Mismatches()
    for frames in read_frames(capture):
        mismatches.expect("draft", frames[call].show("rpcrdma2.draft"), [DRAFTS["wg07"]])
        mismatches.expect("note", frames[call].show("rpcrdma2.note"), [])
        mismatches.expect("RPC", "rpc" in frames[call].protocols, True)
    return mismatches


def case_mixed_versions():
    """Messages that Wireshark's rpcordma takes and does not show, behind version 1 in the same capture."""
    vectors = {v["id"]: v for v in read_vectors("rpcrdma2-vectors.txt")}
    capture = Capture()
    connection = capture.connect()
    sent = {}
    for name in ("S01", "S60", "S61", "S60", "S61", "S29", "S06"):
        sent[connection.send(vectors[name]["from"], vectors[name]["octets"])] = name
    mismatches = Mismatches()
    for frames in read_frames(capture):
        for number, name in sent.items():
            types = [] if name == "S61" else [vectors[name]["hex"][24:32].lstrip("0") or "0"]
            mismatches.expect(f"{name} in {number}: type", frames[number].show("rpcrdma2.type"), types)
    return mismatches


def case_one_segment():
    """Several Sends in one TCP segment."""
    vectors = {v["id"]: v["octets"] for v in read_vectors("rpcrdma2-vectors.txt")}
    capture = Capture()
    connection = capture.connect()
    messages = [vectors[name] for name in ("W10", "W01", "W10", "W12")]
    fpdus = [fpdu(untagged(SEND, octets, msn)) for msn, octets in enumerate(messages, 1)]
    number = connection.add(CLIENT, b"".join(fpdus))
    mismatches = Mismatches()
    for frames in read_frames(capture):
        mismatches.expect("types", sorted(frames[number].show("rpcrdma2.type")), ["10", "5", "5", "7"])
        mismatches.expect("malformed", frames[number].is_malformed(), False)
    return mismatches


def case_startup():
    """The words of RFC 6581 and of RFC 8797."""
    words = {"a_flag": "1", "b_flag": "0", "ird": "16", "c_flag": "1", "d_flag": "0", "ord": "8"}
    rpcrdma1 = {"format": "0xf6ab0e18", "version": "1", "r_flag": "1", "send_size": "4096", "receive_size": "262144"}
    others = {"a_flag": "0", "b_flag": "1", "ird": "16383", "c_flag": "0", "d_flag": "1", "ord": "1"}
    private = bytes.fromhex("f6ab0e18010103ff")
    connection_data = bytes.fromhex("80108008")
    capture = Capture()
    cases = [
        ("both", capture.connect((connection_data + private, b"")), "1", words, rpcrdma1, False),
        ("no S", capture.connect((private, b""), flags=0x40), "0", {}, rpcrdma1, False),
        ("revision 1", capture.connect((private, b""), flags=0x40, revision=1), None, {}, rpcrdma1, False),
        ("S alone", capture.connect((connection_data, b"")), "1", words, {}, False),
        ("the other flags", capture.connect((bytes.fromhex("7fff4001"), b"")), "1", others, {}, False),
        ("other data", capture.connect((connection_data + b"ULP!", b"")), "1", words, {}, False),
        ("S and 2 bytes", capture.connect((b"\0\0", b"")), "1", {}, {}, True),
        ("6 bytes of RFC 8797", capture.connect((private[:6], b""), flags=0x40), "0", {}, {}, True),
    ]
    # What Wireshark shows itself the plugin leaves to it.
    fields = subprocess.run(["tshark", "-G", "fields"], capture_output=True, text=True).stdout
    if "\tiwarp_mpa.enhanced_flag\t" in fields:
        cases = [(name, connection, None, {}, rpcrdma, bad) for name, connection, _, _, rpcrdma, bad in cases]
    mismatches = Mismatches()
    for frames in read_frames(capture):
        for name, connection, s_flag, mpa, rpcrdma, is_malformed in cases:
            frame = frames[connection.frame_of_request]
            mismatches.expect(f"{name}: malformed", frame.is_malformed(), is_malformed)
            mismatches.expect(f"{name}: S", frame.show("weft_iwarp.mpa.s_flag"), [s_flag] if s_flag else [])
            for layer, wanted, all_fields in (("mpa", mpa, words), ("rpcrdma1", rpcrdma, rpcrdma1)):
                for field in all_fields:
                    mismatches.expect(f"{name}: {field}", frame.show(f"weft_iwarp.{layer}.{field}"),
                                      [wanted[field]] if field in wanted else [])
    return mismatches


def case_rdmap():
    """Immediate Data and Atomics of RFC 7306, and the Terminates of RFC 6581."""
    vectors = {v["id"]: v["octets"] for v in read_vectors("rdmap-vectors.txt")}
    capture = Capture()
    connection = capture.connect()
    frame_of = {name: connection.ulpdu(CLIENT, vectors[name]) for name in ("E01", "E02", "E03", "H49")}
    terminate = capture.connect().ulpdu(CLIENT, vectors["T23"])
    mismatches = Mismatches()
    for frames in read_frames(capture):
        for name, opcode, data in (("E01", "Immediate Data", "0x0102030405060708"),
                                   ("E02", "Immediate Data with Solicited Event", "0xf8f9fafbfcfdfeff")):
            frame = frames[frame_of[name]]
            mismatches.expect(f"{name}: opcode", frame.show("weft_iwarp.rdma.opcode"), [opcode])
            mismatches.expect(f"{name}: data", frame.show("weft_iwarp.rdma.immediate_data"), [data])
            mismatches.expect(f"{name}: malformed", frame.is_malformed(), False)
        mismatches.expect("H49: malformed", frames[frame_of["H49"]].is_malformed(), True)
        mismatches.expect("E03: opcode", frames[frame_of["E03"]].show("iwarp_rdma.atomic.opcode"), ["0"])
        mismatches.expect("Terminate", frames[terminate].show("weft_iwarp.mpa.term_error"),
                          ["No matching RTR option"])
    columns = tshark(capture)
    mismatches.expect("the columns name Immediate Data", columns.count("Immediate Data"), 3)
    return mismatches


def spoiled(octets):
    """Every beginning of the octets, and the octets with each word in turn made the largest, and one."""
    for length in range(0, len(octets), 3):
        yield octets[:length]
    for at in range(0, len(octets) - 3, 4):
        for word in (b"\xff\xff\xff\xff", b"\0\0\0\1", b"\0\xff\xff\xf8"):
            yield octets[:at] + word + octets[at + 4:]


def segments_of(connection, message, length):
    """The FPDUs of a Send of several segments."""
    connection.msn[CLIENT] += 1
    for at in range(0, len(message), length):
        flags = 0x41 if at + length >= len(message) else 0x01
        yield fpdu(struct.pack(">BBIIII", flags, 0x40 | SEND, 0, 0, connection.msn[CLIENT], at) +
                   message[at:at + length])


def case_several_segments():
    """Wireshark puts together one Send of several segments in a packet: the plugin reads the others."""
    vectors = {v["id"]: v["octets"] for v in drafts_vectors()}

    def call(xid, extra=0):
        return struct.pack(">I", xid) + vectors["W01"][4:-40] + struct.pack(">I", xid) + vectors["W01"][-36:] + bytes(extra)

    capture, wanted = Capture(), {}
    connection = capture.connect()
    connection.send(CLIENT, call(1))
    octets = b""
    for xid in range(2, 8):
        if xid % 2 == 0:
            octets += b"".join(segments_of(connection, call(xid, 3000 + xid), 1000))
        else:
            connection.msn[CLIENT] += 1
            octets += fpdu(untagged(SEND, call(xid), connection.msn[CLIENT]))
    wanted[connection.add(CLIENT, octets)] = list(range(2, 8))
    # A Send that goes on in the next packets, behind one that is whole.
    first = list(segments_of(connection, call(8, 3000), 1000))
    second = list(segments_of(connection, call(9, 3100), 1000))
    wanted[connection.add(CLIENT, b"".join(first + second[:1]))] = [8]
    wanted[connection.add(CLIENT, second[1])] = []
    third = list(segments_of(connection, call(10, 3200), 1000))
    wanted[connection.add(CLIENT, b"".join(second[2:] + third))] = [9, 10]
    mismatches = Mismatches()
    # In two passes, Wireshark 4.0 reports a bug of its own for a Send of several segments (docs/wireshark).
    for frames in itertools.islice(read_frames(capture), 1):
        for number, xids in wanted.items():
            shown = sorted(int(xid, 16) for xid in frames[number].show("rpcrdma2.xid"))
            mismatches.expect(f"packet {number}", shown, xids)
    return mismatches


def case_hostile():
    """No error of Lua comes to light, whatever the octets."""
    capture = Capture()
    for profile, first in (("cel05", "S01"), ("wg07", "W01")):
        connection = capture.connect()
        vectors = [v for v in drafts_vectors() if v["profile"] == profile]
        connection.send(CLIENT, next(v["octets"] for v in vectors if v["id"] == first))
        for vector in vectors:
            for octets in spoiled(vector["octets"]):
                connection.send(vector["from"], octets)
    for vector in read_vectors("rdmap-vectors.txt"):
        if vector["id"] in ("E01", "E02", "E03", "E04", "E05"):
            connection = capture.connect()
            for octets in spoiled(vector["octets"]):
                connection.ulpdu(CLIENT, octets)
    for octets in spoiled(bytes.fromhex("8010c008f6ab0e18010103ff")):
        for flags in (0, 0x10):
            capture.connect((octets, octets), flags=flags)
    mismatches = Mismatches()
    for passes in ([], ["-2"]):
        text = tshark(capture, *passes, "-V")
        mismatches.expect("frames with version 2", text.count("RPC-over-RDMA version 2\n") > 1000, True)
        for trouble in ("Lua Error", "cannot be read", "Dissector bug"):
            mismatches.expect(trouble, text.count(trouble), 0)
    return mismatches


def has_lua():
    """Wireshark up to 4.4 says "with Lua 5.2.4", later ones say "+Lua 5.4.8"."""
    return shutil.which("tshark") and re.search(
        r"(\bwith|\+) ?Lua", " ".join(subprocess.run(["tshark", "-v"], capture_output=True, text=True).stdout.split()))


def main():
    if not has_lua():
        print("skipped: tshark is not installed, or is without Lua")
        return 1 if os.environ.get("WEFT_SKIP_IS_FAILURE") else SKIPPED
    mismatches = globals()["case_" + sys.argv[1]]()
    for line in mismatches.lines[:40]:
        print(line)
    return 1 if mismatches.lines else 0


sys.exit(main())
