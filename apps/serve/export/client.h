#pragma once

#include <cstdint>
#include <string>

namespace weft::serve {

// DiskClient is the client of a task: a connection, and the group of addresses that the connection counts with. Without
// a group it is the server itself.
struct DiskClient {
  std::uint32_t connection = 0;
  std::string group = {};

  friend bool operator==(const DiskClient&, const DiskClient&) = default;
};

// ActingFor names the client for which its thread works as long as it lives. What the thread then puts into shared
// tables (open files, the index of handles, searches) counts as that client's.
class ActingFor {
 public:
  // `client` outlives the object.
  explicit ActingFor(const DiskClient& client);
  ~ActingFor();
  ActingFor(const ActingFor&) = delete;
  ActingFor& operator=(const ActingFor&) = delete;

  // The client of this thread; the server itself if there is none.
  static const DiskClient& now();

 private:
  const DiskClient* const before_;
};

}  // namespace weft::serve
