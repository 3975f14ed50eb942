#pragma once

// Helpers of this layer's tests: memory, receives, and two streams joined by a wire that a test moves octets over.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/time.h"
#include "ddp/range.h"
#include "mpa/staging.h"
#include "rdmap/stream.h"

namespace weft::rdmap::testing {

// A Send of the octets that sg_list gathers; an RDMA Write or Read between them and the peer's memory.
inline SendWr send_wr(std::uint64_t wr_id, SgeList sg_list) {
  SendWr wr;
  wr.wr_id = wr_id;
  wr.sg_list = std::move(sg_list);
  return wr;
}

inline SendWr rdma_wr(SendOp op, std::uint64_t wr_id, SgeList sg_list, std::uint32_t stag, std::uint64_t to) {
  SendWr wr = send_wr(wr_id, std::move(sg_list));
  wr.op = op;
  wr.remote_stag = ddp::Stag{stag};
  wr.remote_to = to;
  return wr;
}

// FakeMemory is a memory table over vectors; tagged offsets and local addresses are the same numbers.
class FakeMemory : public ddp::MemoryTable {
 public:
  struct Region {
    std::uint32_t pd = 0;
    std::vector<std::uint32_t> streams;  // empty: every stream of the PD
    std::uint64_t base = 0;
    bool remote_read = false;
    bool remote_write = false;
    bool valid = true;  // for remote use
    std::vector<std::uint8_t> octets;
  };

  Region& add(std::uint32_t stag, Region region) { return regions[stag] = std::move(region); }
  // Octets of stag, filled with 0xa5, everything allowed.
  Region& add_simple(std::uint32_t stag, std::uint32_t pd, std::uint64_t base, std::size_t len) {
    return add(stag, {pd, {}, base, true, true, true, std::vector<std::uint8_t>(len, 0xa5)});
  }

  std::variant<MutBytes, ddp::AccessError> resolve(ddp::StreamScope scope, ddp::Stag stag, std::uint64_t to,
                                                   std::size_t len, ddp::Right right) override {
    const auto it = regions.find(stag.value);
    const bool local = right == ddp::Right::kLocalRead || right == ddp::Right::kLocalWrite;
    if (it == regions.end() || (!local && !it->second.valid)) return ddp::AccessError::kInvalidStag;
    Region& r = it->second;
    if (r.pd != scope.pd) return ddp::AccessError::kNotAssociated;
    if (!r.streams.empty() && std::find(r.streams.begin(), r.streams.end(), scope.stream) == r.streams.end())
      return ddp::AccessError::kNotAssociated;
    const bool reads = right == ddp::Right::kRemoteRead || right == ddp::Right::kRemoteAtomic;
    const bool writes = right == ddp::Right::kRemoteWrite || right == ddp::Right::kRemoteAtomic;
    if ((reads && !r.remote_read) || (writes && !r.remote_write)) return ddp::AccessError::kAccessRights;
    if (const auto error = ddp::check_range(r.base, r.octets.size(), to, len)) return *error;
    return MutBytes(r.octets).subspan(static_cast<std::size_t>(to - r.base), len);
  }

  std::variant<std::monostate, ddp::AccessError> invalidate(ddp::StreamScope scope, ddp::Stag stag) override {
    const auto it = regions.find(stag.value);
    if (it == regions.end() || !it->second.valid) return ddp::AccessError::kInvalidStag;
    Region& r = it->second;
    if (r.pd != scope.pd) return ddp::AccessError::kNotAssociated;
    if (std::find(r.streams.begin(), r.streams.end(), scope.stream) == r.streams.end())
      return ddp::AccessError::kNotAssociated;
    if (r.streams.size() != 1) return ddp::AccessError::kAccessRights;  // shared: not the peer's to take
    r.valid = false;
    return std::monostate{};
  }

  // Windows are only written down.
  bool bind_window(ddp::StreamScope, const ddp::WindowBind& bind) override {
    if (refuse_windows) return false;
    windows.push_back(bind);
    return true;
  }
  bool invalidate_window(ddp::StreamScope, ddp::Stag stag) override {
    if (refuse_windows) return false;
    windows_invalidated.push_back(stag);
    return true;
  }

  std::map<std::uint32_t, Region> regions;
  std::vector<ddp::WindowBind> windows;
  std::vector<ddp::Stag> windows_invalidated;
  bool refuse_windows = false;
};

// FakeRecvs is a plain queue of receives.
class FakeRecvs : public RecvSource {
 public:
  std::optional<PostedRecv> take() override {
    if (posted.empty()) return std::nullopt;
    PostedRecv recv = std::move(posted.front());
    posted.pop_front();
    ++num_taken;
    return recv;
  }
  void post(std::uint64_t wr_id, SgeList sg_list = {}) { posted.push_back({wr_id, std::move(sg_list)}); }

