#include "apps/serve/nfs_service.h"

#include <arpa/inet.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <latch>

#include "apps/nfs3/codec.h"
#include "nfsulb/nfs3.h"
#include "rpcrdma/xdr/xdr.h"
#include "tests/serve/fixture.h"
#include "verbs-shim/soft/device.h"

// The memory that a Call gets from the server's pool, and the outcome where there is less. The Calls are made here and
// have no connection. The tests look at the pool while a task holds its Buffer.
namespace weft::serve {
namespace {

using nfs3::Proc;
using rpcrdma::Buffer;
using rpcrdma::ServedCall;
using testing::ExportTest;
using testing::write_local;

constexpr std::size_t kMaxRead = 64 << 10;

class NfsServiceTest : public ExportTest {
 protected:
  NfsServiceTest() {
    config.rtmax = kMaxRead;
    // Every READ goes to a worker.
    calls.lies_in_memory = [](int) { return false; };
    calls.pread_nowait = [](int, void*, std::size_t, off_t) -> ssize_t { return errno = EAGAIN, -1; };
    calls.pread = [this](int fd, void* into, std::size_t len, off_t offset) {
      if (on_pread) on_pread();
      return ::pread(fd, into, len, offset);
    };
    start();
    write_local(dir + "/file", std::string(100, 'x'));
    EXPECT_EQ(::symlink("file", (dir + "/link").c_str()), 0);
    device = std::move(verbs::open_soft_device({}).value());
    sockaddr_storage any{};
    any.ss_family = AF_INET;
    reinterpret_cast<sockaddr_in&>(any).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    service = std::make_unique<NfsService>(*backend, pool);
    const std::array programs = {rpcrdma::ServedProgram{.binding = &nfsulb::nfs3_binding(), .service = service.get()}};
    server = std::move(rpcrdma::Server::listen(*device, any, programs, {}).value());
    service->attach(*server);
  }
  // Octets of the pool that a Call has while a worker does it.
  template <typename Args>
  std::size_t taken_by(Proc procedure, const Args& args, std::size_t room = 1 << 20,
                       std::optional<std::size_t> capacity = {}) {
    std::vector<std::uint8_t> octets;
    rpcrdma::xdr::XdrWriter writer(octets);
    nfs3::emit(writer, args);
    ServedCall call;
    call.procedure = static_cast<std::uint32_t>(procedure);
    call.args = octets;
    call.result_room = room;
    call.max_results = 1 << 20;
    if (capacity) call.result_capacities = {capacity};
    const std::size_t before = server->buffers().in_use();
    service->on_call(std::move(call));
    const std::size_t taken = server->buffers().in_use() - before;
    finish();
    EXPECT_EQ(server->buffers().in_use(), before) << "it is given back";
    return taken;
  }
  std::size_t read_takes(std::uint32_t count, std::size_t room = 1 << 20, std::optional<std::size_t> capacity = {}) {
    return taken_by(Proc::kRead, nfs3::ReadArgs{handle("file"), 0, count}, room, capacity);
  }
  // Tasks that the lane ever had.
  std::uint64_t num_tasks(DiskLane lane) {
    const DiskPool::LaneState state = pool.state_of(lane);
    return state.num_queued + state.num_running + state.num_done;
  }
  // The lane of the Call's task; nothing if the loop answers the Call.
  std::optional<DiskLane> lane_of(Proc procedure, ConstBytes args) {
    const std::uint64_t normal = num_tasks(DiskLane::kNormal), sync = num_tasks(DiskLane::kSync);
    ServedCall call;
    call.procedure = static_cast<std::uint32_t>(procedure);
    call.args = args;
    service->on_call(std::move(call));
    std::optional<DiskLane> lane;
    if (num_tasks(DiskLane::kNormal) != normal) lane = DiskLane::kNormal;
    if (num_tasks(DiskLane::kSync) != sync) lane = DiskLane::kSync;
    finish();
    return lane;
  }
  // All tasks that there are.
  void finish() {
    while (pool.num_pending() > 0) pool.drain();
  }
  // Leaves so much of the pool.
  void leave(std::size_t len) {
    hog.clear();
    rpcrdma::BufferPool& buffers = server->buffers();
    const std::size_t most = 1 << 20;
    while (buffers.max_total() - buffers.in_use() > len) {
      hog.push_back(buffers.take(std::min(most, buffers.max_total() - buffers.in_use() - len)));
      ASSERT_TRUE(hog.back());
    }
  }

