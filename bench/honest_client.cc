#include "bench/honest_client.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "apps/nfs3/mount.h"
#include "apps/onc_tcp/client.h"

namespace weft::bench {
namespace {

using Clock = std::chrono::steady_clock;
using nfs3::Proc;

constexpr std::uint32_t kReadLen = 1 << 20;

double since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// One line for each request that was not served; says why.
HonestClient::Millis not_served(const char* what, Clock::time_point start, std::string_view why) {
  std::fprintf(stderr, "exhaust: %s not served after %.0f ms: %.*s\n", what, since(start), int(why.size()), why.data());
  return {};
}

[[noreturn]] void no_server(const char* what) {
  std::fprintf(stderr, "exhaust: %s was not answered before the attack\n", what);
  std::exit(1);
}

}  // namespace

HonestClient::HonestClient(Dial dial, const sockaddr_in& mount)
    : dial_(std::move(dial)), mount_(storage_of(mount)), line_(dial_()), room_(kReadLen) {
  if (!mnt()) no_server("MNT");
  const auto data = lookup(root_, "data");
  if (!data) no_server("LOOKUP");
  data_ = *data;
}

template <typename Args>
HonestClient::Millis HonestClient::call(HonestLine& line, Proc proc, const Args& args, MutBytes room) {
  const auto start = Clock::now();
  const char* const name = nfs3::proc_info(static_cast<std::uint32_t>(proc))->name;
  std::vector<std::uint8_t> octets;
  nfs3::XdrWriter out(octets);
  emit(out, args);
  HonestLine::Answer answer = line.call(proc, octets, room);
  if (!answer.results) return not_served(name, start, answer.why);
  results_ = std::move(*answer.results);
  // A server that has no room says so, and the client asks again: it was not served.
  std::uint32_t status = 0;
  nfs3::XdrReader in(results_);
  if (proc != Proc::kNull && (!in.u32(status) || status != 0)) return not_served(name, start, "its status");
  return since(start);
}

HonestClient::Millis HonestClient::null() {
  return call(*line_, Proc::kNull, nfs3::VoidArgs{});
}
HonestClient::Millis HonestClient::getattr() {
  return call(*line_, Proc::kGetattr, nfs3::FhArgs{data_});
}
HonestClient::Millis HonestClient::read() {
  return call(*line_, Proc::kRead, nfs3::ReadArgs{data_, 0, kReadLen}, room_);
}
HonestClient::Millis HonestClient::create() {
  nfs3::CreateArgs args;
  args.where = {root_, "honest-" + std::to_string(num_created_++ % 16)};
  return call(*line_, Proc::kCreate, args);
}

HonestClient::Millis HonestClient::mnt() {
  const auto start = Clock::now();
  auto client = onc_tcp::Client::connect(mount_, sizeof(sockaddr_in), HonestLine::kPatience);
  if (!client.ok()) return not_served("MNT", start, std::string(client.status().message()));
  rpcrdma::CallHeader header;
  header.program = nfs3::kMountProgram;
  header.version = nfs3::kMountVersion;
  header.procedure = static_cast<std::uint32_t>(nfs3::MountProc::kMnt);
  std::vector<std::uint8_t> args;
  nfs3::XdrWriter out(args);
  emit(out, nfs3::DirpathArgs{"/"});
  const auto results = (*client)->call(header, args, HonestLine::kPatience);
  if (!results.ok()) return not_served("MNT", start, std::string(results.status().message()));
  nfs3::MntRes res;
  nfs3::XdrReader in(*results);
  if (!parse(in, res) || res.fhs_status != nfs3::Mountstat3::kOk) return {};
  root_ = res.fhandle;
  return since(start);
}

HonestClient::Millis HonestClient::newcomers_getattr() {
  return call(*dial_(), Proc::kGetattr, nfs3::FhArgs{data_});
}
HonestClient::Millis HonestClient::newcomers_read() {
  return call(*dial_(), Proc::kRead, nfs3::ReadArgs{data_, 0, kReadLen}, room_);
}

std::optional<nfs3::NfsFh3> HonestClient::lookup(const nfs3::NfsFh3& dir, const std::string& name) {
  if (!call(*line_, Proc::kLookup, nfs3::DiropArgs{{dir, name}})) return {};
  nfs3::LookupRes res;
  nfs3::XdrReader in(results_);
  if (!parse(in, res)) return {};
  return res.object;
}

std::vector<nfs3::NfsFh3> HonestClient::files_of(const nfs3::NfsFh3& dir, std::size_t most) {
  std::vector<nfs3::NfsFh3> files;
  nfs3::ReaddirplusArgs args{.dir = dir, .dircount = 65536, .maxcount = 65536};
  for (nfs3::ReaddirplusRes res; files.size() < most && !res.eof;) {
    if (!call(*line_, Proc::kReaddirplus, args)) no_server("READDIRPLUS");
    nfs3::XdrReader in(results_);
    if (!parse(in, res)) no_server("READDIRPLUS");
    for (const nfs3::Entryplus3& entry : res.entries) {
      args.cookie = entry.cookie;
      if (entry.name[0] != '.' && entry.name_handle && files.size() < most) files.push_back(*entry.name_handle);
    }
    args.cookieverf = res.cookieverf;
  }
  return files;
}

}  // namespace weft::bench
