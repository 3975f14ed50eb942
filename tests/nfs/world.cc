#include "tests/nfs/world.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "apps/common/command.h"
#include "apps/common/progress.h"
#include "apps/nfs/command.h"
#include "base/address.h"
#include "nfsulb/nfs3.h"
#include "rpcrdma/testing/protocol_under_test.h"
#include "verbs-shim/api/testing/post_tap.h"
#include "verbs-shim/soft/device.h"

namespace weft::nfs::testing {
namespace {

sockaddr_storage loopback(std::uint16_t port) {
  sockaddr_storage storage{};
  auto* addr = reinterpret_cast<sockaddr_in*>(&storage);
  addr->sin_family = AF_INET;
  addr->sin_port = htons(port);
  addr->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return storage;
}

std::string make_temporary_dir() {
  std::string path = (std::filesystem::temp_directory_path() / "weft-nfs-XXXXXX").string();
  EXPECT_NE(mkdtemp(path.data()), nullptr);
  return path;
}

}  // namespace

void Interposer::on_call(rpcrdma::ServedCall call) {
  if (is_ending) return;
  if (hook && hook(call)) return;
  inner->on_call(std::move(call));
}

nfs3::WriteArgs write_args_of(const rpcrdma::ServedCall& call, ConstBytes& data) {
  nfs3::XdrReader reader(call.args);
  nfs3::WriteArgs args;
  const bool reduced = !call.items.empty();
  EXPECT_TRUE(parse(reader, args, reduced ? nfs3::ItemForm::kReduced : nfs3::ItemForm::kInline));
  data = reduced ? ConstBytes(call.items[0].data.octets()).first(args.data.len) : args.data.data;
  return args;
}

World::World() : base_dir_(make_temporary_dir()) {
  export_dir_ = base_dir_ + "/export";
  local_dir_ = base_dir_ + "/local";
  for (const std::string& dir : {export_dir_, local_dir_, base_dir_ + "/state"}) std::filesystem::create_directory(dir);
  verbs::SoftConfig config;
  if (const char* workers = std::getenv("WEFT_WORKERS"))
    config.num_workers = static_cast<std::uint32_t>(std::atoi(workers));
  auto device = verbs::open_soft_device(config);
  EXPECT_TRUE(device.ok());
  device_ = verbs::testing::tapped(std::move(device.value()));

  serve::TreeConfig tree_config;
  tree_config.directory = export_dir_;
  tree_config.state_dir = base_dir_ + "/state";
  auto tree = serve::Tree::open(tree_config);
  EXPECT_TRUE(tree.ok()) << tree.status();
  tree_ = std::move(*tree);
  serve::BackendConfig backend_config;
  backend_config.read_write = true;
  backend_config.sync_metadata = false;
  backend = std::make_unique<serve::Backend>(*tree_, backend_config);
  mount_service_ = std::make_unique<serve::MountService>(*tree_);
  // Bound and never listening, it keeps the port while the server is away: neither another program nor a client that
  // connects again is given it as its own.
  sockaddr_storage port = loopback(0);
  socklen_t len = sizeof(sockaddr_in);
  const int yes = 1;
  port_fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(setsockopt(port_fd_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), 0);
  EXPECT_EQ(bind(port_fd_, reinterpret_cast<const sockaddr*>(&port), len), 0);
  EXPECT_EQ(getsockname(port_fd_, reinterpret_cast<sockaddr*>(&port), &len), 0);
  rdma_port_ = port_of(port);
  start_server(loopback(rdma_port_));
  auto mount = serve::MountServer::listen(loopback(0), *mount_service_);
  EXPECT_TRUE(mount.ok()) << mount.status();
  mount_server_ = std::move(*mount);
  mount_port_ = port_of(mount_server_->local_addr());
  stop_fd_ = eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this] { run_server(); });
}

World::~World() {
  stop_server();
  thread_.join();
  mount_server_.reset();
  close(stop_fd_);
  close(port_fd_);
  std::filesystem::remove_all(base_dir_);
}

