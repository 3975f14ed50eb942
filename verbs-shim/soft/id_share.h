#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "verbs-shim/soft/event_queue.h"
#include "verbs-shim/soft/handle.h"
#include "verbs-shim/soft/work_queues.h"

namespace weft::verbs::soft {

// IdShare is the state that a CmId shares with its connection. The id owns it. It is used in the loop's thread; push is
// for any thread.
struct IdShare {
  IdShare(CmId& owner, std::shared_ptr<EventQueue> events) : id(owner), queue(std::move(events)) {}

  void push(CmEventType type, int status, std::string text, ConnParam param = {},
            std::optional<CmEvent::RefusedWrite> refused_write = {}) {
    queue->push({.type = type,
                 .id = &id,
                 .new_id = {},
                 .status = status,
                 .text = std::move(text),
                 .param = std::move(param),
                 .refused_write = refused_write});
  }
  // The device is gone, and so is the connection, if there was one.
  void on_removal() {
    push(CmEventType::kDeviceRemoval, ENODEV, "the device was removed");
    if (const auto of_qp = queues.lock()) of_qp->fail();
  }

  CmId& id;
  const std::shared_ptr<EventQueue> queue;
  std::weak_ptr<WorkQueues> queues;  // of its queue pair
  Handle connection;                 // the connection resets it at its end
  sockaddr_storage local{};
  sockaddr_storage peer{};
  Fd kept;  // a socket that MPA has left
  std::vector<std::uint8_t> kept_received;
};

}  // namespace weft::verbs::soft
