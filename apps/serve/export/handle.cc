#include "apps/serve/export/handle.h"

#include <fcntl.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <cassert>
#include <cstring>
#include <optional>

#include "base/fd.h"
#include "fmt/format.h"
#include "mpa/wire/cursor.h"

namespace weft::serve {
namespace {

constexpr std::uint32_t kFormat = 0x57660001;
constexpr std::size_t kSignedLen = 36;
constexpr std::size_t kMacLen = 16;
static_assert(kSignedLen + kMacLen == HandleCodec::kHandleLen && HandleCodec::kHandleLen <= nfs3::kMaxFh);

constexpr char kKeyFile[] = "handle-key";

}  // namespace

absl::StatusOr<HandleKey> load_handle_key(int state_dir_fd, const std::string& shown_name) {
  HandleKey key{};
  Fd fd(::openat(state_dir_fd, kKeyFile, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (fd) {
    if (::read(fd.get(), key.data(), key.size()) == static_cast<ssize_t>(key.size())) return key;
    return absl::DataLossError(
        fmt::format("{}/{} is not a key: remove it (clients must mount again then)", shown_name, kKeyFile));
  }
  if (errno != ENOENT)
    return absl::PermissionDeniedError(
        fmt::format("cannot read {}/{}: {}", shown_name, kKeyFile, std::strerror(errno)));
  if (::getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size()))
    return absl::UnavailableError("the kernel gives no random bytes");
  // The key is written under another name first, so a key under its final name is whole. link, not rename: if two
  // servers start at once, both must end with the same key.
  std::string temporary = fmt::format("{}.{}", kKeyFile, ::getpid());
  ::unlinkat(state_dir_fd, temporary.c_str(), 0);
  Fd out(::openat(state_dir_fd, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  bool written =
      out && ::write(out.get(), key.data(), key.size()) == static_cast<ssize_t>(key.size()) && ::fsync(out.get()) == 0;
  bool linked = written && ::linkat(state_dir_fd, temporary.c_str(), state_dir_fd, kKeyFile, 0) == 0;
  int error = errno;
  ::unlinkat(state_dir_fd, temporary.c_str(), 0);
  if (linked) {
    ::fsync(state_dir_fd);
    return key;
  }
  if (written && error == EEXIST) return load_handle_key(state_dir_fd, shown_name);
  return absl::UnavailableError(fmt::format("cannot write {}/{}: {}", shown_name, kKeyFile, std::strerror(error)));
}

struct HandleCodec::Mac {
  explicit Mac(const HandleKey& key) {
    mac = EVP_MAC_fetch(nullptr, "SIPHASH", nullptr);
    keyed = EVP_MAC_CTX_new(mac);
    std::size_t size = kMacLen;
    OSSL_PARAM params[] = {OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size), OSSL_PARAM_construct_end()};
    usable = keyed != nullptr && EVP_MAC_init(keyed, key.data(), key.size(), params) == 1;
  }
  ~Mac() {
    EVP_MAC_CTX_free(keyed);
    EVP_MAC_free(mac);
  }
  Mac(const Mac&) = delete;
  Mac& operator=(const Mac&) = delete;

  // Nothing if the library fails, so that a failure never looks like a signature.
  std::optional<std::array<std::uint8_t, kMacLen>> of(ConstBytes octets) const {
    std::array<std::uint8_t, kMacLen> out{};
    std::size_t len = 0;
    EVP_MAC_CTX* ctx = EVP_MAC_CTX_dup(keyed);
    bool ok = ctx != nullptr && EVP_MAC_update(ctx, octets.data(), octets.size()) == 1 &&
              EVP_MAC_final(ctx, out.data(), &len, out.size()) == 1 && len == kMacLen;
    EVP_MAC_CTX_free(ctx);
    if (!ok) return std::nullopt;
    return out;
  }

  EVP_MAC* mac = nullptr;
  EVP_MAC_CTX* keyed = nullptr;
  bool usable = false;
};

HandleCodec::HandleCodec(std::unique_ptr<Mac> mac, std::uint64_t export_id)
    : mac_(std::move(mac)), export_id_(export_id) {}
HandleCodec::~HandleCodec() = default;

absl::StatusOr<std::unique_ptr<HandleCodec>> HandleCodec::create(const HandleKey& key, std::uint64_t export_id) {
  auto mac = std::make_unique<Mac>(key);
  if (!mac->usable) return absl::FailedPreconditionError("OpenSSL offers no SipHash: check its configuration");
  return std::unique_ptr<HandleCodec>(new HandleCodec(std::move(mac), export_id));
}

nfs3::NfsFh3 HandleCodec::make(const FileKey& file) const {
  nfs3::NfsFh3 handle;
  handle.len = kHandleLen;
  Writer writer(MutBytes(handle.data).first(kHandleLen));
  bool fits = writer.u32(kFormat) && writer.u64(export_id_) && writer.u64(file.dev) && writer.u64(file.ino) &&
              writer.u64(static_cast<std::uint64_t>(file.btime_ns));
  auto mac = mac_->of(ConstBytes(handle.data).first(kSignedLen));
  // Without a signature the handle goes out unsigned and will be refused when it comes back.
  fits = fits && (!mac || writer.bytes(*mac));
  assert(fits);
  static_cast<void>(fits);
  return handle;
}

Outcome<FileKey> HandleCodec::parse(const nfs3::NfsFh3& handle) const {
  if (handle.len != kHandleLen) return Errno{EBADMSG};
  auto mac = mac_->of(handle.octets().first(kSignedLen));
  if (!mac || CRYPTO_memcmp(mac->data(), handle.data.data() + kSignedLen, kMacLen) != 0) return Errno{EBADMSG};
  Reader reader(handle.octets());
  std::uint32_t format = 0;
  std::uint64_t export_id = 0, btime = 0;
  FileKey file;
  if (!reader.u32(format) || !reader.u64(export_id) || !reader.u64(file.dev) || !reader.u64(file.ino) ||
      !reader.u64(btime) || format != kFormat)
    return Errno{EBADMSG};
  // The handle is ours, but of another export (the directory was made anew, say): its files are gone.
  if (export_id != export_id_) return Errno{ESTALE};
  file.btime_ns = static_cast<std::int64_t>(btime);
  return file;
}

}  // namespace weft::serve
