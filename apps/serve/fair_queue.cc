#include "apps/serve/fair_queue.h"

#include <utility>

namespace weft::serve {

// Gives a member another place, also in its line if it stands there.
template <typename Member>
void FairQueue::move(Member& member, Line<Member>& line, Place to) {
  if (member.waits()) {
    auto node = line.extract(member.place);
    node.key() = to;
    line.insert(std::move(node));
  }
  member.place = to;
}

FairQueue::Connection& FairQueue::enter(const DiskClient& client) {
  std::unique_ptr<Connection>& connection = connections_[client.connection];
  if (connection) return *connection;
  connection = std::make_unique<Connection>();
  connection->number = client.connection;
  std::unique_ptr<Group>& group = groups_[client.group];
  // A newcomer stands behind all members that were served: connecting anew wins nothing.
  if (!group) {
    group = std::make_unique<Group>();
    group->name = client.group;
    group->place.served = ++last_served_;
  }
  connection->group = group.get();
  connection->place.served = ++last_served_;
  ++group->num_connections;
  return *connection;
}

void FairQueue::push(const DiskClient& client, std::unique_ptr<DiskTask> task) {
  Connection& connection = enter(client);
  Group& group = *connection.group;
  if (!connection.waits()) {
    if (!group.waits()) line_.emplace(group.place, &group);
    group.line.emplace(connection.place, &connection);
  }
  connection.tasks.push_back(std::move(task));
  ++group.num_tasks;
  ++size_;
}

// The connection has no waiting task any more.
void FairQueue::leave_line(Connection& connection) {
  Group& group = *connection.group;
  group.line.erase(connection.place);
  if (!group.waits()) line_.erase(group.place);
}

bool FairQueue::has_next() const {
  // The other groups have as many running tasks as the first one, or more.
  return !line_.empty() && line_.begin()->first.num_running < max_per_group_;
}

std::optional<FairQueue::Taken> FairQueue::take() {
  if (!has_next()) return std::nullopt;
  Group& group = *line_.begin()->second;
  Connection& connection = *group.line.begin()->second;
  Taken taken{std::move(connection.tasks.front()), connection.number};
  connection.tasks.pop_front();
  --group.num_tasks;
  --size_;
  if (!connection.waits()) leave_line(connection);
  ++last_served_;
  move(connection, group.line, {connection.place.num_running + 1, last_served_});
  move(group, line_, {group.place.num_running + 1, last_served_});
  return taken;
}

void FairQueue::done(std::uint32_t number) {
  Connection& connection = *connections_.at(number);
  Group& group = *connection.group;
  move(connection, group.line, {connection.place.num_running - 1, connection.place.served});
  move(group, line_, {group.place.num_running - 1, group.place.served});
  forget_if_over(connection);
}

std::vector<std::unique_ptr<DiskTask>> FairQueue::remove(std::uint32_t number) {
  std::vector<std::unique_ptr<DiskTask>> unwanted;
  const auto at = connections_.find(number);
  if (at == connections_.end()) return unwanted;
  Connection& connection = *at->second;
  connection.is_removed = true;
  if (connection.waits()) {
    std::deque<std::unique_ptr<DiskTask>> wanted;
    for (std::unique_ptr<DiskTask>& task : connection.tasks) {
      if (task->is_wanted_without_client()) {
        wanted.push_back(std::move(task));
      } else {
        unwanted.push_back(std::move(task));
      }
    }
    connection.tasks = std::move(wanted);
    connection.group->num_tasks -= unwanted.size();
    size_ -= unwanted.size();
    if (!connection.waits()) leave_line(connection);
  }
  forget_if_over(connection);
  return unwanted;
}

void FairQueue::forget_if_over(Connection& connection) {
  if (!connection.is_removed || connection.waits() || connection.place.num_running != 0) return;
  Group& group = *connection.group;
  const std::uint32_t number = connection.number;
  connections_.erase(number);
  if (--group.num_connections != 0) return;
  const std::string name = group.name;
  groups_.erase(name);
}

std::size_t FairQueue::size_of(const std::string& group) const {
  const auto at = groups_.find(group);
  return at == groups_.end() ? 0 : at->second->num_tasks;
}

}  // namespace weft::serve
