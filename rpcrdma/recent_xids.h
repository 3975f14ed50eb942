#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::rpcrdma {

// RecentXids are the XIDs of the last Calls that got a Reply.
class RecentXids {
 public:
  explicit RecentXids(std::size_t most) : most_(most) {}

  void add(std::uint32_t xid) {
    if (xids_.size() < most_) {
      xids_.push_back(xid);
    } else if (most_ != 0) {
      xids_[next_++ % most_] = xid;
    }
  }
  bool has(std::uint32_t xid) const { return std::ranges::find(xids_, xid) != xids_.end(); }

 private:
  std::size_t most_;
  std::size_t next_ = 0;  // the oldest one, once there are as many as there may be
  std::vector<std::uint32_t> xids_;
};

}  // namespace weft::rpcrdma
