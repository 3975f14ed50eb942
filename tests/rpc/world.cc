#include "tests/rpc/world.h"

#include <cstdlib>
#include <string>

#include "verbs-shim/api/testing/post_tap.h"

namespace weft::rpcrdma::testing {

ServedReply MemoryFile::serve(ServedCall& call) {
  ServedReply reply;
  xdr::XdrReader in(call.args);
  if (call.procedure == kWrite) {
    if (!call.items.empty()) {
      data = copy_of(call.items[0].data.octets());
    } else {
      ConstBytes octets;
      EXPECT_TRUE(in.skip(write_position() - 4) && in.opaque(octets));
      data.assign(octets.begin(), octets.end());
    }
  } else if (call.procedure == kRead) {
    std::uint32_t offset = 0;
    std::uint32_t len = 0;
    EXPECT_TRUE(in.u32(offset) && in.u32(len));
    Buffer buffer = server->buffers().take(len);
    if (!buffer) {
      ++num_without_buffer;
      reply.accept = ServedReply::Accept::kSystemErr;
      return reply;
    }
    std::copy_n(data.begin() + offset, len, buffer.octets().begin());
    xdr::XdrWriter(reply.results).u32(len);
    reply.add_item(std::move(buffer), len);
  } else if (call.procedure == kReaddir) {
    reply.results = pattern(listing);
  } else if (call.procedure != kNull) {
    reply.accept = ServedReply::Accept::kProcUnavail;
  }
  return reply;
}

void MemoryFile::on_call(ServedCall call) {
  ++num_calls;
  if (hold) {
    held.push_back(std::move(call));
    return;
  }
  ServedReply reply = serve(call);
  server->reply(call.id, std::move(reply));
}

void MemoryFile::answer_held() {
  std::vector<ServedCall> calls = std::exchange(held, {});
  for (ServedCall& call : calls) {
    ServedReply reply = serve(call);
    server->reply(call.id, std::move(reply));
  }
}

Octets read_args(std::uint32_t offset, std::uint32_t len) {
  Octets args;
  xdr::XdrWriter out(args);
  out.u32(offset);
  out.u32(len);
  return args;
}

CallSpec World::read_call(ConstBytes args, MutBytes room) {
  CallSpec spec = call_of(test_binding(), kRead, args);
  spec.result_items = room;
  spec.max_results = 4;
  return spec;
}

CallSpec World::write_call(ConstBytes args, ConstBytes data) {
  CallSpec spec = call_of(test_binding(), kWrite, args);
  spec.items = ArgumentItem{args.size(), data};
  return spec;
}

World::World() : programs{{&test_binding(), &file}, {&plain_binding(), &file}} {
  verbs::SoftConfig config;
  if (const char* workers = std::getenv("WEFT_WORKERS"))
    config.num_workers = static_cast<std::uint32_t>(std::atoi(workers));
  server_device = verbs::testing::tapped(std::move(*verbs::open_soft_device(config)));
  client_device = verbs::testing::tapped(std::move(*verbs::open_soft_device(config)));
}

World::~World() {
  file.held.clear();
  server.reset();
}

const Profile& World::profile() {
  return profile_of(protocol_under_test());
}

void World::listen(ServerConfig config) {
  auto made = Server::listen(*server_device, loopback(0), programs, with_protocol(std::move(config)));
  ASSERT_TRUE(made.ok()) << made.error().message;
  server = std::move(*made);
  file.server = server.get();
}

std::unique_ptr<Client> World::connect(ClientConfig config) {
  auto made = Client::connect(*client_device, server->local_addr(), with_protocol(std::move(config)));
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(*made);
}

void World::run_until(const std::function<bool()>& done) {
  const auto give_up = Clock::now() + std::chrono::seconds(10);
  while (!done()) {
    const auto now = Clock::now();
    ASSERT_LT(now, give_up) << "nothing more happens";
    std::size_t moved = server ? server->process(now) : 0;
    for (Client* client : clients) moved += client->process(now);
    if (also) also();
    if (moved != 0 || done()) continue;
    // Nothing to do: wait for the descriptors and time-outs.
    auto until = now + std::chrono::milliseconds(100);
    if (server && server->next_timeout()) until = std::min(until, *server->next_timeout());
    for (Client* client : clients) {
      if (client->next_timeout()) until = std::min(until, *client->next_timeout());
    }
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
    pollfd fds[2] = {{server_device->fd(), POLLIN, 0}, {client_device->fd(), POLLIN, 0}};
    ::poll(fds, 2, static_cast<int>(std::max<long>(wait, 0)));
    // A device without an object of ours is driven here.
    if (clients.empty()) client_device->process(Clock::now());
  }
}

void World::expect_null_works(Client& client) {
  bool done = false;
  ASSERT_TRUE(client
                  .call(null_call(),
                        [&](const Reply& reply) {
                          EXPECT_EQ(reply.status, CallStatus::kSuccess) << reply.text;
                          done = true;
                        })
                  .ok());
  run_until([&] { return done; });
}

}  // namespace weft::rpcrdma::testing
