#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace weft::verbs::ibv {

class IbvMr;
class IbvMw;

// WindowTable knows which windows of a device are bound to which regions, so that a region can go before its windows:
// the kernel refuses that (EBUSY), the API allows it. Any thread.
class WindowTable {
 public:
  void on_bound(IbvMw& mw, IbvMr& mr, std::uint32_t rkey);
  // By either side. An rkey that no window has is ignored.
  void on_invalidated(std::uint32_t rkey);
  void on_destroyed(IbvMw& mw);
  // Whether the rkey was a window's and was invalidated.
  bool is_free(std::uint32_t rkey) const;
  std::size_t num_windows(const IbvMr& mr) const;
  // Takes the windows from a region that goes away.
  void release(IbvMr& mr);

 private:
  struct Bound {
    IbvMw* mw = nullptr;
    IbvMr* mr = nullptr;
  };
  mutable std::mutex mutex_;
  std::unordered_map<std::uint32_t, Bound> bound_;
  std::unordered_map<std::uint32_t, IbvMw*> free_;
};

}  // namespace weft::verbs::ibv
