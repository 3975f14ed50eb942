#include "apps/gateway/to_tcp.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "apps/common/address.h"
#include "apps/common/command.h"
#include "apps/common/output.h"
#include "apps/gateway/backchannel.h"
#include "apps/gateway/record_parts.h"
#include "apps/gateway/reserved_port.h"
#include "apps/gateway/room_limits.h"
#include "base/peer_group.h"
#include "fmt/format.h"
#include "nfsulb/bindings.h"
#include "nfsulb/programs.h"
#include "rpcrdma/rpc_message.h"
#include "rpcrdma/xdr/xdr.h"
#include "spdlog/spdlog.h"

// g++ 12 reports a mismatched operator delete of Asio's coroutine frames when it inlines only one half of the pair.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

namespace weft::gateway {

namespace asio = boost::asio;
using onc_tcp::Record;
using rpcrdma::ServedCall;
using rpcrdma::ServedReply;

// Call is a Call from its arrival to its Reply.
struct ToTcp::Call {
  ServedCall served;
  bool sent = false;  // completely: the views in `served` are not used any more
};

struct ToTcp::CallRecord : onc_tcp::OutRecord {
  explicit CallRecord(std::shared_ptr<Call> the_call) : call(std::move(the_call)) {
    const ServedCall& served = call->served;
    parts.push_back(served.header);
    std::size_t done = 0;
    for (const rpcrdma::ServedItem& item : served.items) {
      parts.push_back(served.args.subspan(done, item.position - done));
      add_item(parts, item.data.octets());
      done = item.position;
    }
    parts.push_back(served.args.subspan(done));
  }
  ~CallRecord() override {
    call->sent = true;
    // Calls of lost clients would otherwise hold Receives that other clients need.
    call->served.items.clear();
    call->served.message = {};
    call->served.receives.reset();
  }
  std::shared_ptr<Call> call;
};

struct ToTcp::Client {
  rpcrdma::ConnectionId id;
  std::string peer;
  std::optional<asio::ip::tcp::socket> connecting;
  TimePoint connect_until{};                // with `connecting`
  std::shared_ptr<onc_tcp::Stream> stream;  // set once connected
  std::unique_ptr<CallsToRdma> callbacks;
  std::vector<std::unique_ptr<onc_tcp::OutRecord>> waiting;
  std::multimap<std::uint32_t, std::shared_ptr<Call>> calls;  // by XID, in order of arrival
  bool ended = false;
  std::optional<TimePoint> give_up_at;  // set for a lost client
  Ledger::Client lost;                  // for a lost client: its entry among them, and its place
  Lease place;
};

namespace {

// NFSv4 needs no kept Replies: minor versions from 1 on have sessions for this. A Program does not contain the minor
// version. Kept Replies would only cost memory, since no client asks for them.
bool keeps_replies(const nfsulb::BoundProgram& program) {
  if (program.binding.program == nfsulb::kNfs4CallbackProgram) return false;
  return program.binding.program != nfsulb::kNfsProgram || program.binding.version != nfsulb::kNfsV4;
}

// The group of an "address:port", whose addresses share their limits.
std::string group_of(const std::string& peer) {
  const auto addr = apps::resolve_address(peer);
  return addr.ok() ? peer_group(*addr) : peer;
}

// READDIR has the same number in both versions (RFC 1094 section 2.2.17, RFC 1813 section 3.3.16).
constexpr std::uint32_t kReaddir = 16, kReaddirplus = 17;

// The server may read its disk for long before it answers a READDIR or READDIRPLUS.
auto results_of(const nfsulb::BoundProgram& program) -> decltype(rpcrdma::ServedProgram::results_of) {
  if (program.binding.program != nfsulb::kNfsProgram) return nullptr;
  switch (program.binding.version) {
    case nfsulb::kNfsV2:
      return [](std::uint32_t procedure) { return rpcrdma::ResultsOf{.is_slow = procedure == kReaddir}; };
    case nfsulb::kNfsV3:
      return [](std::uint32_t procedure) {
        return rpcrdma::ResultsOf{.is_slow = procedure == kReaddir || procedure == kReaddirplus};
      };
    default: return nullptr;
  }
}

// There is one server, and every client trusts it. So the gateway believes the lengths in its marks, and Replies need
// no copy. The server may have to send before it reads on.
onc_tcp::StreamConfig to_server(onc_tcp::StreamConfig config) {
  config.record.first = config.record.max_record;
  config.receives_always = true;
  return config;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ToTcp>> ToTcp::start(const ToTcpConfig& config, verbs::Device& device,
                                                    asio::io_context& io) {
  std::unique_ptr<ToTcp> out(new ToTcp(config, device, io));
  for (const nfsulb::BoundProgram& program : nfsulb::bound_programs()) {
    out->programs_.push_back({.binding = &program.binding,
                              .service = out.get(),
                              .takes_gss = true,
                              .keeps_replies = keeps_replies(program),
                              .results_of = results_of(program)});
  }
  rpcrdma::ServerConfig rpc = config.rpc;
  rpc.reverse_credits = kCallbackCredits;
  auto server = rpcrdma::Server::listen(device, config.listen, out->programs_, rpc);
  if (!server.ok()) return apps::to_status(server.error(), "choose another --listen");
  out->server_ = std::move(*server);
  if (config.has_metrics) out->server_->observe(out->calls_);
  out->config_.stream = to_server(config.stream);
  out->replies_ = &out->server_->make_buffers(config.stream.record.max_record, config.max_replies);
  const auto room = room_limits(config.max_replies, config.max_replies_per_address, config.rpc.max_connections, 1);
  if (!room.ok()) return room.status();
  out->room_ = std::make_unique<onc_tcp::Room>(*room);
  return out;
}

ToTcp::~ToTcp() {
  for (const auto& [id, client] : clients_) end(*client);
  for (const auto& client : lost_) end(*client);
}

// Releases all memory of the pools, even if other code still holds the client.
void ToTcp::end(Client& client) {
  client.ended = true;
  client.place.end();
  client.lost = {};
  client.callbacks->end();
  boost::system::error_code ignored;
  if (client.connecting) client.connecting->close(ignored);
  if (client.stream) client.stream->close("");
  client.waiting.clear();
  client.calls.clear();
}

std::string ToTcp::summary() const {
  return fmt::format("{}, {}; items placed directly: {}", apps::counted(num_clients_, "client"),
                     apps::counted(num_calls_, "call"), num_placed_);
}

metrics::Snapshot ToTcp::snapshot() const {
  metrics::Snapshot out;
  metrics::take(out, calls_, server_->statistics());
  if (config_.refused_by_device) out.server.not_admitted += *config_.refused_by_device;
  out.max_connections = config_.rpc.max_connections;
  out.terminates = device_.query().terminates;
  const rpcrdma::ServerMemory memory = server_->memory();
  out.memory = {{.kind = "calls", .held = memory.calls, .limit = memory.max_calls},
                {.kind = "replies", .held = room_->used(), .limit = config_.max_replies},
                {.kind = "sends", .held = memory.sends},
                {.kind = "receives", .held = memory.receives}};
  return out;
}

std::size_t ToTcp::process(TimePoint now) {
  now_ = now;
  while (!lost_.empty() && *lost_.front()->give_up_at <= now) {
    const std::shared_ptr<Client> oldest = lost_.front();
    give_up(*oldest, "the server did not answer Calls of a client that was lost");
  }
  drop_late_connects();
  if (now >= next_check_) check();
  if (room_->serve_line()) look_for_room();
  return server_->process(now);
}

void ToTcp::check() {
  next_check_ = now_ + kCheckEvery;
  std::vector<std::shared_ptr<onc_tcp::Stream>> streams;  // a copy: a Stream's end changes the lists
  for (const auto& [id, client] : clients_) streams.push_back(client->stream);
  for (const auto& client : lost_) streams.push_back(client->stream);
  for (const auto& stream : streams) {
    if (stream) stream->check(now_);
  }
}

void ToTcp::look_for_room() {
  for (const auto& [id, client] : clients_) {
    if (client->stream) client->stream->look_for_room();
  }
  for (const auto& client : lost_) {
    if (client->stream) client->stream->look_for_room();
  }
}

// Without this, the kernel would try for two minutes.
void ToTcp::drop_late_connects() {
  while (!connecting_.empty() && connecting_.front()->connect_until <= now_) {
    const std::shared_ptr<Client> client = std::move(connecting_.front());
    connecting_.pop_front();
    give_up(*client,
            fmt::format("cannot connect to {}:{}: no answer within {} ms", config_.server.address().to_string(),
                        config_.server.port(), config_.connect_timeout.count()));
  }
}

std::optional<TimePoint> ToTcp::next_timeout() const {
  std::optional<TimePoint> next = server_->next_timeout();
  if (!lost_.empty()) next = earliest(next, lost_.front()->give_up_at);
  if (!connecting_.empty()) next = earliest(next, connecting_.front()->connect_until);
  if (!clients_.empty()) next = earliest(next, next_check_);
  if (room_->is_line_due()) return TimePoint{};
  return next;
}

void ToTcp::on_call(ServedCall served) {
  ++num_calls_;
  num_placed_ += served.items.size();
  const std::shared_ptr<Client> client = client_of(served);
  if (client->ended) return;
  const auto call = std::make_shared<Call>(Call{std::move(served)});
  client->calls.emplace(call->served.xid, call);
  auto record = std::make_unique<CallRecord>(call);
  if (client->stream) {
    client->stream->send(std::move(record));
  } else {
    client->waiting.push_back(std::move(record));
  }
}

std::shared_ptr<ToTcp::Client> ToTcp::client_of(const ServedCall& served) {
  std::shared_ptr<Client>& client = clients_[served.connection.value];
  if (!client) {
    client = std::make_shared<Client>();
    client->id = served.connection;
    client->peer = served.peer;
    Client* const at = client.get();
    client->callbacks = std::make_unique<CallsToRdma>(
        *server_, client->id,
        CallsToRdma::Owner{.pause = [at](bool hold) { hold ? at->stream->pause() : at->stream->resume(); },
                           .warn = [this, at](const std::string& what) { warn(*at, what); }});
    ++num_clients_;
    client->connect_until = now_ + config_.connect_timeout;
    connecting_.push_back(client);
    asio::co_spawn(
        io_, [this, client]() -> asio::awaitable<void> { co_await connect(client); }, asio::detached);
  }
  return client;
}

asio::awaitable<void> ToTcp::connect(std::shared_ptr<Client> client) {
  asio::ip::tcp::socket& socket = client->connecting.emplace(io_);
  boost::system::error_code error;
  socket.open(config_.server.protocol(), error);
  if (!error) {
    if (config_.reserved_port) bind_reserved_port(socket);
    co_await socket.async_connect(config_.server, asio::redirect_error(asio::use_awaitable, error));
  }
  if (client->ended) co_return;
  connecting_.remove(client);
  if (error) {
    give_up(*client, fmt::format("cannot connect to {}:{}: {}", config_.server.address().to_string(),
                                 config_.server.port(), error.message()));
    co_return;
  }
  client->stream = std::make_shared<onc_tcp::Stream>(std::move(socket), *replies_, config_.stream,
                                                     room_->enter(group_of(client->peer)));
  client->connecting.reset();
  // At its end the Stream drops these functions, and `client` with them.
  client->stream->start({.on_record = [this, client](Record record) { on_record(*client, std::move(record)); },
                         .on_end =
                             [this, client](const std::string& why) {
                               give_up(*client, why.empty() ? "the server ended its connection" : why);
                             }});
  for (auto& record : std::exchange(client->waiting, {})) client->stream->send(std::move(record));
}

void ToTcp::forget(const Client& client) {
  for (auto* list : {&lost_, &connecting_}) {
    std::erase_if(*list, [&client](const auto& listed) { return listed.get() == &client; });
  }
}

void ToTcp::warn(const Client& client, const std::string& what) {
  if (log_.take(now_)) spdlog::warn("gateway: {}: {}", client.peer, what);
}

// Neither end stays without the other. The disconnected client connects and asks again.
void ToTcp::give_up(Client& client, const std::string& why) {
  if (client.ended) return;
  warn(client, why);
  for (const auto& [xid, call] : client.calls) server_->abandon(call->served.id);
  end(client);
  forget(client);
  server_->disconnect(client.id);
}

void ToTcp::on_end(const rpcrdma::ConnectionEnd& over) {
  const auto at = clients_.find(over.connection.value);
  if (at == clients_.end()) return;
  const std::shared_ptr<Client> client = std::move(at->second);
  clients_.erase(at);
  if (client->ended) return;
  client->callbacks->end();
  std::erase_if(client->calls, [this](const auto& call) { return !server_->keeps_reply_of(call.second->served.id); });
  if (!client->calls.empty() && log_.take(now_)) {
    spdlog::info("gateway: {}: {} answers are awaited although its connection is over: {}", client->peer,
                 client->calls.size(), over.why);
  }
  keep_lost(client);
}

void ToTcp::keep_lost(const std::shared_ptr<Client>& client) {
  client->give_up_at = now_ + config_.answer_wait;
  lost_.push_back(client);
  if (client->calls.empty()) return end_if_done(*client);
  const std::string address = group_of(client->peer);
  const auto find = [this](std::uint64_t tag) {
    return *std::ranges::find_if(lost_, [tag](const auto& one) { return one->id.value == tag; });
  };
  const auto judge = [&](std::uint64_t tag) {
    return Ledger::Standing{.tenure = Ledger::Tenure::kResting, .since = *find(tag)->give_up_at};
  };
  while (lost_places_.asks(address, 1) != Ledger::Verdict::kFits) {
    const auto leaves = lost_places_.gives_way(address, 1, judge);
    give_up(leaves ? *find(*leaves) : *client,
            "the server did not answer Calls of a client that was lost, and other clients were lost since");
    if (!leaves) return;
  }
  client->lost = lost_places_.enter(address, client->id.value);
  client->place = client->lost.take(1);
}

void ToTcp::end_if_done(Client& client) {
  if (!client.give_up_at || !client.calls.empty()) return;
  end(client);
  forget(client);
}

void ToTcp::on_record(Client& client, Record record) {
  if (!pass_reply(client, std::move(record)))
    give_up(client, "the server sent a record that is no Reply to a Call of ours");
}

bool ToTcp::pass_reply(Client& client, Record record) {
  rpcrdma::xdr::XdrReader in(record.octets());
  rpcrdma::ReplyHeader rpc;
  if (is_call(record.octets())) {
    client.callbacks->pass(*client.stream, std::move(record));
    return true;
  }
  if (!rpcrdma::parse_reply(in, rpc)) return false;
  const auto at = client.calls.find(rpc.xid);
  if (at == client.calls.end()) return true;  // given up, or a duplicate
  if (!at->second->sent) return false;
  const std::shared_ptr<Call> call = std::move(at->second);
  client.calls.erase(at);

  const ConstBytes octets = record.octets(), results = in.rest(), header = octets.first(octets.size() - results.size());
  ServedReply reply;
  reply.header.assign(header.begin(), header.end());
  found_.clear();
  const ServedCall& served = call->served;
  if (!served.result_capacities.empty() && !rpc.denied && rpc.accept == rpcrdma::AcceptStat::kSuccess) {
    const auto* binding = nfsulb::find_binding(served.program, served.version);
    if (binding->walk_results(served.procedure, results, {}, found_) == rpcrdma::Walked::kGarbage) found_.clear();
  }
  std::size_t done = 0, removed = 0;
  const auto add = [&](std::size_t end) {
    if (end > done) reply.more_results.push_back({results.subspan(done, end - done), record.memory.lkey()});
    done = end;
  };
  for (std::size_t i = 0; i < found_.size(); ++i) {
    if (!found_[i] || found_[i]->len == 0 || !call->served.result_item_capacity(i)) continue;
    const rpcrdma::EligibleItem& item = *found_[i];
    add(item.offset);
    reply.items.push_back({.position = item.offset - removed,
                           .operation = i,
                           .data = {results.subspan(item.offset, item.len), record.memory.lkey()}});
    done += rpcrdma::xdr::round_up(item.len);
    removed += rpcrdma::xdr::round_up(item.len);
    ++num_placed_;
  }
  add(results.size());
  reply.buffers.push_back(std::move(record.memory));
  server_->reply(call->served.id, std::move(reply));
  end_if_done(client);
  return true;
}

}  // namespace weft::gateway
