#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace weft::serve {

// DiskTask is a piece of work that may block on the disk. run() runs on a worker, then finish() and destruction on the
// loop.
class DiskTask {
 public:
  virtual ~DiskTask() = default;
  virtual void run() = 0;
  virtual void finish() = 0;
  // Whether the task is to run although its client is gone. Called on the loop.
  virtual bool is_wanted_without_client() const { return true; }
};

// DiskClient is the client of a task: a connection, and the group of addresses that the connection counts with.
struct DiskClient {
  std::uint32_t connection = 0;
  std::string group;
};

// FairQueue orders tasks among the groups of addresses that asked for them, and within a group among its connections.
// The next task belongs to the group with the fewest running tasks; of several groups, to the one that was served
// longest ago. The same choice follows among that group's connections. So a client with one task waits for no more
// tasks than there are other clients, however much they ask for.
//
// A value: no lock, no clock. It knows a connection from its first task until remove() and the end of its last task.
class FairQueue {
 public:
  struct Taken {
    std::unique_ptr<DiskTask> task;
    std::uint32_t connection = 0;
  };

  // max_per_group: tasks of one group that may run at once.
  explicit FairQueue(std::uint32_t max_per_group = UINT32_MAX) : max_per_group_(max_per_group) {}
  FairQueue(const FairQueue&) = delete;
  FairQueue& operator=(const FairQueue&) = delete;

  // push: not for a connection that was removed.
  void push(const DiskClient& client, std::unique_ptr<DiskTask> task);
  // Whether a task may run now.
  bool has_next() const;
  // The next task, which counts as running until done(); nothing if none may run.
  std::optional<Taken> take();
  // A task of this connection has run.
  void done(std::uint32_t connection);
  // The connection is gone. Its waiting tasks that are not wanted without it are returned; the others will run.
  std::vector<std::unique_ptr<DiskTask>> remove(std::uint32_t connection);

  // Waiting tasks: of all groups, and of one group.
  std::size_t size() const { return size_; }
  std::size_t size_of(const std::string& group) const;
  // Connections that the queue knows.
  std::size_t num_connections() const { return connections_.size(); }

 private:
  // Place says where a group or a connection stands in its line. No two have the same `served`.
  struct Place {
    std::uint32_t num_running = 0;
    std::uint64_t served = 0;  // a greater number was served later
    auto operator<=>(const Place&) const = default;
  };
  // The members that have waiting tasks, the next one first.
  template <typename Member>
  using Line = std::map<Place, Member*>;

  struct Group;
  struct Connection {
    std::uint32_t number = 0;
    Group* group = nullptr;
    Place place;
    std::deque<std::unique_ptr<DiskTask>> tasks;
    bool is_removed = false;

    bool waits() const { return !tasks.empty(); }
  };
  struct Group {
    std::string name;
    Place place;
    Line<Connection> line;
    std::size_t num_tasks = 0;  // waiting tasks
    std::size_t num_connections = 0;

    bool waits() const { return !line.empty(); }
  };

  template <typename Member>
  static void move(Member& member, Line<Member>& line, Place to);
  Connection& enter(const DiskClient& client);
  void leave_line(Connection& connection);
  void forget_if_over(Connection& connection);

  const std::uint32_t max_per_group_;
  std::unordered_map<std::uint32_t, std::unique_ptr<Connection>> connections_;
  std::unordered_map<std::string, std::unique_ptr<Group>> groups_;
  Line<Group> line_;
  std::uint64_t last_served_ = 0;
  std::size_t size_ = 0;
};

}  // namespace weft::serve
