// The RPC ops against an NFSv3 server: NULL, and READ or WRITE through one of its files.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/address.h"
#include "apps/common/command.h"
#include "apps/nfs/session.h"
#include "apps/nfs/tree.h"
#include "apps/nfs/url.h"
#include "apps/perf/client.h"
#include "apps/perf/rpc_calls.h"
#include "nfsulb/nfs3.h"

namespace weft::apps::perf {
namespace {

using nfs3::ItemForm;

// The common end of both checks. A server may do less than was asked for (RFC 1813 section 3.3.6), but then it is not a
// Call to measure.
absl::Status check_count(nfs3::Nfsstat3 status, std::uint64_t count, std::uint64_t size, const std::string& proc) {
  if (auto refused = nfs::check(status, proc); !refused.ok() || count == size) return refused;
  return absl::DataLossError(proc + ": the server did " + std::to_string(count) + " of " + std::to_string(size) +
                             " bytes: the file became shorter, or --size is too large for it");
}

absl::Status no_answer(const std::string& proc) {
  return absl::DataLossError(proc + ": the server's answer is none of NFSv3's");
}

absl::Status check_read(const rpcrdma::Reply& reply, std::uint64_t size) {
  nfs3::ReadRes res;
  nfs3::XdrReader reader(reply.results);
  if (!parse(reader, res, ItemForm::kReduced)) return no_answer("READ");
  return check_count(res.status, std::min<std::uint64_t>(res.count, reply.item_len.value_or(0)), size, "READ");
}

absl::Status check_write(const rpcrdma::Reply& reply, std::uint64_t size) {
  nfs3::WriteRes res;
  nfs3::XdrReader reader(reply.results);
  if (!parse(reader, res)) return no_answer("WRITE");
  return check_count(res.status, res.count, size, "WRITE");
}

// file_calls goes through the file from its beginning, `size` octets a Call, over and over.
absl::StatusOr<RpcCalls> file_calls(const PerfOptions& options, nfs::Session& session) {
  const nfs::Url& url = session.url();
  auto file = nfs::resolve(session, url, nfs::FollowLast::kYes);
  if (!file.ok()) return file.status();
  auto info = session.fsinfo();
  if (!info.ok()) return info.status();

  RpcCalls calls;
  const bool reads = options.op == Op::kRpcRead;
  const std::uint32_t most = reads ? info->rtmax : info->wtmax;
  calls.size = options.size != 0 ? options.size : std::min<std::uint64_t>(effective_size(options), most);
  if (calls.size > most) {
    return absl::InvalidArgumentError("the server takes --size " + std::to_string(most) + " at most");
  }
  const std::uint64_t places = file->is_regular() ? file->attributes.size / calls.size : 0;
  if (places == 0) {
    return absl::InvalidArgumentError(url.str() + " must be a file of at least " + std::to_string(calls.size) +
                                      " bytes; name another file or a smaller --size");
  }
  calls.binding = &nfsulb::nfs3_binding();
  calls.item = reads ? RpcCalls::Item::kResult : RpcCalls::Item::kArgument;
  calls.check = reads ? check_read : check_write;
  calls.procedure = static_cast<std::uint32_t>(reads ? nfs3::Proc::kRead : nfs3::Proc::kWrite);
  calls.emit_args = [fh = file->fh, places, reads, size = std::uint32_t(calls.size)](std::uint64_t number,
                                                                                     std::vector<std::uint8_t>& args) {
    nfs3::XdrWriter writer(args);
    const std::uint64_t offset = number % places * size;
    if (reads) {
      emit(writer, nfs3::ReadArgs{fh, offset, size});
    } else {
      emit(writer, nfs3::WriteArgs{fh, offset, size, nfs3::StableHow::kUnstable, {size, {}}}, ItemForm::kReduced);
    }
  };
  return calls;
}

}  // namespace

absl::StatusOr<Measured> run_nfs(const GlobalOptions& global, const PerfOptions& options, verbs::Device& device,
                                 Progress& progress, const StopSignals& stop) {
  auto url = nfs::parse_url(options.target);
  if (!url.ok()) return url.status();
  nfs::Endurance endurance;
  endurance.timeout = options.timeout;
  endurance.tell_after = global.tell_after;
  endurance.tell = [](const std::string& line) { warn(line); };
  auto session = nfs::Session::open(*url, global, device, stop, std::move(endurance));
  if (!session.ok()) return session.status();
  RpcCalls calls;
  calls.binding = &nfsulb::nfs3_binding();
  if (options.op != Op::kRpcNull) {
    auto of_file = file_calls(options, **session);
    if (!of_file.ok()) return of_file.status();
    calls = std::move(*of_file);
  }
  calls.cred = &(*session)->cred();
  // The session itself sleeps before and after the run.
  if (auto addr = resolve({url->host, url->port}); addr.ok()) progress.expect(place_of(*addr));
  progress.drive(device);
  auto measured = run_calls(global, options, progress, (*session)->client(), calls, "server " + url->host);
  device.set_busy_polling(false);
  if (measured.ok()) {
    measured->congestion_control = rdma_congestion_control(global);
    measured->peer_congestion_control = "unknown";
    // If we wish for no CRC, the server decides, and does not say.
    if (global.is_soft() && global.crc) measured->crc = true;
  }
  return measured;
}

}  // namespace weft::apps::perf
