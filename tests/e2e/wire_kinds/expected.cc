#include "expected.h"

#include <utility>

namespace weft::e2e {

namespace {

void put(Octets& out, std::uint64_t value, int len) {
  for (int i = len - 1; i >= 0; --i) out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

void put(Octets& out, const Octets& octets) {
  out.insert(out.end(), octets.begin(), octets.end());
}

Ulpdu make_terminate(Triple what, const Octets& segment_len, const Octets& ddp_header, const Octets& rdma_header) {
  Ulpdu u;
  u.opcode = kTerminate;
  u.qn = 2;
  const bool d = !ddp_header.empty();
  const bool r = !rdma_header.empty();
  put(u.body, std::uint64_t{what.layer} << 4 | what.etype, 1);
  put(u.body, what.code, 1);
  put(u.body, (d ? 0xc0 : 0) | (r ? 0x20 : 0), 1);
  put(u.body, 0, 1);
  put(u.body, segment_len);
  put(u.body, ddp_header);
  put(u.body, rdma_header);
  u.rdmap_kind = "terminate";
  u.rdmap = Json{{"layer", what.layer},
                 {"etype", what.etype},
                 {"code", what.code},
                 {"m", d},
                 {"d", d},
                 {"r", r},
                 {"segment_len", hex(segment_len)},
                 {"ddp_header", hex(ddp_header)},
                 {"rdma_header", hex(rdma_header)}};
  return u;
}

Octets segment_len(const Ulpdu& blamed) {
  Octets out;
  put(out, blamed.octets().size(), 2);
  return out;
}

}  // namespace

Octets pattern(std::uint8_t seed, std::size_t len) {
  Octets out(len);
  for (std::size_t i = 0; i < len; ++i) out[i] = static_cast<std::uint8_t>(0x80 + seed * 29 + i * 7 + i / 256);
  return out;
}

std::string hex(const Octets& octets) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (std::uint8_t octet : octets) {
    out += kDigits[octet >> 4];
    out += kDigits[octet & 15];
  }
  return out;
}

Octets Startup::octets() const {
  const std::string_view key = reply ? "MPA ID Rep Frame" : "MPA ID Req Frame";
  Octets out(key.begin(), key.end());
  put(out, (m ? 0x80 : 0) | (c ? 0x40 : 0) | (r ? 0x20 : 0) | res, 1);
  put(out, rev, 1);
  put(out, private_data.size(), 2);
  put(out, private_data);
  return out;
}

Json Startup::json() const {
  return Json{
      {"reply", reply}, {"m", m}, {"c", c}, {"r", r}, {"res", res}, {"rev", rev}, {"private_data", hex(private_data)}};
}

Octets Ulpdu::ddp_header() const {
  Octets out;
  put(out, (t ? 0x80 : 0) | (l ? 0x40 : 0) | dv, 1);
  put(out, std::uint64_t{rv} << 6 | opcode, 1);
  if (t) {
    put(out, stag, 4);
    put(out, to, 8);
  } else {
    put(out, rsvd_ulp_8_39, 4);
    put(out, qn, 4);
    put(out, msn, 4);
    put(out, mo, 4);
  }
  return out;
}

Octets Ulpdu::octets() const {
  Octets out = ddp_header();
  put(out, body);
  return out;
}

Json Ulpdu::json() const {
  Json json{{"t", t}, {"l", l}, {"rsvd", 0}, {"dv", dv}, {"rv", rv}, {"rsv", 0}, {"opcode", opcode}};
  if (t) {
    json.update(Json{{"stag", stag}, {"to", to}});
  } else {
    json.update(Json{{"rsvd_ulp_8_39", rsvd_ulp_8_39}, {"qn", qn}, {"msn", msn}, {"mo", mo}});
  }
  json[rdmap_kind] = rdmap;
  return json;
}

Ulpdu tagged(std::uint8_t opcode, std::uint32_t stag, std::uint64_t to, Octets payload, bool last) {
  Ulpdu u;
  u.t = true;
  u.l = last;
  u.opcode = opcode;
  u.stag = stag;
  u.to = to;
  u.rdmap_kind = "payload";
  u.rdmap = hex(payload);
  u.body = std::move(payload);
  return u;
}

Ulpdu send(std::uint8_t opcode, std::uint32_t inval_stag, std::uint32_t msn, std::uint32_t mo, Octets payload,
           bool last) {
  Ulpdu u;
  u.l = last;
  u.opcode = opcode;
  u.rsvd_ulp_8_39 = inval_stag;
  u.msn = msn;
  u.mo = mo;
  u.rdmap_kind = "payload";
  u.rdmap = hex(payload);
  u.body = std::move(payload);
  return u;
}

Octets ReadRequest::octets() const {
  Octets out;
  put(out, sink_stag, 4);
  put(out, sink_to, 8);
  put(out, size, 4);
  put(out, src_stag, 4);
  put(out, src_to, 8);
  return out;
}

Ulpdu read_request(std::uint32_t msn, const ReadRequest& header) {
  Ulpdu u;
  u.opcode = kReadRequest;
  u.qn = 1;
  u.msn = msn;
  u.body = header.octets();
  u.rdmap_kind = "read_request";
  u.rdmap = Json{{"sink_stag", header.sink_stag},
                 {"sink_to", header.sink_to},
                 {"size", header.size},
                 {"src_stag", header.src_stag},
                 {"src_to", header.src_to}};
  return u;
}

Ulpdu atomic_request(std::uint32_t msn, const AtomicRequest& header) {
  Ulpdu u;
  u.opcode = kAtomicRequest;
  u.qn = 1;
  u.msn = msn;
  put(u.body, header.operation, 4);
  put(u.body, header.request_id, 4);
  put(u.body, header.stag, 4);
  for (std::uint64_t value : {header.to, header.add_swap, header.add_swap_mask, header.compare, header.compare_mask})
    put(u.body, value, 8);
  u.rdmap_kind = "atomic_request";
  u.rdmap = Json{{"reserved", 0},
                 {"operation", header.operation},
                 {"request_id", header.request_id},
                 {"stag", header.stag},
                 {"to", header.to},
                 {"add_swap", header.add_swap},
                 {"add_swap_mask", header.add_swap_mask},
                 {"compare", header.compare},
                 {"compare_mask", header.compare_mask}};
  return u;
}

Ulpdu atomic_response(std::uint32_t msn, std::uint32_t request_id, std::uint64_t original) {
  Ulpdu u;
  u.opcode = kAtomicResponse;
  u.qn = 3;
  u.msn = msn;
  put(u.body, request_id, 4);
  put(u.body, original, 8);
  u.rdmap_kind = "atomic_response";
  u.rdmap = Json{{"request_id", request_id}, {"original", original}};
  return u;
}

Ulpdu terminate(Triple what) {
  return make_terminate(what, {}, {}, {});
}

Ulpdu terminate(Triple what, const Ulpdu& blamed) {
  return make_terminate(what, segment_len(blamed), blamed.ddp_header(), {});
}

Ulpdu terminate_read(Triple what, const Ulpdu& blamed) {
  return make_terminate(what, segment_len(blamed), blamed.ddp_header(), blamed.body);
}

}  // namespace weft::e2e
