#include "verbs-shim/soft/stream_trace.h"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "mpa/wire/cursor.h"

namespace weft::verbs::soft {

namespace {

constexpr std::uint8_t kFin = 0x01, kSyn = 0x02, kPush = 0x08, kAck = 0x10;  // RFC 9293 section 3.1
constexpr std::size_t kTcpLen = 20, kIpv4Len = 20, kIpv6Len = 40;
constexpr std::uint8_t kProtocolTcp = 6, kHops = 64;

// Head: an IP and a TCP header.
class Head {
 public:
  struct Tcp {
    std::uint32_t seq = 0, ack = 0;
    std::uint8_t flags = 0;
  };

  Head(const sockaddr_storage& src, const sockaddr_storage& dst, const Tcp& tcp, std::size_t payload_len)
      : out_(room_) {
    if (src.ss_family == AF_INET6) {
      put_ipv6(src, dst, payload_len);
    } else {
      put_ipv4(src, dst, payload_len);
    }
    put(port_of(src) && port_of(dst) && out_.u32(tcp.seq) && out_.u32(tcp.ack) && out_.u8(kTcpLen / 4 << 4) &&
        out_.u8(tcp.flags) && out_.u16(0xffff) && out_.u32(0));
  }

  ConstBytes octets() const { return ConstBytes(room_).first(out_.len()); }

 private:
  // There is room for everything.
  static void put([[maybe_unused]] bool fits) {}

  bool port_of(const sockaddr_storage& address) {
    // sin_port and sin6_port lie at the same place.
    return out_.u16(ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port));
  }

  void put_ipv4(const sockaddr_storage& src, const sockaddr_storage& dst, std::size_t payload_len) {
    const auto address = [](const sockaddr_storage& of) {
      return ntohl(reinterpret_cast<const sockaddr_in&>(of).sin_addr.s_addr);
    };
    const auto total = static_cast<std::uint16_t>(kIpv4Len + kTcpLen + payload_len);
    put(out_.u8(0x45) && out_.u8(0) && out_.u16(total) && out_.u32(0x4000) && out_.u8(kHops) && out_.u8(kProtocolTcp) &&
        out_.u16(0) && out_.u32(address(src)) && out_.u32(address(dst)));
    put_checksum();
  }

  // RFC 791 section 3.1. The one of TCP stays 0: sending hosts leave it to the network card, so readers expect that.
  void put_checksum() {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < kIpv4Len; i += 2) sum += static_cast<std::uint32_t>(room_[i] << 8 | room_[i + 1]);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~((sum & 0xffff) + (sum >> 16));
    room_[10] = static_cast<std::uint8_t>(sum >> 8);
    room_[11] = static_cast<std::uint8_t>(sum);
  }

  void put_ipv6(const sockaddr_storage& src, const sockaddr_storage& dst, std::size_t payload_len) {
    const auto address = [](const sockaddr_storage& of) {
      return ConstBytes(reinterpret_cast<const sockaddr_in6&>(of).sin6_addr.s6_addr);
    };
    put(out_.u32(0x60000000) && out_.u16(static_cast<std::uint16_t>(kTcpLen + payload_len)) && out_.u8(kProtocolTcp) &&
        out_.u8(kHops) && out_.bytes(address(src)) && out_.bytes(address(dst)));
  }

  std::array<std::uint8_t, kIpv6Len + kTcpLen> room_{};
  Writer out_;
};

std::string reason_of(const rdmap::Event& event) {
  if (const auto* closed = std::get_if<rdmap::Closed>(&event)) return closed->text;
  if (const auto* rejected = std::get_if<rdmap::Rejected>(&event)) return rejected->text;
  return "";
}

}  // namespace

StreamTrace::StreamTrace(std::shared_ptr<TraceFile> file, const sockaddr_storage& local, const sockaddr_storage& peer,
                         bool client, TimePoint now)
    : file_(std::move(file)),
      local_(local),
      peer_(peer),
      now_(now),
      out_({file_->config().tagged_len, file_->config().other_len},
           [this](ConstBytes kept, std::size_t len) { put(Way::kOut, kAck | kPush, kept, len); }),
      in_({file_->config().tagged_len, file_->config().other_len},
          [this](ConstBytes kept, std::size_t len) { put(Way::kIn, kAck | kPush, kept, len); }) {
  const Way first = client ? Way::kOut : Way::kIn;
  const Way second = client ? Way::kIn : Way::kOut;
  put(first, kSyn, {}, 0);
  put(second, kSyn | kAck, {}, 0);
  put(first, kAck, {}, 0);
}

StreamTrace::~StreamTrace() {
  put(Way::kOut, kFin | kAck, {}, 0, reason_);
}

template <typename Views>
void StreamTrace::take(Way way, const Views& buffers, std::size_t n, TimePoint now) {
  now_ = now;
  FrameCutter& cutter = way == Way::kOut ? out_ : in_;
  FrameCutter& other = way == Way::kOut ? in_ : out_;
  // The receiver of a direction chose its Markers by its startup frame.
  cutter.set_markers(other.wants_markers().value_or(false));
  for (const auto& buffer : buffers) {
    if (n == 0) break;
    const std::size_t len = std::min(n, buffer.size());
    cutter.add(buffer.first(len));
    n -= len;
  }
  cutter.end_turn();
}

void StreamTrace::on_rx(std::span<const MutBytes> buffers, std::size_t n, TimePoint now) {
  take(Way::kIn, buffers, n, now);
}

void StreamTrace::on_tx(std::span<const ConstBytes> buffers, std::size_t n, TimePoint now) {
  take(Way::kOut, buffers, n, now);
}

void StreamTrace::on_event(const rdmap::Event& event) {
  if (std::string reason = reason_of(event); !reason.empty()) reason_ = std::move(reason);
}

void StreamTrace::put(Way way, std::uint8_t flags, ConstBytes kept, std::size_t len, std::string_view comment) {
  const bool is_out = way == Way::kOut;
  std::uint32_t& seq = next_seq(way);
  const std::uint32_t ack = (flags & kAck) != 0 ? (is_out ? seq_in_ : seq_out_) : 0;
  const Head head(is_out ? local_ : peer_, is_out ? peer_ : local_, {.seq = seq, .ack = ack, .flags = flags}, len);
  file_->put(head.octets(), kept, head.octets().size() + len, now_, comment);
  // SYN and FIN count as one octet each.
  seq += static_cast<std::uint32_t>(len) + ((flags & (kSyn | kFin)) != 0 ? 1 : 0);
}

}  // namespace weft::verbs::soft
