#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include "apps/onc_tcp/stream.h"
#include "rpcrdma/client.h"
#include "rpcrdma/server.h"

// Calls of the server to its client, on the client's own two connections: the backchannel of NFSv4.1. Over TCP the
// Calls are records among the others. Over RDMA they use the reverse direction (RFC 8167). XIDs, credentials and
// verifiers pass through unchanged. The gateway does not look at the programs, since none of their data is placed
// directly.
namespace weft::gateway {

// The most Calls of one server under way at once; they are short.
inline constexpr std::uint32_t kCallbackCredits = 8;

struct OwnedRecord;

// CallsToRdma passes the Calls of one TCP server on to its client over RDMA. One thread uses it.
class CallsToRdma {
 public:
  struct Owner {
    // true: too many Calls wait for a client that answers Calls, or too many answers wait for the server. false: few
    // enough wait again.
    std::function<void(bool)> pause;
    std::function<void(const std::string& text)> warn;  // writes a line to the log, within its budget
  };
  // The server outlives it.
  CallsToRdma(rpcrdma::Server& server, rpcrdma::ConnectionId client, Owner owner);
  ~CallsToRdma();

  // Takes a record that is a Call. Its Reply, or a refusal, is sent on the stream.
  void pass(onc_tcp::Stream& stream, onc_tcp::Record record);
  // Drops the Calls under way without an answer. From then on no Buffer of a record is held.
  void end();

 private:
  struct Call;
  struct State;
  static void answer(const std::shared_ptr<State>& state, onc_tcp::Stream& stream, std::unique_ptr<OwnedRecord> record);
  static void on_reply(const std::shared_ptr<State>& state, std::list<Call>::iterator at, const rpcrdma::Reply& reply);

  std::shared_ptr<State> state_;
};

// CallsToTcp passes the Calls of one RDMA server on to its client over TCP. One thread uses it.
class CallsToTcp : private rpcrdma::Service {
 public:
  // For ClientConfig::reverse_programs: every program.
  std::span<const rpcrdma::ServedProgram> programs() const { return programs_; }
  // Both are set before the first Call and outlive the last. The client may already be gone when this object ends.
  void attach(rpcrdma::Client& client, onc_tcp::Stream& stream) {
    client_ = &client;
    stream_ = &stream;
  }

  // Takes a record that may be a Reply. False if it does not answer a Call that was passed on.
  bool pass_reply(const onc_tcp::Record& record);
  std::uint64_t num_calls() const { return num_calls_; }

 private:
  void on_call(rpcrdma::ServedCall served) override;
  void on_end(const rpcrdma::ConnectionEnd&) override { calls_.clear(); }

  const rpcrdma::Binding binding_;  // of no program: nothing is reduced
  const std::array<rpcrdma::ServedProgram, 1> programs_ = {{{.binding = &binding_, .service = this, .is_any = true}}};
  rpcrdma::Client* client_ = nullptr;
  onc_tcp::Stream* stream_ = nullptr;
  std::unordered_multimap<std::uint32_t, rpcrdma::ServedCallId> calls_;  // by XID
  std::uint64_t num_calls_ = 0;
};

}  // namespace weft::gateway
