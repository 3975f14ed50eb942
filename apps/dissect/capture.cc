#include "apps/dissect/capture.h"

#include <pcap/pcap.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace weft::apps::dissect {

struct Capture::Handle {
  pcap_t* pcap = nullptr;
  explicit Handle(pcap_t* open) : pcap(open) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { pcap_close(pcap); }
};

Capture::Capture(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
Capture::Capture(Capture&&) noexcept = default;
Capture& Capture::operator=(Capture&&) noexcept = default;
Capture::~Capture() = default;

Result<Capture, std::string> Capture::open(const std::string& path) {
  constexpr std::size_t kBuffer = 1 << 18;  // octets that one system call reads
  const bool is_stdin = path == "-";
  std::FILE* file = is_stdin ? stdin : std::fopen(path.c_str(), "rb");
  if (file == nullptr) return path + ": " + std::strerror(errno);
  (void)std::setvbuf(file, nullptr, _IOFBF, kBuffer);
  std::array<char, PCAP_ERRBUF_SIZE> why{};
  pcap_t* pcap = pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, why.data());
  if (pcap == nullptr) {
    if (!is_stdin) (void)std::fclose(file);
    return std::string(why.data());
  }
  return Capture(std::make_unique<Handle>(pcap));
}

int Capture::link_type() const {
  return pcap_datalink(handle_->pcap);
}

Capture::Next Capture::next(Packet& packet) {
  pcap_pkthdr* header = nullptr;
  const u_char* octets = nullptr;
  const int got = pcap_next_ex(handle_->pcap, &header, &octets);
  if (got == PCAP_ERROR_BREAK) return Next::kEnd;
  if (got != 1) {
    error_ = pcap_geterr(handle_->pcap);
    return Next::kError;
  }
  packet.number = ++num_packets_;
  // With nanosecond precision tv_usec holds nanoseconds.
  packet.time = std::chrono::seconds(header->ts.tv_sec) + std::chrono::nanoseconds(header->ts.tv_usec);
  packet.octets = {octets, header->caplen};
  packet.wire_len = header->len;
  return Next::kPacket;
}

}  // namespace weft::apps::dissect
