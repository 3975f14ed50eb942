#include "apps/serve/mount/mount_service.h"

#include "rpcrdma/rpc_message.h"

namespace weft::serve {
namespace {

using nfs3::MountProc;
using nfs3::Mountstat3;
using rpcrdma::AcceptStat;
using rpcrdma::CallParse;

Mountstat3 to_mountstat3(Errno error) {
  switch (error.value) {
    case EPERM: return Mountstat3::kPerm;
    case ENOENT:
    case ESTALE: return Mountstat3::kNoent;
    case EIO: return Mountstat3::kIo;
    case EACCES:
    case ELOOP: return Mountstat3::kAcces;
    case ENOTDIR: return Mountstat3::kNotdir;
    case EINVAL: return Mountstat3::kInval;
    case ENAMETOOLONG: return Mountstat3::kNametoolong;
    default: return Mountstat3::kServerfault;
  }
}

// The path within the export that a client's path names.
std::string_view within_export(std::string_view path, std::string_view real_path) {
  if (real_path != "/" && path.starts_with(real_path)) {
    std::string_view rest = path.substr(real_path.size());
    if (rest.empty() || rest.front() == '/') return rest;
  }
  return path;
}

bool is_flavor_served(std::uint32_t flavor) {
  return flavor == static_cast<std::uint32_t>(rpcrdma::AuthFlavor::kNone) ||
         flavor == static_cast<std::uint32_t>(rpcrdma::AuthFlavor::kSys);
}

}  // namespace

nfs3::MntRes MountService::mnt(const nfs3::DirpathArgs& args, const MountClient& client) {
  nfs3::MntRes res;
  auto fail = [&](Mountstat3 status) {
    res.fhs_status = status;
    return res;
  };
  if (!args.dirpath.starts_with('/')) return fail(Mountstat3::kNoent);
  Outcome<Node> node = tree_.open_path(within_export(args.dirpath, tree_.real_path()));
  if (!node) return fail(to_mountstat3(node.error()));
  if (!node->stat.is_dir()) return fail(Mountstat3::kNotdir);
  res.fhandle = tree_.handle_of(node->key);
  res.auth_flavors = {static_cast<std::uint32_t>(rpcrdma::AuthFlavor::kSys),
                      static_cast<std::uint32_t>(rpcrdma::AuthFlavor::kNone)};
  std::lock_guard lock(mutex_);
  mounts_.add(client, args.dirpath);
  return res;
}

nfs3::DumpRes MountService::dump() const {
  std::lock_guard lock(mutex_);
  return {.mounts = mounts_.all()};
}

void MountService::umnt(const nfs3::DirpathArgs& args, const MountClient& client) {
  std::lock_guard lock(mutex_);
  mounts_.remove(client, args.dirpath);
}

void MountService::umntall(const MountClient& client) {
  std::lock_guard lock(mutex_);
  mounts_.remove_all(client);
}

nfs3::ExportRes MountService::exports() const {
  return {.exports = {{.ex_dir = "/", .ex_groups = {}}}};
}

// False if the arguments are garbage.
bool MountService::call(std::uint32_t procedure, rpcrdma::xdr::XdrReader& args, const MountClient& client,
                        rpcrdma::xdr::XdrWriter& results) {
  nfs3::DirpathArgs path;
  switch (static_cast<MountProc>(procedure)) {
    case MountProc::kNull: return args.at_end();
    case MountProc::kMnt:
      if (!nfs3::parse(args, path) || !args.at_end()) return false;
      nfs3::emit(results, mnt(path, client));
      return true;
    case MountProc::kDump: nfs3::emit(results, dump()); return args.at_end();
    case MountProc::kUmnt:
      if (!nfs3::parse(args, path) || !args.at_end()) return false;
      umnt(path, client);
      return true;
    case MountProc::kUmntall: umntall(client); return args.at_end();
    case MountProc::kExport: nfs3::emit(results, exports()); return args.at_end();
  }
  return false;
}

std::optional<std::vector<std::uint8_t>> MountService::answer(ConstBytes message, const MountClient& client) {
  rpcrdma::xdr::XdrReader reader(message);
  rpcrdma::CallHeader header;
  rpcrdma::ReplyHeader reply;
  std::vector<std::uint8_t> results;
  const CallParse parsed = rpcrdma::parse_call(reader, header);
  reply.xid = header.xid;
  switch (parsed) {
    case CallParse::kNotACall: return std::nullopt;
    case CallParse::kRpcMismatch:
      reply.denied = true;
      reply.reject = rpcrdma::RejectStat::kRpcMismatch;
      reply.low = reply.high = rpcrdma::kRpcVersion;
      break;
    case CallParse::kGarbage: reply.accept = AcceptStat::kGarbageArgs; break;
    case CallParse::kOk:
      if (header.program != nfs3::kMountProgram) {
        reply.accept = AcceptStat::kProgUnavail;
      } else if (header.version != nfs3::kMountVersion) {
        reply.accept = AcceptStat::kProgMismatch;
        reply.low = reply.high = nfs3::kMountVersion;
      } else if (header.procedure >= nfs3::kNumMountProcs) {
        reply.accept = AcceptStat::kProcUnavail;
      } else if (!is_flavor_served(header.cred.flavor)) {
        reply.denied = true;
        reply.reject = rpcrdma::RejectStat::kAuthError;
        reply.auth = rpcrdma::AuthStat::kTooWeak;
      } else {
        rpcrdma::xdr::XdrWriter writer(results);
        if (!call(header.procedure, reader, client, writer)) {
          reply.accept = AcceptStat::kGarbageArgs;
          results.clear();
        }
      }
      break;
  }
  std::vector<std::uint8_t> out;
  rpcrdma::xdr::XdrWriter writer(out);
  rpcrdma::emit_reply(writer, reply);
  writer.raw(results);
  return out;
}

}  // namespace weft::serve