void World::start_server(const sockaddr_storage& addr) {
  pool_ = std::make_unique<serve::DiskPool>(serve::DiskPoolConfig{});
  service_ = std::make_unique<serve::NfsService>(*backend, *pool_);
  interposer.inner = service_.get();
  const std::array programs = {rpcrdma::ServedProgram{.binding = &nfsulb::nfs3_binding(), .service = &interposer}};
  auto server =
      rpcrdma::Server::listen(*device_, addr, programs, rpcrdma::testing::with_protocol(rpcrdma::ServerConfig{}));
  ASSERT_TRUE(server.ok()) << server.error().message;
  server_ = std::move(server.value());
  service_->attach(*server_);
  interposer.server = server_.get();
}

void World::end_server() {
  pool_.reset();
  server_.reset();
  service_.reset();
}

void World::run_server() {
  while (true) {
    const auto now = std::chrono::steady_clock::now();
    const std::size_t moved = pool_->drain() + server_->process(now);
    if (moved == 0 && pool_->prepare_wait()) {
      apps::wait_readable({server_->fd(), pool_->event_fd(), stop_fd_}, server_->next_timeout());
      pool_->end_wait();
    }
    // Also where there is always something to move: a busy client would put off the end of the server for ever.
    pollfd polled{stop_fd_, POLLIN, 0};
    if (poll(&polled, 1, 0) != 1) continue;
    if (!restarts_.exchange(false)) break;
    eventfd_t num = 0;
    eventfd_read(stop_fd_, &num);
    end_server();
    interposer.is_ending = false;
    start_server(loopback(rdma_port_));
  }
  end_server();
}

void World::restart_server() {
  interposer.is_ending = true;
  restarts_ = true;
  eventfd_write(stop_fd_, 1);
}

void World::stop_server() {
  eventfd_write(stop_fd_, 1);
}

apps::GlobalOptions World::client_options() {
  apps::GlobalOptions options;
  options.protocols = {rpcrdma::testing::protocol_under_test()};
  options.wrap_device = verbs::testing::tapped;
  return options;
}

Ran World::weft(std::vector<std::string> words) {
  Ran ran;
  if (const char* workers = std::getenv("WEFT_WORKERS")) {
    words.push_back("--progress");
    words.push_back(std::string("threads=") + workers);
  }
  CLI::App root("test", "weft");
  root.require_subcommand(1);
  apps::CommandContext context;
  context.options = client_options();
  context.options.reconnect_for = reconnect_for;
  context.options.tell_after = tell_after;
  apps::add_global_options(root, context.options);
  apps::register_nfs_command(root, context);
  std::reverse(words.begin(), words.end());
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  try {
    root.parse(words);
    ran.status = context.exit_status;
  } catch (const CLI::ParseError& error) {
    ran.status = apps::kExitUsage;
  }
  ran.out = ::testing::internal::GetCapturedStdout();
  ran.err = ::testing::internal::GetCapturedStderr();
  return ran;
}

std::string World::url(const std::string& path) const {
  return "nfs+rdma://127.0.0.1:" + std::to_string(rdma_port_) + "/" + path +
         "?mountport=" + std::to_string(mount_port_);
}

nfs3::NfsFh3 World::handle_of(const std::string& path) {
  const nfs3::NfsFh3 root = tree_->handle_of(tree_->root().key);
  return path.empty() ? root : backend->lookup({{root, path}}).object;
}

StdoutTo::StdoutTo(int fd) : kept_(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)) {
  std::fflush(stdout);
  dup2(fd, STDOUT_FILENO);
}

StdoutTo::~StdoutTo() {
  // Octets in stdio's buffer go there as well.
  std::fflush(stdout);
  std::clearerr(stdout);
  dup2(kept_, STDOUT_FILENO);
  close(kept_);
}

void write_file(const std::string& path, const Octets& octets) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(octets.data()), static_cast<std::streamsize>(octets.size()));
  EXPECT_TRUE(out.good()) << path;
}

Octets read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(path, error));
}

std::vector<std::string> names_in(const std::string& dir) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

Octets noise(std::size_t len, std::uint32_t seed) {
  std::mt19937 random(seed);
  Octets octets(len);
  for (std::uint8_t& octet : octets) octet = static_cast<std::uint8_t>(random());
  return octets;
}

std::string text_of(const Octets& octets) {
  return {octets.begin(), octets.end()};
}

}  // namespace weft::nfs::testing
