#include "apps/serve/nfs_service.h"

#include <algorithm>

#include "apps/serve/call_work.h"

namespace weft::serve {
namespace {

using nfs3::Proc;
using rpcrdma::Buffer;
using rpcrdma::ServedCall;
using rpcrdma::ServedReply;

// NfsTask carries one Call to a disk worker and its Reply back. The Buffers in both must be destroyed on the loop.
class NfsTask : public DiskTask {
 public:
  NfsTask(Backend& backend, rpcrdma::Server& server, ListingCosts& listing_costs,
          std::shared_ptr<const DiskClient> client, ServedCall call, const BulkArgs& args, Buffer buffer,
          std::chrono::microseconds expected_cost)
      : backend_(backend),
        server_(server),
        client_(std::move(client)),
        call_(std::move(call)),
        args_(args),
        buffer_(std::move(buffer)),
        cost_(expected_cost) {
    if (const auto dir = listed_directory(call_)) listing_cost_ = listing_costs.of(*dir);
  }

  void run() override {
    const ActingFor acting(*client_);
    reply_ = serve_nfs_call(backend_, call_, args_, buffer_);
  }
  void on_run(std::chrono::microseconds took) override {
    if (listing_cost_) ListingCosts::note(*listing_cost_, took);
  }
  void finish() override { server_.reply(call_.id, std::move(reply_)); }
  // The Call did not run. If it comes again, it is a new one.
  void cancel() override { server_.abandon(call_.id); }
  std::chrono::microseconds expected_cost() const override {
    return listing_cost_ ? std::max(cost_, std::chrono::microseconds(listing_cost_->load())) : cost_;
  }
  std::size_t num_octets() const override {
    std::size_t num = call_.args.size() + reply_.results.size();
    for (const auto& item : call_.items) num += item.data.octets().size();
    for (const auto& item : reply_.items) num += item.data.octets.size();
    return num;
  }

  const ServedCall& call() const { return call_; }

 private:
  Backend& backend_;
  rpcrdma::Server& server_;
  std::shared_ptr<const DiskClient> client_;
  ServedCall call_;
  BulkArgs args_;
  Buffer buffer_;
  std::chrono::microseconds cost_;
  std::shared_ptr<ListingCosts::Cost> listing_cost_;  // null: it lists no directory
  ServedReply reply_;
};

constexpr std::size_t kReadResults = 104;  // octets of READ3res with attributes, without its data

}  // namespace

bool NfsService::take_buffer(const ServedCall& call, const BulkArgs& args, Buffer& buffer) {
  std::size_t len = 0;
  switch (static_cast<Proc>(call.procedure)) {
    case Proc::kRead: {
      const auto* read = std::get_if<nfs3::ReadArgs>(&args);
      if (read == nullptr) return true;  // garbage; the worker will say so
      len = std::min(read->count, backend_.config().rtmax);
      // READ may return less than was asked for, so a Write chunk or a Reply chunk that is too small is no error.
      len = std::min(len, call.max_item(kReadResults));
      break;
    }
    case Proc::kReadlink: len = nfs3::kMaxPath; break;
    default: return true;
  }
  if (len == 0) return true;
  buffer = server_->buffers().take(len);
  // If memory is short, the Call uses the memory that was set aside for it.
  if (!buffer) buffer = server_->buffers().take(std::min(len, call.result_room));
  return static_cast<bool>(buffer);
}

std::shared_ptr<const DiskClient> NfsService::client_of(const ServedCall& call) {
  std::shared_ptr<const DiskClient>& client = clients_[call.connection.value];
  if (!client) {
    client = {new DiskClient{call.connection.value, call.peer_group}, [backend = &backend_](const DiskClient* gone) {
                backend->on_client_end(*gone);
                delete gone;
              }};
  }
  return client;
}

void NfsService::on_call(ServedCall call) {
  ++num_calls_[std::min(call.procedure, nfs3::kNumProcs)];
  const std::shared_ptr<const DiskClient> client = client_of(call);
  const ActingFor acting(*client);
  Buffer buffer;
  if (call.procedure == static_cast<std::uint32_t>(Proc::kNull) || call.procedure >= nfs3::kNumProcs)
    return server_->reply(call.id, serve_nfs_call(backend_, call, {}, buffer));
  const BulkArgs args = parse_bulk_args(call);
  if (!take_buffer(call, args, buffer)) return server_->reply(call.id, busy_reply(call.procedure));
  if (std::optional<ServedReply> reply = serve_nfs_call_now(backend_, args, buffer))
    return server_->reply(call.id, std::move(*reply));
  const rpcrdma::ServedCallId id = call.id;
  const std::uint32_t procedure = call.procedure;
  const CallWork work = work_of(call, args);
  std::unique_ptr<DiskTask> task = std::make_unique<NfsTask>(
      backend_, *server_, listing_costs_, client, std::move(call), args, std::move(buffer), work.expected_cost);
  if (!pool_.submit(task, work.lane, *client)) server_->reply(id, busy_reply(procedure));
}

}  // namespace weft::serve