  std::function<void()> on_pread;  // on the worker
  std::unique_ptr<verbs::Device> device;
  DiskPool pool{DiskPoolConfig{}};
  std::unique_ptr<NfsService> service;
  std::unique_ptr<rpcrdma::Server> server;
  std::vector<Buffer> hog;
};

// A worker may open and name files for a client whose connection is gone.
TEST_F(NfsServiceTest, AClientEndsWithTheLastOfItsTasks) {
  write_local(dir + "/other", "x");
  const auto read_for = [this](std::uint32_t connection, const std::string& name) {
    std::vector<std::uint8_t> octets;
    rpcrdma::xdr::XdrWriter writer(octets);
    nfs3::emit(writer, nfs3::ReadArgs{handle(name), 0, 100});
    ServedCall call;
    call.connection = {connection};
    call.peer_group = "192.0.2.1";
    call.procedure = static_cast<std::uint32_t>(Proc::kRead);
    call.args = octets;
    call.result_room = call.max_results = 1 << 20;
    service->on_call(std::move(call));
  };
  read_for(1, "file");
  finish();
  service->on_end({{1}, "lost"});
  EXPECT_EQ(backend->num_file_holders(), 1u) << "the address";
  std::latch is_reading(1), may_end(1);
  on_pread = [&] { is_reading.count_down(), may_end.wait(); };
  read_for(2, "other");
  is_reading.wait();
  service->on_end({{2}, "lost"});
  EXPECT_EQ(backend->num_file_holders(), 2u);
  may_end.count_down();
  finish();
  EXPECT_EQ(backend->num_file_holders(), 1u);
}

TEST_F(NfsServiceTest, AReadTakesWhatItAsksForAndNoMoreThanItMayHave) {
  EXPECT_EQ(read_takes(5000), 5000u);
  EXPECT_EQ(read_takes(kMaxRead + 1), kMaxRead) << "rtmax";
  EXPECT_EQ(read_takes(0xffffffff), kMaxRead);
  EXPECT_EQ(read_takes(5000, 1 << 20, 3000), 3000u) << "the client's Write chunk";
  EXPECT_EQ(read_takes(5000, 1 << 20, 9000), 5000u);
  EXPECT_EQ(read_takes(0), 0u);
  EXPECT_EQ(taken_by(Proc::kReadlink, nfs3::FhArgs{handle("link")}), nfs3::kMaxPath);
  EXPECT_EQ(taken_by(Proc::kGetattr, nfs3::FhArgs{handle("file")}), 0u);
  EXPECT_EQ(taken_by(Proc::kRead, nfs3::FhArgs{handle("file")}), 0u) << "garbage";
}

TEST_F(NfsServiceTest, WhereMemoryIsShortAReadHasWhatWasSetAsideForIt) {
  leave(4096);
  EXPECT_EQ(read_takes(5000, 4096), 4096u);
  EXPECT_EQ(read_takes(5000, 4097), 0u) << "not even that";
  EXPECT_EQ(read_takes(100, 4096), 100u);
  leave(5000);
  EXPECT_EQ(read_takes(5000, 4096), 4096u) << "the rest is set aside for others";
}

// Nothing is given to a worker then, which would have nowhere to read to.
TEST_F(NfsServiceTest, WhereThereIsNoneNoWorkerHearsOfTheCall) {
  leave(0);
  for (const Proc procedure : {Proc::kRead, Proc::kReadlink}) {
    std::vector<std::uint8_t> octets;
    rpcrdma::xdr::XdrWriter writer(octets);
    if (procedure == Proc::kRead) {
      nfs3::emit(writer, nfs3::ReadArgs{handle("file"), 0, 100});
    } else {
      nfs3::emit(writer, nfs3::FhArgs{handle("link")});
    }
    ServedCall call;
    call.procedure = static_cast<std::uint32_t>(procedure);
    call.args = octets;
    call.result_room = 4096;
    call.max_results = 1 << 20;
    service->on_call(std::move(call));
    EXPECT_EQ(pool.num_pending(), 0u);
  }
  // Procedures that need no Buffer are done all the same.
  EXPECT_EQ(taken_by(Proc::kGetattr, nfs3::FhArgs{handle("file")}), 0u);
}

// Each task that waits for a device to write is one of the sync lane, and no other task is.
TEST_F(NfsServiceTest, EachProcedureHasItsLane) {
  using Lane = std::optional<DiskLane>;
  constexpr Lane kLoop, kNormal = DiskLane::kNormal, kSync = DiskLane::kSync;
  const std::array<Lane, nfs3::kNumProcs> lanes = {
      kLoop,    // NULL
      kNormal,  // GETATTR
      kSync,    // SETATTR
      kNormal,  // LOOKUP
      kNormal,  // ACCESS
      kNormal,  // READLINK
      kNormal,  // READ
      kNormal,  // WRITE, of garbage
      kSync,    // CREATE
      kSync,    // MKDIR
      kSync,    // SYMLINK
      kSync,    // MKNOD
      kSync,    // REMOVE
      kSync,    // RMDIR
      kSync,    // RENAME
      kSync,    // LINK
      kNormal,  // READDIR
      kNormal,  // READDIRPLUS
      kNormal,  // FSSTAT
      kNormal,  // FSINFO
      kNormal,  // PATHCONF
      kSync,    // COMMIT
  };
  for (std::uint32_t procedure = 0; procedure < nfs3::kNumProcs; ++procedure)
    EXPECT_EQ(lane_of(static_cast<Proc>(procedure), {}), lanes[procedure]) << procedure;
  const auto lane_of_write = [&](nfs3::StableHow stable) {
    const std::uint8_t data[] = {1, 2, 3, 4};
    const nfs3::WriteArgs args{handle("file"), 0, sizeof data, stable, {.len = sizeof data, .data = data}};
    std::vector<std::uint8_t> octets;
    rpcrdma::xdr::XdrWriter writer(octets);
    nfs3::emit(writer, args);
    return lane_of(Proc::kWrite, octets);
  };
  EXPECT_EQ(lane_of_write(nfs3::StableHow::kUnstable), kNormal);
  EXPECT_EQ(lane_of_write(nfs3::StableHow::kDataSync), kSync);
  EXPECT_EQ(lane_of_write(nfs3::StableHow::kFileSync), kSync);
}

TEST_F(NfsServiceTest, CallsAreCountedByProcedure) {
  read_takes(100);
  read_takes(100);
  ServedCall unknown;
  unknown.procedure = 22;
  service->on_call(std::move(unknown));
  EXPECT_EQ(service->num_calls()[static_cast<std::size_t>(Proc::kRead)], 2u);
  EXPECT_EQ(service->num_calls()[nfs3::kNumProcs], 1u);
  EXPECT_EQ(service->num_calls()[0], 0u);
}

}  // namespace
}  // namespace weft::serve
