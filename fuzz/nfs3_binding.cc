// The binding's walk over arguments against the codec's: one octet that names the procedure, then XDR. Where one takes
// the octets as a whole message, so does the other, and both see the item at the same place.
#include <span>
#include <vector>

#include "fuzz/nfs3_fuzz.h"
#include "nfsulb/nfs3.h"

using namespace weft::nfs3;

namespace {

using weft::rpcrdma::Walked;
const weft::rpcrdma::Binding& binding = weft::nfsulb::nfs3_binding();

template <typename T, typename... Form>
bool is_whole(weft::ConstBytes input, Form... form) {
  XdrReader reader(input);
  T value;
  return parse(reader, value, form...) && reader.at_end();
}

// Where the codec reads a message whose item was left out, the binding finds it missing at the end.
void check_item(std::uint32_t procedure, weft::ConstBytes input, bool is_reduced) {
  if (!is_reduced) return;
  const std::size_t end = input.size();
  std::vector<weft::rpcrdma::EligibleItem> items;
  fuzz::require(binding.walk_arguments(procedure, input, std::span(&end, 1), items) == Walked::kWhole);
  fuzz::require(items.size() == 1 && items[0].reduced && items[0].offset == end);
  XdrReader last(input.last(4));
  std::uint32_t len = 0;
  fuzz::require(last.u32(len) && len == items[0].len);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint32_t procedure = data[0] % (kNumProcs + 2);
  const weft::ConstBytes input = weft::ConstBytes(data, size).subspan(1);
  std::vector<weft::rpcrdma::EligibleItem> items;
  const Walked walked = binding.walk_arguments(procedure, input, {}, items);
  fuzz::require((walked == Walked::kUnknown) == (procedure >= kNumProcs));
  weft::rpcrdma::ReplyBound bound;
  fuzz::require(binding.bound_reply(procedure, input, {}, {}, bound) == walked);
  for (const auto& item : items) fuzz::require(item.offset + item.len <= input.size());
  const bool is_taken = walked == Walked::kWhole;
  switch (static_cast<Proc>(procedure)) {
    case Proc::kWrite: check_item(procedure, input, is_whole<WriteArgs>(input, ItemForm::kReduced)); break;
    case Proc::kSymlink: check_item(procedure, input, is_whole<SymlinkArgs>(input, ItemForm::kReduced)); break;
    case Proc::kReaddir: fuzz::require(!is_whole<ReaddirArgs>(input) || is_taken); break;
    case Proc::kMknod: fuzz::require(!is_whole<MknodArgs>(input) || is_taken); break;
    case Proc::kCreate: fuzz::require(!is_whole<CreateArgs>(input) || is_taken); break;
    case Proc::kSetattr: fuzz::require(is_whole<SetattrArgs>(input) == is_taken); break;
    default: fuzz::require(items.empty()); break;
  }
  return 0;
}
