#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/gateway/backchannel.h"
#include "apps/gateway/to_rdma.h"
#include "rpcrdma/rpc_message.h"

namespace weft::gateway {

// Session is one TCP client of a ToRdma, and its RDMA connection.
class Session {
 public:
  Session(const ToRdmaConfig& config, rpcrdma::BufferPool& buffers, std::string peer);
  ~Session();

  // Takes over a connection; false, with a line logged, where there is no way to the server.
  bool start(boost::asio::ip::tcp::socket socket, verbs::Device& device);
  std::size_t process(verbs::TimePoint now);
  std::optional<verbs::TimePoint> next_timeout() const { return client_->next_timeout(); }
  // To be destroyed, but not from a callback.
  bool is_over() const { return over_; }
  std::uint64_t num_calls() const { return num_calls_; }
  std::uint64_t num_placed() const { return num_placed_; }

 private:
  struct Call;
  struct ReplyRecord;
  using Calls = std::list<Call>;

  void end(const std::string& why);
  void on_record(onc_tcp::Record record);
  // False where there is no Buffer for the result: then the Call is whole, and is to be passed on later.
  bool pass_call(Call& call, const rpcrdma::CallHeaderView& header, const rpcrdma::Binding& binding,
                 rpcrdma::ConstBytes args);
  // Does not read the client while too many of its Calls are under way, or one waits for a Buffer.
  void hold_back();
  void take_item_out(Call& call, const rpcrdma::Binding& binding, rpcrdma::ConstBytes args);
  bool prepare_results(Call& call, const rpcrdma::Binding& binding, rpcrdma::ConstBytes args);
  void on_reply(Calls::iterator at, const rpcrdma::Reply& reply);
  void send_reply(Call& call, const rpcrdma::Reply& reply);
  void answer(const rpcrdma::ReplyHeader& header);

  const ToRdmaConfig& config_;
  rpcrdma::BufferPool& buffers_;
  std::string peer_;
  std::shared_ptr<onc_tcp::Stream> stream_;
  Calls calls_;  // their memory outlives the client's use of it
  CallsToTcp callbacks_;
  std::unique_ptr<rpcrdma::Client> client_;
  bool over_ = false;
  bool held_back_ = false;
  std::optional<onc_tcp::Record> blocked_;  // a Call without a Buffer for its result
  std::vector<rpcrdma::EligibleItem> arguments_;
  std::vector<std::optional<rpcrdma::EligibleItem>> results_;
  rpcrdma::ReplyBound bound_;
  std::uint64_t num_calls_ = 0, num_placed_ = 0;
};

}  // namespace weft::gateway
