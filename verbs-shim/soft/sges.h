#pragma once

#include <span>

#include "rdmap/work.h"
#include "verbs-shim/api/types.h"

namespace weft::verbs::soft {

// Empty elements name no memory. They are left out, so their keys do not matter (as with hardware).
inline void copy_sges(std::span<const Sge> from, rdmap::SgeList& to) {
  for (const Sge& sge : from) {
    if (sge.length != 0) to.push_back({sge.addr, sge.length, ddp::Stag{sge.lkey}});
  }
}

// Fills a receive that may have been used before, and reuses its memory.
inline void to_posted(const RecvWr& wr, rdmap::PostedRecv& out) {
  out.wr_id = wr.wr_id;
  out.sg_list.clear();
  copy_sges(wr.sg_list, out.sg_list);
}

}  // namespace weft::verbs::soft
