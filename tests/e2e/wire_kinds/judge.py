"""Compares tshark's reading of a capture with the description by the script of its conversations.

judge.py WIRE_KINDS: runs that program, then tshark on its capture. Each packet of iWARP is compared field by field:
every field that tshark shows must be one that was told, with that value, and every one that was told must be shown.
Nothing may be malformed, and tshark may have nothing to remark. Exit status 1, and one line for each mismatch,
otherwise.

What tshark 4.0 makes of iWARP in its own way, all of it allowed for below and nothing else:
 - It takes each TCP segment for one FPDU, and reads an FPDU with several Markers wrongly. The capture is made so.
 - Of MPA it knows revision 1: the words of RFC 6581 are Private Data to it, the S bit a reserved one. It remarks on
   that in its first pass over a capture; what is read here is the second, which alone knows where a Send will end.
 - It shows the octets of a Send in its last segment, put together with those before. Nothing is shown for no octets.
 - Of a Terminate's DDP header it shows 14 octets where the error type is 1 and else 18, where it should look at the
   header's T bit; the Read Request header begins for it wherever that ends, so that the last 4 octets of a Terminate
   of 0/1 are in none of its fields. A tagged header of 14 octets with another error type would make the packet
   malformed; the capture has none.
 - Of RFC 7306 it knows the Atomics; of Immediate Data it shows neither a name nor the 8 octets.
 - It decodes a Send further where it could be NFS or SMB Direct; that is switched off.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

TSHARK = ["tshark", "-2", "-n", "-T", "pdml", "--disable-protocol", "rpcordma", "--disable-protocol", "smb_direct"]

# The parts of a packet. A malformed one has a further part that says so.
PARTS = {"geninfo", "frame", "raw", "ip", "tcp", "iwarp_mpa", "iwarp_ddp_rdmap", "fake-field-wrapper"}

SENDS = {3, 4, 5, 6}
INVALIDATES = {4, 6}
IMMEDIATES = {8, 9}
NAMES = ["RDMA Write", "RDMA Read Request", "RDMA Read Response", "Send", "Send with Invalidate",
         "Send with Solicited Event", "Send with Solicited Event and Invalidate", "Terminate", "Immediate Data",
         "Immediate Data with Solicited Event", "Atomic Request", "Atomic Response"]


class Message:
    """A Send under way: the frame numbers and octets of its segments so far."""

    def __init__(self):
        self.frames = []
        self.parts = []


def startup_fields(frame):
    fields = {
        "iwarp_mpa.key.rep" if frame["reply"] else "iwarp_mpa.key.req":
            [(b"MPA ID Rep Frame" if frame["reply"] else b"MPA ID Req Frame").hex()],
        "iwarp_mpa.marker_flag": [frame["m"]],
        "iwarp_mpa.crc_flag": [frame["c"]],
        "iwarp_mpa.rej_flag": [frame["r"]],
        "iwarp_mpa.res": [frame["res"]],
        "iwarp_mpa.rev": [frame["rev"]],
        "iwarp_mpa.pdlength": [len(frame["private_data"]) // 2],
    }
    if frame["private_data"]:
        fields["iwarp_mpa.privatedata"] = [frame["private_data"]]
    return fields


def mpa_fields(fpdu):
    fields = {"iwarp_mpa.ulpdulength": [fpdu["ulpdu_length"]]}
    if fpdu["pad"]:
        fields["iwarp_mpa.pad"] = [fpdu["pad"]]
    if fpdu["crc"] == "unused":
        fields["iwarp_mpa.crc"] = [0]
    else:
        fields["verdict on the CRC"] = [fpdu["crc"]]
    if fpdu.get("markers"):
        fields["iwarp_mpa.marker_res"] = [0]
        fields["iwarp_mpa.marker_fpduptr"] = fpdu["markers"]
    return fields


def ddp_fields(fpdu):
    fields = {
        "iwarp_ddp.tagged_flag": [fpdu["t"]],
        "iwarp_ddp.last_flag": [fpdu["l"]],
        "iwarp_ddp.rsvd": [fpdu["rsvd"]],
        "iwarp_ddp.dv": [fpdu["dv"]],
        "iwarp_rdma.version": [fpdu["rv"]],
        "iwarp_rdma.rsv": [fpdu["rsv"]],
        "iwarp_rdma.opcode": [fpdu["opcode"]],
    }
    if fpdu["t"]:
        fields["iwarp_ddp.stag"] = [fpdu["stag"]]
        fields["iwarp_ddp.tagged_offset"] = [fpdu["to"]]
        return fields
    control = fpdu["rv"] << 6 | fpdu["rsv"] << 4 | fpdu["opcode"]
    fields["iwarp_ddp.rsvdulp"] = [f"{control:02x}{fpdu['rsvd_ulp_8_39']:08x}"]
    for name in ("qn", "msn", "mo"):
        fields[f"iwarp_ddp.{name}"] = [fpdu[name]]
    if fpdu["opcode"] in INVALIDATES:
        fields["iwarp_rdma.inval_stag"] = [fpdu["rsvd_ulp_8_39"]]
    elif fpdu["opcode"] < 8:  # of other opcodes it shows only the fields that all untagged segments have
        fields["iwarp_rdma.reserved"] = [f"{fpdu['rsvd_ulp_8_39']:08x}"]
    return fields


def terminate_fields(terminate):
    layer, etype = terminate["layer"], terminate["etype"]
    kind = {0: "_rdma", 1: "_ddp", 2: "_llp"}[layer]
    code = {(0, 0): "", (1, 0): "", (1, 1): "_ddp_tagged", (1, 2): "_ddp_untagged"}.get((layer, etype), kind)
    fields = {
        "iwarp_rdma.term_layer": [layer],
        f"iwarp_rdma.term_etype{kind}": [etype],
        f"iwarp_rdma.term_errcode{code}": [terminate["code"]],
        "iwarp_rdma.term_hdrct_m": [terminate["m"]],
        "iwarp_rdma.hdrct_d": [terminate["d"]],
        "iwarp_rdma.hdrct_r": [terminate["r"]],
        "iwarp_rdma.term_rsvd": [0],
    }
    if terminate["d"]:
        headers = terminate["ddp_header"] + terminate["rdma_header"]
        cut = 2 * (14 if etype == 1 else 18)
        fields["iwarp_rdma.term_ddp_seg_len"] = [terminate["segment_len"]]
        fields["iwarp_rdma.term_ddp_h"] = [headers[:cut]]
        if terminate["r"]:
            fields["iwarp_rdma.term_rdma_h"] = [headers[cut:cut + 2 * 28]]
    return fields


def payload_fields(fpdu, frame, message, last_frame):
    """message: the earlier part of this Send; last_frame: where it ends."""
    if fpdu["opcode"] in IMMEDIATES:
        return {}
    if fpdu["opcode"] not in SENDS:
        return {"data.data": [fpdu["payload"]]} if fpdu["payload"] else {}
    message.frames.append(frame)
    message.parts.append(fpdu["payload"])
    if not fpdu["l"]:
        return {"iwarp_rdma.send.reassembled_in": [last_frame]}
    whole = "".join(message.parts)
    fields = {"data.data": [whole]} if whole else {}
    if len(message.parts) > 1:
        fields["iwarp_rdma.send.fragment"] = message.parts
        fields["frames of the Send"] = message.frames
        fields["iwarp_rdma.send.fragment.count"] = [len(message.parts)]
        fields["iwarp_rdma.send.reassembled.length"] = [len(whole) // 2]
        fields["iwarp_rdma.send.reassembled.data"] = [whole]
    return fields


def read_request_fields(header):
    return {f"iwarp_rdma.{theirs}": [header[ours]]
            for ours, theirs in (("sink_stag", "sinkstag"), ("sink_to", "sinkto"), ("size", "rdmardsz"),
                                 ("src_stag", "srcstag"), ("src_to", "srcto"))}


def atomic_request_fields(header):
    verb = {0: "add", 2: "swap"}[header["operation"]]
    names = {"reserved": "reserved", "operation": "opcode", "request_id": "request_identifier", "stag": "remote_stag",
             "to": "remote_tagged_offset", "add_swap": f"{verb}_data", "add_swap_mask": f"{verb}_mask",
             "compare": "compare_data", "compare_mask": "compare_mask"}
    return {f"iwarp_rdma.atomic.{theirs}": [header[ours]] for ours, theirs in names.items()}


def atomic_response_fields(header):
    return {"iwarp_rdma.atomic.original_request_identifier": [header["request_id"]],
            "iwarp_rdma.atomic.original_remote_data_value": [header["original"]]}


def fpdu_fields(fpdu, frame, message, last_frame):
    fields = {**mpa_fields(fpdu), **ddp_fields(fpdu)}
    if "payload" in fpdu:
        fields.update(payload_fields(fpdu, frame, message, last_frame))
    if "read_request" in fpdu:
        fields.update(read_request_fields(fpdu["read_request"]))
    if "atomic_request" in fpdu:
        fields.update(atomic_request_fields(fpdu["atomic_request"]))
    if "atomic_response" in fpdu:
        fields.update(atomic_response_fields(fpdu["atomic_response"]))
    if "terminate" in fpdu:
        fields.update(terminate_fields(fpdu["terminate"]))
    return fields


def last_frames(lines):
    """The frame in which the message of each frame ends; the segments of a message follow one another."""
    result, open_frames = {}, {}
    for line in lines:
        if "fpdu" not in line:
            continue
        way = (line["conversation"], line["from"])
        open_frames.setdefault(way, []).append(line["frame"])
        if line["fpdu"]["l"]:
            for frame in open_frames.pop(way):
                result[frame] = line["frame"]
    return result


def shown(packet):
    """All that tshark shows of iWARP in a packet, and its remarks."""
    fields, remarks = {}, set()
    for part in packet.findall("proto"):
        if part.get("name") not in PARTS:
            remarks.add(part.get("name"))
    for field in packet.iter("field"):
        name = field.get("name")
        if name == "_ws.expert":
            remarks.update(sub.get("name") for sub in field if not sub.get("name").startswith("_ws.expert"))
        if not name.startswith("iwarp_") and name != "data.data":
            continue
        if len(field) > 0 or name == "iwarp_rdma.terminate":  # has parts that are looked at themselves
            continue
        if name == "iwarp_mpa.crc_check":
            verdict = "good" if "(Good CRC32)" in field.get("showname") else "bad"
            fields.setdefault("verdict on the CRC", []).append(verdict)
            continue
        if name == "iwarp_rdma.send.fragment":
            fields.setdefault("frames of the Send", []).append(field.get("show"))
        value = field.get("value")
        fields.setdefault(name, []).append(field.get("show") if value is None else "0x" + value)
    return fields, remarks - {name for name in remarks if name in fields}


def same(told, seen):
    if isinstance(told, str):
        return seen in (told, "0x" + told)
    return int(told) == int(seen, 0)


def compare(line, told, seen):
    """One text for each wrong field."""
    where = f"frame {line['frame']} ({line['conversation']}, {line['from']})"
    for name in sorted(told.keys() | seen.keys()):
        ours, theirs = told.get(name, []), seen.get(name, [])
        if len(ours) != len(theirs) or not all(same(a, b) for a, b in zip(ours, theirs)):
            yield f"{where}: {name}: the script says {show(ours)}, tshark {show(theirs)}"


def show(values):
    texts = [hex(value) if type(value) is int else str(value).lower() for value in values]
    return ", ".join(text if len(text) < 100 else text[:97] + "..." for text in texts) or "nothing"


def judge(lines, packets):
    """Yields the mismatches."""
    messages, ends = {}, last_frames(lines)
    frames = {line["frame"] for line in lines}
    for number, packet in packets.items():
        fields, remarks = shown(packet)
        if number not in frames and (fields or remarks - {"tcp.connection.syn", "tcp.connection.synack"}):
            yield f"frame {number} (TCP's handshake): tshark shows {fields} and remarks {remarks}"
    for line in lines:
        fields, remarks = shown(packets[line["frame"]])
        if "startup" in line:
            told = startup_fields(line["startup"])
        else:
            way = (line["conversation"], line["from"])
            message = messages.setdefault(way, Message())
            told = fpdu_fields(line["fpdu"], line["frame"], message, ends.get(line["frame"]))
            if line["fpdu"]["l"]:
                del messages[way]
        yield from compare(line, told, fields)
        if remarks:
            yield f"frame {line['frame']} ({line['conversation']}): tshark remarks {remarks}"


def missing_kinds(lines):
    """The kinds that a capture of every kind has to have and this one lacks."""
    fpdus = [line["fpdu"] for line in lines if "fpdu" in line]
    opcodes = {fpdu["opcode"] for fpdu in fpdus}
    yield from (name for opcode, name in enumerate(NAMES) if opcode not in opcodes)
    layers = {(fpdu["terminate"]["layer"], fpdu["terminate"]["r"]) for fpdu in fpdus if "terminate" in fpdu}
    yield from (f"Terminate of layer {layer}" for layer in range(3) if (layer, False) not in layers)
    if (0, True) not in layers:
        yield "Terminate with a Read Request header"
    if not any(fpdu.get("markers") for fpdu in fpdus):
        yield "FPDU with a Marker"
    yield from (f"CRC that is {crc}" for crc in ("good", "bad", "unused") if crc not in {fpdu["crc"] for fpdu in fpdus})


def main(program):
    if shutil.which("tshark") is None:
        return ["tshark is not installed (Debian package tshark)"]
    with tempfile.TemporaryDirectory() as folder:
        capture, expected = pathlib.Path(folder, "capture.pcap"), pathlib.Path(folder, "expected")
        if subprocess.run([program, capture, expected]).returncode != 0:
            return ["the conversations did not go as their script says"]
        lines = [json.loads(line) for line in expected.read_text().splitlines()]
        tshark = subprocess.run(TSHARK + ["-r", capture], capture_output=True)
    trouble = [line for line in tshark.stderr.decode().splitlines() if "WARNING" in line]
    if tshark.returncode != 0:
        return ["tshark: " + tshark.stderr.decode()]
    root = xml.etree.ElementTree.fromstring(tshark.stdout)
    packets = {number: packet for number, packet in enumerate(root.iter("packet"), 1)}
    mismatches = trouble + [f"not in the capture: {kind}" for kind in missing_kinds(lines)]
    mismatches += judge(lines, packets)
    if not mismatches:
        print(f"{len(lines)} startup frames and FPDUs: tshark agrees in every field")
    return mismatches


if __name__ == "__main__":
    problems = main(sys.argv[1])
    for problem in problems[:40]:
        print(problem, file=sys.stderr)
    if problems:
        sys.exit(f"FAILED: {len(problems)} mismatches")
