#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

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

// ClientEnds carries the ends of clients from the loop, which sees them, to the order of a table (SharedOrder), whose
// lock other threads may hold while they wait for the disk. Any thread.
class ClientEnds {
 public:
  // The order hears of this end now, or, if a thread holds its lock, from the next thread that settles.
  template <typename Order>
  void add(const DiskClient& client, Order& order, std::mutex& lock_of_order) {
    put(client);
    std::unique_lock lock(lock_of_order, std::try_to_lock);
    if (lock) settle(order);
  }
  // Each use of the order begins with it. The lock of the order is held.
  template <typename Order>
  void settle(Order& order) {
    for (const DiskClient& client : take()) order.end(client);
  }

 private:
  void put(const DiskClient& client);
  // Each end is taken once.
  std::vector<DiskClient> take();

  std::atomic<bool> has_any_{false};
  std::mutex mutex_;
  std::vector<DiskClient> ended_;
};

}  // namespace weft::serve
