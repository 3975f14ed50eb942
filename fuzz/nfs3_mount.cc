// MOUNT version 3: one octet that names the message, then XDR.
#include "apps/nfs3/mount.h"

#include "fuzz/nfs3_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::nfs3;
  if (size == 0) return 0;
  const weft::ConstBytes input = weft::ConstBytes(data, size).subspan(1);
  switch (data[0] % 4) {
    case 0: fuzz::parse_emit_parse<DirpathArgs>(input); break;
    case 1: fuzz::parse_emit_parse<MntRes>(input); break;
    case 2: fuzz::parse_emit_parse<DumpRes>(input); break;
    default: fuzz::parse_emit_parse<ExportRes>(input); break;
  }
  return 0;
}
