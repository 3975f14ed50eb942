#include "apps/serve/export/index_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <boost/crc.hpp>
#include <cstring>

#include "fmt/format.h"
#include "mpa/wire/cursor.h"
#include "spdlog/spdlog.h"

namespace weft::serve {
namespace {

constexpr char kMagic[8] = {'W', 'f', 't', 'I', 'd', 'x', '1', '\n'};
constexpr std::size_t kHeaderLen = 8;  // length of the body, CRC of the body
constexpr std::size_t kBodyMin = 1 + 24 + 24;
constexpr std::size_t kBodyMax = kBodyMin + 255;
constexpr std::uint64_t kMaxFile = std::uint64_t{4} << 30;  // a bigger file is not ours

bool write_all(int fd, ConstBytes octets) {
  while (!octets.empty()) {
    ssize_t n = ::write(fd, octets.data(), octets.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    octets = octets.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

std::uint32_t crc_of(ConstBytes octets) {
  boost::crc_32_type crc;
  crc.process_bytes(octets.data(), octets.size());
  return crc.checksum();
}

bool put_key(Writer& writer, const FileKey& key) {
  return writer.u64(key.dev) && writer.u64(key.ino) && writer.u64(static_cast<std::uint64_t>(key.btime_ns));
}

bool take_key(Reader& reader, FileKey& key) {
  std::uint64_t btime = 0;
  if (!reader.u64(key.dev) || !reader.u64(key.ino) || !reader.u64(btime)) return false;
  key.btime_ns = static_cast<std::int64_t>(btime);
  return true;
}

void emit_record(std::vector<std::uint8_t>& out, const IndexRecord& record) {
  std::array<std::uint8_t, kBodyMax> body;
  Writer writer{MutBytes(body)};
  bool fits = writer.u8(static_cast<std::uint8_t>(record.op)) && put_key(writer, record.file) &&
              put_key(writer, record.parent) &&
              writer.bytes(ConstBytes(reinterpret_cast<const std::uint8_t*>(record.name.data()), record.name.size()));
  if (!fits) return;  // names are at most NAME_MAX octets
  ConstBytes octets = ConstBytes(body).first(writer.len());
  std::array<std::uint8_t, kHeaderLen> header;
  Writer head{MutBytes(header)};
  if (!head.u32(static_cast<std::uint32_t>(octets.size())) || !head.u32(crc_of(octets))) return;
  out.insert(out.end(), header.begin(), header.end());
  out.insert(out.end(), octets.begin(), octets.end());
}

bool parse_record(Reader& reader, IndexRecord& record) {
  std::uint32_t len = 0, crc = 0;
  ConstBytes body;
  if (!reader.u32(len) || !reader.u32(crc) || len < kBodyMin || len > kBodyMax || !reader.bytes(len, body))
    return false;
  if (crc_of(body) != crc) return false;
  Reader fields(body);
  std::uint8_t op = 0;
  if (!fields.u8(op) || op < 1 || op > 3 || !take_key(fields, record.file) || !take_key(fields, record.parent))
    return false;
  record.op = static_cast<IndexRecord::Op>(op);
  record.name.assign(fields.rest().begin(), fields.rest().end());
  return true;
}

// Buffered reading: the file may be large, a record is small.
class RecordFile {
 public:
  explicit RecordFile(int fd) : fd_(fd) {}

  bool next(IndexRecord& record) {
    for (;;) {
      Reader reader(ConstBytes(buffer_).subspan(at_));
      std::size_t before = reader.rest().size();
      if (parse_record(reader, record)) {
        std::size_t used = before - reader.rest().size();
        at_ += used;
        good_ += used;
        return true;
      }
      if (before >= kHeaderLen + kBodyMax || !fill()) return false;
    }
  }
  bool skip_magic() {
    if (!fill() || buffer_.size() < sizeof kMagic || std::memcmp(buffer_.data(), kMagic, sizeof kMagic) != 0)
      return false;
    at_ = good_ = sizeof kMagic;
    return true;
  }
  // Octets up to the end of the last whole record.
  std::uint64_t good() const { return good_; }

 private:
  bool fill() {
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(at_));
    at_ = 0;
    std::size_t old = buffer_.size();
    buffer_.resize(old + (std::size_t{64} << 10));
    ssize_t n = ::read(fd_, buffer_.data() + old, buffer_.size() - old);
    buffer_.resize(old + (n > 0 ? static_cast<std::size_t>(n) : 0));
    return n > 0;
  }

  int fd_;
  std::vector<std::uint8_t> buffer_;
  std::size_t at_ = 0;
  std::uint64_t good_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<IndexLog>> IndexLog::open(int state_dir_fd, const std::string& file_name,
                                                         const std::string& shown_name) {
  // The lock has a file of its own: rewriting gives the index a new inode.
  Fd lock(::openat(state_dir_fd, (file_name + ".lock").c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock)
    return absl::PermissionDeniedError(fmt::format("cannot write in {}: {}", shown_name, std::strerror(errno)));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return absl::AlreadyExistsError(
        fmt::format("another weft serve has this directory with the same state directory ({}): "
                    "stop it, or give this one a --state-dir of its own",
                    shown_name));
  return std::unique_ptr<IndexLog>(new IndexLog(state_dir_fd, std::move(lock), file_name));
}

void IndexLog::replay(const std::function<void(IndexRecord)>& each) {
  ::unlinkat(dir_.get(), temporary_name().c_str(), 0);  // a rewrite that a crash ended
  file_ = Fd(::openat(dir_.get(), file_name_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600));
  struct stat st {};
  if (!file_ || ::fstat(file_.get(), &st) != 0) return fail("open");
  RecordFile reader(file_.get());
  if (st.st_size == 0 || static_cast<std::uint64_t>(st.st_size) > kMaxFile || !reader.skip_magic()) {
    if (st.st_size != 0) spdlog::warn("serve: the path index {} is not readable and starts anew", file_name_);
    if (::ftruncate(file_.get(), 0) != 0 ||
        !write_all(file_.get(), ConstBytes(reinterpret_cast<const std::uint8_t*>(kMagic), sizeof kMagic)))
      fail("start");
    return;
  }
  IndexRecord record;
  while (reader.next(record)) {
    ++num_records_;
    each(std::move(record));
    record = IndexRecord{};
  }
  if (reader.good() != static_cast<std::uint64_t>(st.st_size)) {
    spdlog::warn("serve: the path index {} was cut at byte {} of {}", file_name_, reader.good(), st.st_size);
    if (::ftruncate(file_.get(), static_cast<off_t>(reader.good())) != 0) fail("cut");
  }
}

void IndexLog::append(const IndexRecord& record) {
  std::vector<std::uint8_t> octets;
  octets.reserve(kHeaderLen + kBodyMax);
  emit_record(octets, record);
  ++num_records_;
  if (rewrite_) {
    ++rewrite_->num_records;
    rewrite_->has_failed = rewrite_->has_failed || !write_all(rewrite_->file.get(), octets);
  }
  if (!has_failed_ && file_ && !write_all(file_.get(), octets)) fail("append to");
}

bool IndexLog::begin_rewrite() {
  const std::string temporary = temporary_name();
  ::unlinkat(dir_.get(), temporary.c_str(), 0);
  Fd file(::openat(dir_.get(), temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600));
  const ConstBytes magic(reinterpret_cast<const std::uint8_t*>(kMagic), sizeof kMagic);
  const bool has_begun = file && write_all(file.get(), magic);
  rewrite_.emplace(Rewrite{.file = std::move(file)});
  return has_begun || give_up_rewrite();
}

bool IndexLog::copy(const std::vector<IndexRecord>& records) {
  constexpr std::size_t kFlush = std::size_t{1} << 20;
  std::vector<std::uint8_t> octets;
  bool is_written = !rewrite_->has_failed;
  for (const IndexRecord& record : records) {
    emit_record(octets, record);
    if (octets.size() < kFlush) continue;
    is_written = is_written && write_all(rewrite_->file.get(), octets);
    octets.clear();
  }
  rewrite_->num_records += records.size();
  return (is_written && write_all(rewrite_->file.get(), octets)) || give_up_rewrite();
}

bool IndexLog::end_rewrite() {
  if (::renameat(dir_.get(), temporary_name().c_str(), dir_.get(), file_name_.c_str()) != 0) return give_up_rewrite();
  file_ = std::move(rewrite_->file);
  num_records_ = rewrite_->num_records;
  rewrite_.reset();
  has_failed_ = has_warned_ = false;
  return true;
}

bool IndexLog::give_up_rewrite() {
  warn("rewrite");
  ::unlinkat(dir_.get(), temporary_name().c_str(), 0);
  rewrite_.reset();
  return false;
}

void IndexLog::fail(const char* what) {
  has_failed_ = true;
  warn(what);
}

void IndexLog::warn(const char* what) {
  if (std::exchange(has_warned_, true)) return;
  spdlog::warn(
      "serve: cannot {} the path index {}: {}; handles still work, but files that are renamed behind the "
      "server's back may be slow to find after a restart",
      what, file_name_, std::strerror(errno));
}

}  // namespace weft::serve
