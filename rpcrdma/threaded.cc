#include "rpcrdma/threaded.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <future>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/fd.h"

namespace weft::rpcrdma {

namespace {

// EngineThread drives one Client or Server: it takes turn after turn while the engine moves, and sleeps on its
// descriptor otherwise. Other threads reach it through a queue of tasks. They ring an eventfd only while the thread
// sleeps.
template <typename Engine>
class EngineThread {
 public:
  using Task = std::function<void(Engine&)>;

  EngineThread(std::unique_ptr<verbs::Device> device, std::unique_ptr<Engine> engine)
      : device_(std::move(device)), engine_(std::move(engine)) {}
  ~EngineThread() { stop(); }
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  // watch: called on the thread after each turn, until it returns true; may be empty.
  using Watch = std::function<bool(const Engine&)>;
  verbs::Status start(Watch watch = {});
  // Runs the posted tasks, then ends the engine and the device, on their thread.
  void stop();
  // False after stop began.
  bool post(Task task);
  bool is_current() const { return std::this_thread::get_id() == thread_.get_id(); }
  Engine& engine() { return *engine_; }

 private:
  void main();
  // False: no task will be posted any more.
  bool run_tasks();
  void sleep();

  std::unique_ptr<verbs::Device> device_;
  std::unique_ptr<Engine> engine_;
  Fd bell_;
  std::mutex mutex_;
  std::vector<Task> tasks_;
  bool stopping_ = false;
  bool asleep_ = false;  // a poster has to ring, and resets this first
  std::vector<Task> running_;
  Watch watch_;
  std::thread thread_;
};

template <typename Engine>
verbs::Status EngineThread<Engine>::start(Watch watch) {
  assert(!bell_);
  watch_ = std::move(watch);
  bell_ = Fd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!bell_) return verbs::Error{errno, "a descriptor for a thread: " + std::system_category().message(errno)};
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  verbs::Status status;
  try {
    // The new thread begins after this thread knows its id, so is_current needs no lock.
    const std::scoped_lock lock(mutex_);
    thread_ = std::thread([this] { main(); });
  } catch (const std::system_error& error) {
    status = verbs::Error{error.code().value(), std::string("a thread: ") + error.what()};
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

template <typename Engine>
void EngineThread<Engine>::stop() {
  assert(!is_current());
  if (!thread_.joinable()) {
    engine_.reset();
    return;
  }
  post([this](Engine&) {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  });
  thread_.join();
}

template <typename Engine>
bool EngineThread<Engine>::post(Task task) {
  bool ring = false;
  {
    const std::scoped_lock lock(mutex_);
    if (stopping_) return false;
    tasks_.push_back(std::move(task));
    ring = std::exchange(asleep_, false);
  }
  // Fails only if the counter is full. A full counter wakes the thread as well.
  if (ring) (void)::eventfd_write(bell_.get(), 1);
  return true;
}

template <typename Engine>
void EngineThread<Engine>::main() {
  { const std::scoped_lock lock(mutex_); }
  while (run_tasks()) {
    const std::size_t moved = engine_->process(std::chrono::steady_clock::now());
    if (watch_ && watch_(*engine_)) watch_ = {};
    if (moved == 0) sleep();
  }
  engine_.reset();
  device_.reset();
}

template <typename Engine>
bool EngineThread<Engine>::run_tasks() {
  bool more = true;
  {
    const std::scoped_lock lock(mutex_);
    running_.swap(tasks_);
    more = !stopping_ || !running_.empty();
  }
  for (Task& task : running_) task(*engine_);
  running_.clear();
  return more;
}

template <typename Engine>
void EngineThread<Engine>::sleep() {
  std::array<pollfd, 2> fds = {{{engine_->fd(), POLLIN, 0}, {bell_.get(), POLLIN, 0}}};
  timespec wait{};
  const auto until = engine_->next_timeout();
  if (until) {
    const auto left = std::max(*until - std::chrono::steady_clock::now(), TimePoint::duration::zero());
    const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
    wait = {seconds.count(), std::chrono::nanoseconds(left - seconds).count()};
  }
  {
    const std::scoped_lock lock(mutex_);
    if (!tasks_.empty() || stopping_) return;
    asleep_ = true;
  }
  (void)::ppoll(fds.data(), fds.size(), until ? &wait : nullptr, nullptr);
  {
    const std::scoped_lock lock(mutex_);
    asleep_ = false;
  }
  eventfd_t rung = 0;
  if (fds[1].revents != 0) (void)::eventfd_read(bell_.get(), &rung);
}

CallResult kept(const Reply& reply) {
  return {reply.status,
          {reply.results.begin(), reply.results.end()},
          {reply.item_lens.begin(), reply.item_lens.end()},
          reply.item_len,
          reply.text,
          reply.did_not_run};
}

Reply refused(const verbs::Error& error) {
  Reply reply;
  reply.status = error.errno_value == ENOTCONN ? CallStatus::kDisconnected : CallStatus::kLocalError;
  reply.text = error.message;
  reply.did_not_run = true;
  return reply;
}

}  // namespace

// ---- ThreadedClient

struct ThreadedClient::Impl {
  Impl(std::unique_ptr<verbs::Device> device, std::unique_ptr<Client> client)
      : thread(std::move(device), std::move(client)) {}

  void start_call(Client& client, std::uint64_t id, const CallSpec& spec, ReplyCallback done);

