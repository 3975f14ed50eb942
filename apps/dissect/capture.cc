#include "apps/dissect/capture.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pcap/pcap.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "apps/common/signals.h"
#include "apps/dissect/pcapng.h"
#include "apps/dissect/read_ahead.h"

namespace weft::apps::dissect {

namespace {

constexpr std::uint8_t kPcapngBegins = 0x0a;  // the type of a section header; no pcap file begins like this

struct Compression {
  std::uint8_t begins;
  std::string_view name, reads;
};
constexpr Compression kCompressions[] = {
    {0x1f, "gzip", "gunzip -c"}, {0x28, "zstd", "zstdcat"}, {0xfd, "xz", "xzcat"}, {0x42, "bzip2", "bzcat"}};

// advice: what to try where libpcap does not know the format of a file that begins with this octet.
std::string advice(std::uint8_t first, const std::string& path) {
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
  // memory: the buffer of the file that libpcap reads.
  PcapReader(pcap_t* pcap, PageMemory memory) : memory_(std::move(memory)), pcap_(pcap) {}
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
  const PageMemory memory_;
  pcap_t* const pcap_;
};

class Capture::PcapngReader final : public Reader {
 public:
  PcapngReader(Fd file, ConstBytes begin) : file_(std::move(file), begin) {}

  Next next(Packet& packet, std::string& error) override {
    for (;;) {
      const ConstBytes begin = file_.peek(Pcapng::kMinBlock);
      if (begin.empty() && file_.error() == 0) return Next::kEnd;
      if (begin.size() < Pcapng::kMinBlock) return ends_early(error);
      const auto len = blocks_.block_len(begin.first<Pcapng::kMinBlock>());
      if (!len.ok()) return fails(len.error(), error);
      const ConstBytes block = file_.peek(*len);
      if (block.size() < *len) return ends_early(error);
      file_.pass(*len);
      auto found = blocks_.on_block(block);
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
    return fails(file_.error() != 0 ? std::strerror(file_.error()) : "truncated: it ends inside a pcapng block", error);
  }

  ReadAhead file_;
  Pcapng blocks_;
};

Capture::Capture(std::unique_ptr<Reader> reader) : reader_(std::move(reader)) {}
Capture::Capture(Capture&&) noexcept = default;
Capture& Capture::operator=(Capture&&) noexcept = default;
Capture::~Capture() = default;

Result<Capture, std::string> Capture::open(const std::string& path) {
  Fd fd(path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fmt::format("{}: {}", path, std::strerror(errno));
  std::uint8_t first = 0;
  const ssize_t got = read_unless_stopped(fd.get(), &first, 1);
  if (got != 1) return fmt::format("{}: {}", path, got < 0 ? std::strerror(errno) : "the file is empty");
  if (first == kPcapngBegins) return Capture(std::make_unique<PcapngReader>(std::move(fd), std::span(&first, 1)));

  std::FILE* const file = ::fdopen(fd.get(), "r");
  if (file == nullptr) return fmt::format("{}: {}", path, std::strerror(errno));
  fd.release();  // pcap_close closes the file
  // Without memory of ours, the C library passes over the size, and reads 4 KiB at once.
  PageMemory memory(ReadAhead::kPiece);
  (void)std::setvbuf(file, reinterpret_cast<char*>(memory.data()), _IOFBF, memory.size());
  // A pipe cannot go back.
  if (::lseek(::fileno(file), -1, SEEK_CUR) < 0) std::ungetc(first, file);
  std::array<char, PCAP_ERRBUF_SIZE> why{};
  pcap_t* pcap = pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, why.data());
  if (pcap == nullptr) {
    std::fclose(file);
    const std::string error = why.data();
    return fmt::format("{}: {}{}", path, error, error == "unknown file format" ? advice(first, path) : "");
  }
  return Capture(std::make_unique<PcapReader>(pcap, std::move(memory)));
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
