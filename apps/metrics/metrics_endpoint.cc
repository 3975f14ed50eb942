#include "apps/metrics/metrics_endpoint.h"

#include <sys/eventfd.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <thread>

#include "apps/common/tcp_endpoint.h"
#include "apps/metrics/http_server.h"
#include "base/address.h"
#include "base/fd.h"
#include "fmt/format.h"

namespace weft::metrics {

namespace asio = boost::asio;
using asio::ip::tcp;

struct MetricsEndpoint::Impl {
  explicit Impl(const EndpointConfig& config)
      : wanted(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), server(io, config, [this] {
          is_wanted.store(true, std::memory_order_release);
          ::eventfd_write(wanted.get(), 1);
        }) {}

  asio::io_context io{1};
  Fd wanted;
  std::atomic<bool> is_wanted{false};
  HttpServer server;  // of the thread, once it runs
  sockaddr_storage local{};
  std::thread thread;
};

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::start(const EndpointConfig& config) {
  auto impl = std::make_unique<Impl>(config);
  if (const auto error = impl->server.listen()) {
    return absl::UnavailableError(fmt::format("cannot listen for metrics at {}: {}; choose another --metrics",
                                              address_str(config.listen), error.message()));
  }
  impl->local = apps::to_sockaddr(impl->server.local_endpoint());
  impl->thread = std::thread([impl = impl.get()] { impl->io.run(); });
  return std::unique_ptr<MetricsEndpoint>(new MetricsEndpoint(std::move(impl)));
}

MetricsEndpoint::MetricsEndpoint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

MetricsEndpoint::~MetricsEndpoint() {
  impl_->io.stop();
  impl_->thread.join();
}

sockaddr_storage MetricsEndpoint::local_addr() const {
  return impl_->local;
}

int MetricsEndpoint::fd() const {
  return impl_->wanted.get();
}

bool MetricsEndpoint::is_wanted() const {
  return impl_->is_wanted.load(std::memory_order_acquire);
}

void MetricsEndpoint::deliver(Snapshot snapshot) {
  eventfd_t ignored = 0;
  ::eventfd_read(impl_->wanted.get(), &ignored);
  impl_->is_wanted.store(false, std::memory_order_relaxed);
  asio::post(impl_->io, [impl = impl_.get(), snapshot = std::move(snapshot)] { impl->server.on_snapshot(snapshot); });
}

}  // namespace weft::metrics
