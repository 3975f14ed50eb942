// The arguments of the NFSv3 procedures: one octet that names the procedure, then XDR.
#include "fuzz/nfs3_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const weft::ConstBytes input(data, size);
  weft::nfs3::fuzz::parses_as_args(input[0] % weft::nfs3::kNumProcs, input.subspan(1));
  return 0;
}
