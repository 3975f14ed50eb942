#include "rpcrdma/returned_lists.h"

#include "requirements/violates.h"

namespace weft::rpcrdma {

namespace {

// A returned array equals the offered one except for the lengths, and no length may have grown (R1-4.4.6-04). Some
// responders return an array without segments for "unused" (RFC 8267 section 6.4.1).
bool agrees(const SegmentArray& returned, const SegmentArray& offered) {
  if (returned.empty()) return true;
  if (violates("R1-4.4.6-05", returned.size() != offered.size())) return false;
  for (std::size_t i = 0; i < returned.size(); ++i) {
    if (violates("R1-4.4.6-04", returned[i].handle != offered[i].handle)) return false;
    if (violates("R1-4.4.6-04", returned[i].offset != offered[i].offset)) return false;
    if (violates("R1-4.4.6-04", returned[i].length > offered[i].length)) return false;
  }
  return true;
}

}  // namespace

const char* disagreement(const ChunkListsView& returned, const Offered& offered) {
  if (violates("R1-5.3.1-02", !returned.read_list.empty())) return "Read list present in a Reply";
  if (violates("R1-4.4.6-09", returned.write_list.size() != offered.write_list.size())) {
    return "returned Write list is not the provided one";
  }
  for (std::size_t i = 0; i < returned.write_list.size(); ++i) {
    if (!agrees(returned.write_list[i], offered.write_list[i])) return "returned Write list is not the provided one";
  }
  if (!returned.reply_chunk) return nullptr;
  if (violates("R1-5.3.3-05", offered.reply_chunk == nullptr)) return "a Reply chunk came back that was not provided";
  if (!agrees(*returned.reply_chunk, *offered.reply_chunk)) return "returned Reply chunk is not the provided one";
  return nullptr;
}

}  // namespace weft::rpcrdma
