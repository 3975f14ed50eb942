#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "apps/nfs3/codec.h"
#include "apps/serve/serve_app.h"
#include "nfsulb/nfs3.h"
#include "rpcrdma/client.h"
#include "tests/serve/fixture.h"
#include "verbs-shim/soft/device.h"

namespace weft::serve::testing {

// So many octets that look random. Octets with another `salt` are different.
std::vector<std::uint8_t> pattern(std::size_t len, unsigned salt);

// Gate, once shut, holds each thread that comes to it until it is opened.
class Gate {
 public:
  void shut() { set(true); }
  void open() { set(false); }
  void pass();
  // The number of threads that stand before it.
  int num_held();

 private:
  void set(bool shut);
  std::mutex mutex_;
  std::condition_variable changed_;
  bool shut_ = false;
  int num_held_ = 0;
};

// ServeWorld is a server on the soft RNIC, and clients, in one thread on loopback.
class ServeWorld : public ::testing::Test {
 protected:
  ServeWorld();
  ~ServeWorld() override;

  void start();
  void stop();

  // One client with a device of its own.
  struct Peer {
    std::unique_ptr<verbs::Device> device;
    std::unique_ptr<rpcrdma::Client> client;
  };
  std::unique_ptr<Peer> connect(const rpcrdma::ClientConfig& config = {});

  // Turns server and clients until done; fails after half a minute.
  void run_until(const std::function<bool()>& done);
  // One turn of each. Returns how much they did.
  std::size_t turn_at(TimePoint now);
  virtual void turn() { turn_at(std::chrono::steady_clock::now()); }

  struct Answer {
    rpcrdma::CallStatus status = rpcrdma::CallStatus::kTimeout;
    std::vector<std::uint8_t> results;
    std::optional<std::size_t> item_len;
    bool done = false;
  };
  // start_call: `answer` and the memory of the views stay until it is done. args are XDR; item: WRITE's data, out of
  // args; xid: the client chooses where none is given; max_results: as the procedure has it, if none is given.
  void start_call(Peer& peer, nfs3::Proc procedure, ConstBytes args, Answer& answer,
                  std::optional<rpcrdma::ArgumentItem> item = {}, MutBytes result_item = {},
                  std::optional<std::uint32_t> xid = {}, std::optional<std::size_t> max_results = {});

  template <typename Res, typename Args>
  Res call(Peer& peer, nfs3::Proc procedure, const Args& args, std::optional<std::uint32_t> xid = {}) {
    std::vector<std::uint8_t> octets;
    rpcrdma::xdr::XdrWriter writer(octets);
    nfs3::emit(writer, args);
    Answer answer;
    start_call(peer, procedure, octets, answer, {}, {}, xid);
    run_until([&] { return answer.done; });
    EXPECT_EQ(answer.status, rpcrdma::CallStatus::kSuccess) << rpcrdma::call_status_str(answer.status);
    Res res;
    rpcrdma::xdr::XdrReader reader(answer.results);
    EXPECT_TRUE(nfs3::parse(reader, res));
    return res;
  }

  nfs3::WriteRes write(Peer& peer, const nfs3::NfsFh3& file, std::uint64_t offset, ConstBytes data,
                       nfs3::StableHow stable = nfs3::StableHow::kUnstable);
  // READ of into.size() octets. into is cut to the octets read.
  nfs3::ReadRes read(Peer& peer, const nfs3::NfsFh3& file, std::uint64_t offset, std::vector<std::uint8_t>& into);
  nfs3::NfsFh3 lookup(Peer& peer, const nfs3::NfsFh3& dir, const std::string& name);
  // MNT of a path, through TCP.
  nfs3::NfsFh3 mount(const std::string& path);

  TempDir temp;
  std::string dir;
  ServeConfig config;
  verbs::SoftConfig soft;  // of the server's device
  std::unique_ptr<verbs::Device> device;
  std::unique_ptr<ServeApp> app;
  std::vector<Peer*> peers;
};

}  // namespace weft::serve::testing
