#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "apps/common/global_options.h"
#include "apps/nfs3/codec.h"
#include "apps/serve/backend/backend.h"
#include "apps/serve/disk_pool.h"
#include "apps/serve/mount/mount_server.h"
#include "apps/serve/nfs_service.h"
#include "rpcrdma/server.h"

// The client's commands, command line included, against a real server on 127.0.0.1 that a test can make misbehave.
namespace weft::nfs::testing {

using Octets = std::vector<std::uint8_t>;

// Interposer sees every NFS Call before the server does.
class Interposer : public rpcrdma::Service {
 public:
  void on_call(rpcrdma::ServedCall call) override;

  // answer replies in the server's place.
  template <typename Res>
  void answer(const rpcrdma::ServedCall& call, const Res& res) {
    rpcrdma::ServedReply reply;
    nfs3::XdrWriter writer(reply.results);
    emit(writer, res);
    server->reply(call.id, std::move(reply));
  }

  // The same for a READ or READLINK, with the first res.data.len bytes of `data`.
  template <typename Res>
  void answer_with_item(const rpcrdma::ServedCall& call, const Res& res, rpcrdma::Buffer data) {
    rpcrdma::ServedReply reply;
    nfs3::XdrWriter writer(reply.results);
    emit(writer, res, nfs3::ItemForm::kReduced);
    reply.add_item(std::move(data), res.data.len);
    server->reply(call.id, std::move(reply));
  }

  // Runs on the server's thread; true: the Call was answered, or never will be.
  std::function<bool(rpcrdma::ServedCall& call)> hook;
  // The server is about to end: nothing is answered any more, and no hook sees it.
  std::atomic<bool> is_ending = false;
  serve::NfsService* inner = nullptr;
  rpcrdma::Server* server = nullptr;
};

// Args of a Call, for hooks.
template <typename Args>
Args args_of(const rpcrdma::ServedCall& call) {
  nfs3::XdrReader reader(call.args);
  Args args;
  EXPECT_TRUE(parse(reader, args));
  return args;
}
nfs3::WriteArgs write_args_of(const rpcrdma::ServedCall& call, ConstBytes& data);

inline bool is(const rpcrdma::ServedCall& call, nfs3::Proc proc) {
  return call.procedure == static_cast<std::uint32_t>(proc);
}

struct Ran {
  int status = -1;
  std::string out;
  std::string err;
};

// World has an export in a temporary directory, served read-write, and a directory for the client's files. With
// WEFT_WORKERS=N in the environment both ends' devices have N workers. Both are tapped
// (verbs-shim/api/testing/post_tap.h).
class World : public ::testing::Test {
 protected:
  World();
  ~World() override;

  // The global options of a client, for tests that run no command: the protocol of this run, and a tapped device.
  static apps::GlobalOptions client_options();
  // weft runs `weft WORDS...` in this process.
  Ran weft(std::vector<std::string> words);
  // The server answers nothing any more, ends soon and starts again at the same address, with the same export. Any
  // thread.
  void restart_server();
  // How long `weft` tries to connect again.
  std::chrono::milliseconds reconnect_for{0};
  // After how long a silence of the server it says so.
  std::chrono::milliseconds tell_after{5000};
  // A URL of the export for the `weft nfs` commands. `path` is already percent-encoded.
  std::string url(const std::string& path) const;
  // Ends the server soon; connections break. Any thread.
  void stop_server();

  std::string exported(const std::string& name) const { return export_dir_ + "/" + name; }
  const std::string& export_dir() const { return export_dir_; }
  const std::string& local_dir() const { return local_dir_; }
  // The server's handle of an exported file; path "" is the root.
  nfs3::NfsFh3 handle_of(const std::string& path);
  nfs3::Fattr3 attributes_of(const nfs3::NfsFh3& fh) { return backend->getattr({fh}).obj_attributes; }
  std::string local(const std::string& name) const { return local_dir_ + "/" + name; }

  Interposer interposer;
  std::unique_ptr<serve::Backend> backend;

 private:
  void start_server(const sockaddr_storage& addr);
  void end_server();
  void run_server();

  std::string base_dir_;
  std::string export_dir_;
  std::string local_dir_;
  std::unique_ptr<verbs::Device> device_;
  std::unique_ptr<serve::Tree> tree_;
  std::unique_ptr<serve::MountService> mount_service_;
  std::unique_ptr<serve::NfsService> service_;
  std::unique_ptr<rpcrdma::Server> server_;
  std::unique_ptr<serve::DiskPool> pool_;
  std::unique_ptr<serve::MountServer> mount_server_;
  std::uint16_t rdma_port_ = 0;
  std::uint16_t mount_port_ = 0;
  int stop_fd_ = -1;
  int port_fd_ = -1;
  std::atomic<bool> restarts_ = false;
  std::thread thread_;
};

// StdoutTo makes `fd` standard output as long as it lives.
class StdoutTo {
 public:
  explicit StdoutTo(int fd);
  ~StdoutTo();
  StdoutTo(const StdoutTo&) = delete;
  StdoutTo& operator=(const StdoutTo&) = delete;

 private:
  int kept_;
};

void write_file(const std::string& path, const Octets& octets);
// Empty also where the file does not exist.
Octets read_file(const std::string& path);
bool exists(const std::string& path);
// Names in a directory, sorted.
std::vector<std::string> names_in(const std::string& dir);
// Octets that repeat nowhere near themselves.
Octets noise(std::size_t len, std::uint32_t seed = 1);
std::string text_of(const Octets& octets);

}  // namespace weft::nfs::testing
