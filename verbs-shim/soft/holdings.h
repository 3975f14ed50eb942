#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "verbs-shim/soft/handle.h"

namespace weft::verbs::soft {

// Holdings counts the things that peers make a loop hold: connections that have sent no whole MPA Request, connections
// that deliver their end without an owner, octets of FPDUs that arrived in part (RFC 5042 section 6). Beyond a bound
// the oldest has to go: the loop asks for it until no bound is exceeded.
class Holdings {
 public:
  struct Limits {
    std::size_t max_silent = 0;
    std::size_t max_lingering = 0;
    std::size_t max_parked = 0;  // octets
  };
  enum class What : std::uint8_t { kSilent, kLingering, kParked };
  struct Excess {
    Handle who;
    What what = What::kSilent;
    bool operator==(const Excess&) const = default;
  };

  explicit Holdings(const Limits& limits) : limits_(limits) {}

  void add_silent(Handle who);
  void add_lingering(Handle who);
  // The connection has sent a whole Request, or its end has come.
  void remove_silent(Handle who);
  // num_octets octets (perhaps none) of an FPDU wait in the connection's own memory. same_fpdu: octets of this FPDU
  // were parked before, so it keeps its age.
  void park(Handle who, std::size_t num_octets, bool same_fpdu);
  // The parked octets are back in the receive buffer.
  void unpark(Handle who);
  // The connection died.
  void forget(Handle who);

  std::optional<Handle> oldest_silent() const;
  // Whether a bound is exceeded. If so, excess() names the connection that has to go next.
  bool exceeds() const {
    return silent_.size() > limits_.max_silent || lingering_.size() > limits_.max_lingering ||
           num_parked_octets_ > limits_.max_parked;
  }
  std::optional<Excess> excess() const;

 private:
  using ByAge = std::map<std::uint64_t, Handle>;
  struct Entry {
    std::uint64_t silent = 0;  // its age in each of the three, 0 if it is not in that one
    std::uint64_t lingering = 0;
    std::uint64_t parked = 0;
    std::size_t num_octets = 0;
  };

  Entry& entry(Handle who);
  void add(ByAge& to, std::uint64_t& age, Handle who);

  Limits limits_;
  std::vector<Entry> entries_;  // by slot; forget leaves an empty one
  std::uint64_t last_age_ = 0;
  ByAge silent_;
  ByAge lingering_;
  ByAge parked_;
  std::size_t num_parked_octets_ = 0;
};

}  // namespace weft::verbs::soft
