#include <algorithm>

#include "apps/nfs3/codec.h"
#include "apps/serve/nfs_service.h"
#include "rpcrdma/xdr/xdr.h"

// From XDR arguments to XDR results, procedure by procedure.
namespace weft::serve {
namespace {

using nfs3::ItemForm;
using nfs3::Proc;
using rpcrdma::Buffer;
using rpcrdma::ServedCall;
using rpcrdma::ServedReply;
using rpcrdma::xdr::XdrReader;
using rpcrdma::xdr::XdrWriter;

ServedReply garbage() {
  ServedReply reply;
  reply.accept = ServedReply::Accept::kGarbageArgs;
  return reply;
}

template <typename Res>
ServedReply plain_reply(const Res& res) {
  ServedReply reply;
  XdrWriter writer(reply.results);
  nfs3::emit(writer, res);
  return reply;
}

template <typename Args>
bool parse_all(const ServedCall& call, Args& args) {
  XdrReader reader(call.args);
  return nfs3::parse(reader, args) && reader.at_end();
}

template <typename Args, typename Res>
ServedReply run(Backend& backend, const ServedCall& call, Res (Backend::*procedure)(const Args&)) {
  Args args;
  if (!parse_all(call, args)) return garbage();
  return plain_reply((backend.*procedure)(args));
}

// Parses arguments with an item, which came apart (by Read chunk) or stands among them. False: garbage.
template <typename Args>
bool parse_with_item(const ServedCall& call, Args& args, nfs3::Item Args::*item) {
  const bool is_reduced = !call.items.empty();
  XdrReader reader(call.args);
  if (!nfs3::parse(reader, args, is_reduced ? ItemForm::kReduced : ItemForm::kInline) || !reader.at_end()) return false;
  if (is_reduced) (args.*item).data = call.items.front().data.octets();
  return (args.*item).data.size() == (args.*item).len;
}

// Emits results with an item that stands in `buffer`; a failure has no item.
template <typename Res>
ServedReply item_reply(const Res& res, Buffer& buffer) {
  ServedReply reply;
  XdrWriter writer(reply.results);
  nfs3::emit(writer, res, ItemForm::kReduced);
  if (res.status != nfs3::Nfsstat3::kOk) return reply;
  reply.add_item(std::move(buffer), res.data.len);
  return reply;
}

ServedReply run_read(Backend& backend, const BulkArgs& args, Buffer& buffer) {
  const auto* read = std::get_if<nfs3::ReadArgs>(&args);
  return read == nullptr ? garbage() : item_reply(backend.read(*read, buffer.octets()), buffer);
}

ServedReply run_readlink(Backend& backend, const ServedCall& call, Buffer& buffer) {
  nfs3::FhArgs args;
  if (!parse_all(call, args)) return garbage();
  const nfs3::ReadlinkRes res = backend.readlink(args, buffer.octets());
  return item_reply(res, buffer);
}

ServedReply run_write(Backend& backend, const BulkArgs& args) {
  const auto* write = std::get_if<nfs3::WriteArgs>(&args);
  return write == nullptr ? garbage() : plain_reply(backend.write(*write, write->data.data));
}

ServedReply run_symlink(Backend& backend, const ServedCall& call) {
  nfs3::SymlinkArgs args;
  if (!parse_with_item(call, args, &nfs3::SymlinkArgs::symlink_data)) return garbage();
  return plain_reply(backend.symlink(args, args.symlink_data.data));
}

// For a larger READ a worker copies the octets while the loop sends the octets of the READ before; that is worth the
// way there and back. The loop also pulls a WRITE's octets, and writes them best while they are in the cache.
constexpr std::size_t kMaxReadNow = 256 << 10;

std::optional<ServedReply> run_read_now(Backend& backend, const nfs3::ReadArgs& args, Buffer& buffer) {
  if (buffer.octets().size() > kMaxReadNow) return std::nullopt;
  const std::optional<nfs3::ReadRes> res = backend.read_now(args, buffer.octets());
  if (!res) return std::nullopt;
  return item_reply(*res, buffer);
}

std::optional<ServedReply> run_write_now(Backend& backend, const nfs3::WriteArgs& args) {
  const std::optional<nfs3::WriteRes> res = backend.write_now(args, args.data.data);
  if (!res) return std::nullopt;
  return plain_reply(*res);
}

template <typename Res>
ServedReply busy() {
  Res res;
  res.status = nfs3::Nfsstat3::kJukebox;
  return plain_reply(res);
}

}  // namespace

BulkArgs parse_bulk_args(const ServedCall& call) {
  if (call.procedure == static_cast<std::uint32_t>(Proc::kRead)) {
    nfs3::ReadArgs args;
    if (parse_all(call, args)) return args;
  } else if (call.procedure == static_cast<std::uint32_t>(Proc::kWrite)) {
    nfs3::WriteArgs args;
    if (parse_with_item(call, args, &nfs3::WriteArgs::data)) return args;
  }
  return {};
}

ServedReply serve_nfs_call(Backend& backend, const ServedCall& call, const BulkArgs& args, Buffer& buffer) {
  switch (static_cast<Proc>(call.procedure)) {
    case Proc::kNull: return {};
    case Proc::kGetattr: return run(backend, call, &Backend::getattr);
    case Proc::kSetattr: return run(backend, call, &Backend::setattr);
    case Proc::kLookup: return run(backend, call, &Backend::lookup);
    case Proc::kAccess: return run(backend, call, &Backend::access);
    case Proc::kReadlink: return run_readlink(backend, call, buffer);
    case Proc::kRead: return run_read(backend, args, buffer);
    case Proc::kWrite: return run_write(backend, args);
    case Proc::kCreate: return run(backend, call, &Backend::create);
    case Proc::kMkdir: return run(backend, call, &Backend::mkdir);
    case Proc::kSymlink: return run_symlink(backend, call);
    case Proc::kMknod: return run(backend, call, &Backend::mknod);
    case Proc::kRemove: return run(backend, call, &Backend::remove);
    case Proc::kRmdir: return run(backend, call, &Backend::rmdir);
    case Proc::kRename: return run(backend, call, &Backend::rename);
    case Proc::kLink: return run(backend, call, &Backend::link);
    case Proc::kReaddir: return run(backend, call, &Backend::readdir);
    case Proc::kReaddirplus: return run(backend, call, &Backend::readdirplus);
    case Proc::kFsstat: return run(backend, call, &Backend::fsstat);
    case Proc::kFsinfo: return run(backend, call, &Backend::fsinfo);
    case Proc::kPathconf: return run(backend, call, &Backend::pathconf);
    case Proc::kCommit: return run(backend, call, &Backend::commit);
  }
  ServedReply reply;
  reply.accept = ServedReply::Accept::kProcUnavail;
  return reply;
}

std::optional<ServedReply> serve_nfs_call_now(Backend& backend, const BulkArgs& args, Buffer& buffer) {
  if (const auto* read = std::get_if<nfs3::ReadArgs>(&args)) return run_read_now(backend, *read, buffer);
  if (const auto* write = std::get_if<nfs3::WriteArgs>(&args)) return run_write_now(backend, *write);
  return std::nullopt;
}

ServedReply busy_reply(std::uint32_t procedure) {
  switch (static_cast<Proc>(procedure)) {
    case Proc::kNull: return {};
    case Proc::kGetattr: return busy<nfs3::GetattrRes>();
    case Proc::kLookup: return busy<nfs3::LookupRes>();
    case Proc::kAccess: return busy<nfs3::AccessRes>();
    case Proc::kReadlink: return busy<nfs3::ReadlinkRes>();
    case Proc::kRead: return busy<nfs3::ReadRes>();
    case Proc::kWrite: return busy<nfs3::WriteRes>();
    case Proc::kCreate:
    case Proc::kMkdir:
    case Proc::kSymlink:
    case Proc::kMknod: return busy<nfs3::NewObjectRes>();
    case Proc::kSetattr:
    case Proc::kRemove:
    case Proc::kRmdir: return busy<nfs3::WccRes>();
    case Proc::kRename: return busy<nfs3::RenameRes>();
    case Proc::kLink: return busy<nfs3::LinkRes>();
    case Proc::kReaddir: return busy<nfs3::ReaddirRes>();
    case Proc::kReaddirplus: return busy<nfs3::ReaddirplusRes>();
    case Proc::kFsstat: return busy<nfs3::FsstatRes>();
    case Proc::kFsinfo: return busy<nfs3::FsinfoRes>();
    case Proc::kPathconf: return busy<nfs3::PathconfRes>();
    case Proc::kCommit: return busy<nfs3::CommitRes>();
  }
  ServedReply reply;
  reply.accept = ServedReply::Accept::kProcUnavail;
  return reply;
}

}  // namespace weft::serve
