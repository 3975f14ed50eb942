// The binding's walk over arguments against the codec's: one octet that names the procedure, then XDR. Where one takes
// the octets as a whole message, so does the other, and both see the item at the same place.
#include <algorithm>

#include "fuzz/nfs3_fuzz.h"
#include "nfsulb/nfs3.h"

using namespace weft::nfs3;

namespace {

template <typename T, typename... Form>
bool is_whole(ConstBytes input, Form... form) {
  XdrReader reader(input);
  T value;
  return parse(reader, value, form...) && reader.at_end();
}

void check_item(std::uint32_t procedure, ConstBytes input, bool is_reduced) {
  const auto place = weft::nfsulb::nfs3_binding().find_argument(procedure, input);
  if (!is_reduced) return;
  fuzz::require(place.has_value());
  fuzz::require(place->position == input.size());
  XdrReader last(input.last(4));
  std::uint32_t len = 0;
  fuzz::require(last.u32(len) && len == place->len);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint32_t procedure = data[0] % (kNumProcs + 2);
  const ConstBytes input = ConstBytes(data, size).subspan(1);
  const weft::rpcrdma::Binding& binding = weft::nfsulb::nfs3_binding();
  const auto bound = binding.max_results(procedure, input);
  fuzz::require(!bound || procedure < kNumProcs);
  const auto place = binding.find_argument(procedure, input);
  fuzz::require(!place || place->position <= input.size());
  switch (static_cast<Proc>(procedure)) {
    case Proc::kWrite: check_item(procedure, input, is_whole<WriteArgs>(input, ItemForm::kReduced)); break;
    case Proc::kSymlink: check_item(procedure, input, is_whole<SymlinkArgs>(input, ItemForm::kReduced)); break;
    case Proc::kReaddir: fuzz::require(!is_whole<ReaddirArgs>(input) || bound.has_value()); break;
    case Proc::kMknod: fuzz::require(!is_whole<MknodArgs>(input) || bound.has_value()); break;
    case Proc::kCreate: fuzz::require(!is_whole<CreateArgs>(input) || bound.has_value()); break;
    case Proc::kSetattr: fuzz::require(is_whole<SetattrArgs>(input) == bound.has_value()); break;
    default: fuzz::require(!place.has_value()); break;
  }
  return 0;
}
