#include "verbs-shim/soft/worker.h"

#include <pthread.h>

#include <chrono>
#include <csignal>
#include <string>
#include <system_error>

namespace weft::verbs::soft {

Worker::~Worker() {
  if (thread_.joinable()) {
    loop_.mailbox().stop();
    thread_.join();
  }
  loop_.mailbox().close();
}

Status Worker::start() {
  if (Status status = loop_.mailbox().open(loop_.poller()); !status) return status;
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  Status status;
  try {
    thread_ = std::thread([this] { main(); });
  } catch (const std::system_error& error) {
    status = Error{error.code().value(), std::string("a thread for a worker: ") + error.what()};
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

void Worker::main() {
  Mailbox& mailbox = loop_.mailbox();
  mailbox.begin();
  while (!mailbox.stopping()) {
    mailbox.begin_turns();
    std::size_t moved = mailbox.run_tasks();
    moved += loop_.process(std::chrono::steady_clock::now());
    mailbox.end_turns();
    if (moved == 0) mailbox.sleep([this] { return loop_.has_work(); }, [this] { loop_.poller().wait(); });
  }
}

}  // namespace weft::verbs::soft