  std::atomic<std::uint64_t> last_id = 0;
  std::unordered_map<std::uint64_t, CallId> open;  // the thread's; by the id that the caller has
  EngineThread<Client> thread;
};

void ThreadedClient::Impl::start_call(Client& client, std::uint64_t id, const CallSpec& spec, ReplyCallback done) {
  // One `done` for two users: the client, and the code that reports a refusal.
  const auto end = std::make_shared<ReplyCallback>(std::move(done));
  const auto called = client.call(spec, [this, id, end](const Reply& reply) {
    open.erase(id);
    if (*end) (*end)(reply);
  });
  if (called.ok()) {
    open.emplace(id, called.value());
  } else if (*end) {
    (*end)(refused(called.error()));
  }
}

verbs::Result<std::unique_ptr<ThreadedClient>> ThreadedClient::connect(std::unique_ptr<verbs::Device> device,
                                                                       const sockaddr_storage& dst,
                                                                       const ClientConfig& config) {
  auto client = Client::connect(*device, dst, config);
  if (!client.ok()) return client.error();
  auto impl = std::make_unique<Impl>(std::move(device), std::move(*client));
  std::promise<verbs::Status> first;
  std::future<verbs::Status> settled = first.get_future();
  // The thread may still be in set_value when `settled` is ready, so the thread owns the promise.
  const auto watch = [told = std::make_shared<std::promise<verbs::Status>>(std::move(first))](const Client& engine) {
    if (engine.state() == Client::State::kConnecting) return false;
    told->set_value(engine.state() == Client::State::kReady ? verbs::Status() : verbs::Error{ENOTCONN, engine.error()});
    return true;
  };
  if (auto status = impl->thread.start(watch); !status.ok()) return status.error();
  if (auto status = settled.get(); !status.ok()) {
    impl->thread.stop();
    return status.error();
  }
  return std::unique_ptr<ThreadedClient>(new ThreadedClient(std::move(impl)));
}

ThreadedClient::ThreadedClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
// Callbacks see this object complete.
ThreadedClient::~ThreadedClient() {
  impl_->thread.stop();
}

verbs::Result<CallId> ThreadedClient::call(const CallSpec& spec, ReplyCallback done) {
  const std::uint64_t id = ++impl_->last_id;
  const bool posted = impl_->thread.post([impl = impl_.get(), id, spec, done = std::move(done)](Client& client) {
    impl->start_call(client, id, spec, done);
  });
  if (!posted) return verbs::Error{ENOTCONN, "the client is going away"};
  return CallId{id};
}

void ThreadedClient::cancel(CallId id) {
  impl_->thread.post([impl = impl_.get(), id](Client& client) {
    const auto at = impl->open.find(id.value);
    if (at != impl->open.end()) (void)client.cancel(at->second);
  });
}

CallResult ThreadedClient::call_and_wait(const CallSpec& spec) {
  if (impl_->thread.is_current()) {
    return kept(refused({EDEADLK, "call_and_wait on the client's own thread would wait for ever"}));
  }
  std::mutex mutex;
  std::condition_variable ended;
  std::optional<CallResult> result;
  const auto called = call(spec, [&](const Reply& reply) {
    // Notifies within the lock: after the lock is released, `ended` may be gone.
    const std::scoped_lock lock(mutex);
    result = kept(reply);
    ended.notify_one();
  });
  if (!called.ok()) return kept(refused(called.error()));
  std::unique_lock lock(mutex);
  ended.wait(lock, [&] { return result.has_value(); });
  return std::move(*result);
}

bool ThreadedClient::post(std::function<void(Client&)> task) {
  return impl_->thread.post(std::move(task));
}

// ---- ThreadedServer

struct ThreadedServer::Impl {
  Impl(std::unique_ptr<verbs::Device> device, std::unique_ptr<Server> server)
      : local_addr(server->local_addr()), thread(std::move(device), std::move(server)) {}

  sockaddr_storage local_addr;
  EngineThread<Server> thread;
};

verbs::Result<std::unique_ptr<ThreadedServer>> ThreadedServer::listen(std::unique_ptr<verbs::Device> device,
                                                                      const sockaddr_storage& addr,
                                                                      std::span<const ServedProgram> programs,
                                                                      const ServerConfig& config) {
  auto server = Server::listen(*device, addr, programs, config);
  if (!server.ok()) return server.error();
  auto impl = std::make_unique<Impl>(std::move(device), std::move(*server));
  return std::unique_ptr<ThreadedServer>(new ThreadedServer(std::move(impl)));
}

ThreadedServer::ThreadedServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
// Services see this object complete.
ThreadedServer::~ThreadedServer() {
  impl_->thread.stop();
}

verbs::Status ThreadedServer::start() {
  return impl_->thread.start();
}

sockaddr_storage ThreadedServer::local_addr() const {
  return impl_->local_addr;
}

void ThreadedServer::reply(ServedCall call, ServedReply reply) {
  struct Answered {
    ServedCall call;
    ServedReply reply;
  };
  // Shared because tasks are copyable; there is one owner after the other.
  auto answered = std::make_shared<Answered>(Answered{std::move(call), std::move(reply)});
  impl_->thread.post([answered = std::move(answered)](Server& server) {
    server.reply(answered->call.id, std::move(answered->reply));
  });
}

bool ThreadedServer::post(std::function<void(Server&)> task) {
  return impl_->thread.post(std::move(task));
}

Server& ThreadedServer::server() {
  return impl_->thread.engine();
}

}  // namespace weft::rpcrdma
