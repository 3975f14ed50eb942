// The results of the NFSv3 procedures: one octet that names the procedure, then XDR.
#include "fuzz/nfs3_fuzz.h"

using namespace weft::nfs3;

namespace {

void run(Proc proc, weft::ConstBytes input) {
  switch (proc) {
    case Proc::kNull: fuzz::parse_emit_parse<VoidRes>(input); break;
    case Proc::kGetattr: fuzz::parse_emit_parse<GetattrRes>(input); break;
    case Proc::kSetattr:
    case Proc::kRemove:
    case Proc::kRmdir: fuzz::parse_emit_parse<WccRes>(input); break;
    case Proc::kLookup: fuzz::parse_emit_parse<LookupRes>(input); break;
    case Proc::kAccess: fuzz::parse_emit_parse<AccessRes>(input); break;
    case Proc::kReadlink: fuzz::parse_emit_parse_both<ReadlinkRes>(input); break;
    case Proc::kRead: fuzz::parse_emit_parse_both<ReadRes>(input); break;
    case Proc::kWrite: fuzz::parse_emit_parse<WriteRes>(input); break;
    case Proc::kCreate:
    case Proc::kMkdir:
    case Proc::kSymlink:
    case Proc::kMknod: fuzz::parse_emit_parse<NewObjectRes>(input); break;
    case Proc::kRename: fuzz::parse_emit_parse<RenameRes>(input); break;
    case Proc::kLink: fuzz::parse_emit_parse<LinkRes>(input); break;
    case Proc::kReaddir: fuzz::parse_emit_parse<ReaddirRes>(input); break;
    case Proc::kReaddirplus: fuzz::parse_emit_parse<ReaddirplusRes>(input); break;
    case Proc::kFsstat: fuzz::parse_emit_parse<FsstatRes>(input); break;
    case Proc::kFsinfo: fuzz::parse_emit_parse<FsinfoRes>(input); break;
    case Proc::kPathconf: fuzz::parse_emit_parse<PathconfRes>(input); break;
    case Proc::kCommit: fuzz::parse_emit_parse<CommitRes>(input); break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const weft::ConstBytes input(data, size);
  run(static_cast<Proc>(input[0] % kNumProcs), input.subspan(1));
  return 0;
}