  std::deque<PostedRecv> posted;
  std::size_t num_taken = 0;
};

// under_test lets one suite prove both placements: where the environment variable WEFT_PLACEMENT says direct, every
// FPDU that can goes straight into place, however little of it is missing.
inline StreamConfig under_test(StreamConfig config) {
  const char* const placement = std::getenv("WEFT_PLACEMENT");
  if (placement != nullptr && std::string_view(placement) == "direct") {
    config.placement = Placement::kDirect;
    config.direct_min_len = 0;
  }
  return config;
}

// fill puts octets, up to as many as fit, where a scatter list says; returns how many.
inline std::size_t fill(std::span<const MutBytes> views, ConstBytes octets) {
  std::size_t n = 0;
  for (MutBytes view : views) {
    const std::size_t len = std::min(view.size(), octets.size() - n);
    std::copy_n(octets.begin() + static_cast<std::ptrdiff_t>(n), len, view.begin());
    n += len;
  }
  return n;
}

// Side is one stream with its memory and queues, and the octets on their way to it.
struct Side {
  explicit Side(const StreamConfig& config) : stream(under_test(config), memory) {}

  // Takes all events out of the stream.
  void drain() {
    while (auto event = stream.poll_event()) {
      if (auto* c = std::get_if<Completion>(&*event)) {
        completions.push_back(*c);
      } else if (auto* r = std::get_if<ConnectionRequest>(&*event)) {
        request = *r;
      } else if (auto* e = std::get_if<Established>(&*event)) {
        established = *e;
      } else if (auto* j = std::get_if<Rejected>(&*event)) {
        rejected = *j;
      } else if (std::holds_alternative<Nudged>(*event)) {
        ++nudges;
      } else {
        closed.push_back(std::get<Closed>(*event));
      }
    }
  }

  // Gives the stream octets that arrived, at most `chunk` at a time.
  void receive(ConstBytes octets, TimePoint now, std::size_t chunk = SIZE_MAX) {
    while (!octets.empty()) {
      const auto views = stream.rx_buffers(staging);
      if (views.empty()) return;
      const std::size_t n = fill(views, octets.first(std::min(octets.size(), chunk)));
      stream.on_rx(staging, n, now);
      octets = octets.subspan(n);
    }
  }

  // Takes the octets that the stream wants to send, at most max_accept of each batch.
  std::vector<std::uint8_t> transmit(TimePoint now, std::size_t emss = 1460, std::size_t max_accept = SIZE_MAX,
                                     std::size_t max_octets = 1024 * 1024) {
    std::vector<std::uint8_t> out;
    while (true) {
      const auto views = stream.tx_buffers(emss, max_octets, now);
      if (views.empty()) return out;
      std::size_t n = 0;
      for (ConstBytes view : views) {
        const std::size_t piece = std::min(view.size(), max_accept - n);
        out.insert(out.end(), view.begin(), view.begin() + static_cast<std::ptrdiff_t>(piece));
        n += piece;
      }
      stream.on_tx(n, now);
    }
  }

  FakeMemory memory;
  FakeRecvs recvs;
  mpa::Staging staging{160 * 1024};
  Stream stream;
  std::vector<Completion> completions;
  std::size_t nudges = 0;
  std::optional<ConnectionRequest> request;
  std::optional<Established> established;
  std::optional<Rejected> rejected;
  std::vector<Closed> closed;
};

// Pair is an initiator and a responder on an ideal wire.
struct Pair {
  explicit Pair(const StreamConfig& initiator = {}, const StreamConfig& responder = {}) : a(initiator), b(responder) {}

  // Moves octets and FINs both ways until nothing moves any more.
  void run() {
    bool moved = true;
    while (moved) {
      moved = step(a, b, a_fin);
      moved = step(b, a, b_fin) || moved;
    }
  }

  // Brings both to Full Operation. b answers with its own limits.
  void connect(ConstBytes request_data = {}, ConstBytes reply_data = {}) {
    a.stream.start_initiator(request_data, a.recvs, now);
    b.stream.start_responder(now);
    run();
    b.stream.accept(reply_data, b.recvs, 16, 16, 0, now);
    run();
  }

  bool step(Side& from, Side& to, bool& fin) {
    bool moved = false;
    const auto octets = from.transmit(now, emss);
    if (!octets.empty() && !fin) {
      to.receive(octets, now);
      moved = true;
    }
    const LlpAction action = from.stream.llp_action();
    if (action != LlpAction::kNone) {
      from.stream.on_llp_action_done(action);
      moved = true;
      if (action == LlpAction::kReset) {
        to.stream.on_llp_error(104, now);
      } else if (!fin) {
        to.stream.on_rx_eof(now);
      }
      fin = true;
    }
    from.drain();
    to.drain();
    return moved;
  }

  std::size_t emss = 1460;
  TimePoint now{};
  Side a;
  Side b;
  bool a_fin = false;
  bool b_fin = false;
};

// The wr_id of each.
inline std::vector<std::uint64_t> ids(const std::vector<Completion>& completions) {
  std::vector<std::uint64_t> out;
  for (const Completion& c : completions) out.push_back(c.wr_id);
  return out;
}

}  // namespace weft::rdmap::testing
