#include "apps/dissect/capture.h"

#include <fmt/format.h>
#include <pcap/pcap.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "apps/dissect/pcapng.h"

namespace weft::apps::dissect {

namespace {

// Closes the file, unless it is standard input.
struct Close {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};
using File = std::unique_ptr<std::FILE, Close>;

constexpr int kPcapngBegins = 0x0a;  // the type of a section header; no pcap file begins like this

struct Compression {
  int begins;
  std::string_view name, reads;
};
constexpr Compression kCompressions[] = {
    {0x1f, "gzip", "gunzip -c"}, {0x28, "zstd", "zstdcat"}, {0xfd, "xz", "xzcat"}, {0x42, "bzip2", "bzcat"}};

// advice: what to try where libpcap does not know the format of a file that begins with this octet.
std::string advice(int first, const std::string& path) {
  for (const Compression& one : kCompressions) {
    if (one.begins != first) continue;
    return fmt::format("; {} files begin like this. Try: {} {} | weft dissect -", one.name, one.reads,
                       path == "-" ? "FILE" : path);
  }
  return "; pcap and pcapng can be read";
}

// The seconds of a pcap file are 32 bits without a sign, which libpcap takes for a number with one. With nanosecond
// precision tv_usec holds nanoseconds, and a file may have more of them than a second has.
Timestamp time_of(const timeval& time) {
  constexpr std::int64_t kNano = 1000000000;
  return std::chrono::seconds(static_cast<std::uint32_t>(time.tv_sec)) +
         Timestamp(std::clamp<std::int64_t>(time.tv_usec, 0, kNano - 1));
}

}  // namespace

class Capture::Reader {
 public:
  virtual ~Reader() = default;
  virtual Next next(Packet& packet, std::string& error) = 0;
  virtual std::uint64_t num_dropped() const { return 0; }
};

class Capture::PcapReader final : public Reader {
 public:
  explicit PcapReader(pcap_t* pcap) : pcap_(pcap) {}
  ~PcapReader() override { pcap_close(pcap_); }
  PcapReader(const PcapReader&) = delete;
  PcapReader& operator=(const PcapReader&) = delete;

  Next next(Packet& packet, std::string& error) override {
    pcap_pkthdr* header = nullptr;
    const u_char* octets = nullptr;
    const int got = pcap_next_ex(pcap_, &header, &octets);
    if (got == PCAP_ERROR_BREAK) return Next::kEnd;
    if (got != 1) {
      error = pcap_geterr(pcap_);
      return Next::kError;
    }
    packet.time = time_of(header->ts);
    packet.octets = {octets, header->caplen};
    packet.wire_len = header->len;
    packet.link_type = pcap_datalink(pcap_);
    return Next::kPacket;
  }

 private:
  pcap_t* const pcap_;
};

class Capture::PcapngReader final : public Reader {
 public:
  explicit PcapngReader(File file) : file_(std::move(file)) {}

  Next next(Packet& packet, std::string& error) override {
    for (;;) {
      block_.resize(Pcapng::kMinBlock);
      const std::size_t got = std::fread(block_.data(), 1, block_.size(), file_.get());
      if (got == 0 && std::feof(file_.get()) != 0) return Next::kEnd;
      if (got != block_.size()) return ends_early(error);
      const auto len = blocks_.block_len(std::span(block_).first<Pcapng::kMinBlock>());
      if (!len.ok()) return fails(len.error(), error);
      block_.resize(*len);
      const std::size_t more = *len - Pcapng::kMinBlock;
      if (std::fread(block_.data() + Pcapng::kMinBlock, 1, more, file_.get()) != more) return ends_early(error);
      auto found = blocks_.on_block(block_);
      if (!found.ok()) return fails(found.error(), error);
      if (!*found) continue;
      packet = **found;
      return Next::kPacket;
    }
  }

  std::uint64_t num_dropped() const override { return blocks_.num_dropped(); }

 private:
  static Next fails(const std::string& why, std::string& error) {
    error = why;
    return Next::kError;
  }
  Next ends_early(std::string& error) {
    return fails(std::ferror(file_.get()) != 0 ? std::strerror(errno) : "truncated: it ends inside a pcapng block",
                 error);
  }

  File file_;
  Pcapng blocks_;
  std::vector<std::uint8_t> block_;
};

Capture::Capture(std::unique_ptr<Reader> reader) : reader_(std::move(reader)) {}
Capture::Capture(Capture&&) noexcept = default;
Capture& Capture::operator=(Capture&&) noexcept = default;
Capture::~Capture() = default;

Result<Capture, std::string> Capture::open(const std::string& path) {
  constexpr std::size_t kBuffer = 1 << 18;  // octets that one system call reads
  File file(path == "-" ? stdin : std::fopen(path.c_str(), "re"));
  if (file == nullptr) return fmt::format("{}: {}", path, std::strerror(errno));
  (void)std::setvbuf(file.get(), nullptr, _IOFBF, kBuffer);
  const int first = std::fgetc(file.get());
  if (first == EOF) {
    return fmt::format("{}: {}", path, std::ferror(file.get()) != 0 ? std::strerror(errno) : "the file is empty");
  }
  std::ungetc(first, file.get());
  if (first == kPcapngBegins) return Capture(std::make_unique<PcapngReader>(std::move(file)));
  std::array<char, PCAP_ERRBUF_SIZE> why{};
  pcap_t* pcap = pcap_fopen_offline_with_tstamp_precision(file.get(), PCAP_TSTAMP_PRECISION_NANO, why.data());
  if (pcap == nullptr) {
    const std::string error = why.data();
    return fmt::format("{}: {}{}", path, error, error == "unknown file format" ? advice(first, path) : "");
  }
  file.release();  // pcap_close closes it
  return Capture(std::make_unique<PcapReader>(pcap));
}

Capture::Next Capture::next(Packet& packet) {
  const Next next = reader_->next(packet, error_);
  if (next == Next::kPacket) packet.number = ++num_packets_;
  return next;
}

std::uint64_t Capture::num_dropped() const {
  return reader_->num_dropped();
}

}  // namespace weft::apps::dissect
