#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <semaphore>
#include <thread>

#include "tests/serve/serve_world.h"

// The work of the disk workers in the whole server: the Calls that wait for it, and the Calls that do not.
namespace weft::serve {
namespace {

using nfs3::NfsFh3;
using nfs3::Nfsstat3;
using nfs3::Proc;
using nfs3::StableHow;
using rpcrdma::CallStatus;
using testing::Gate;
using testing::pattern;
using testing::ServeWorld;
using testing::write_local;

using Octets = std::vector<std::uint8_t>;

class DiskWorkTest : public ServeWorld {};

// A disk that does not come back from fsync(2) holds the Calls that wait for it, and no others.
TEST_F(DiskWorkTest, AHeldFsyncHoldsNobodyElse) {
  Gate gate;
  config.calls.fsync = [&](int fd) { return gate.pass(), ::fsync(fd); };
  write_local(dir + "/file", "content");
  start();
  const NfsFh3 root = mount("/");
  auto slow = connect(), other = connect();
  const NfsFh3 file = lookup(*slow, root, "file");
  gate.shut();
  struct One {
    Octets args;
    Answer answer;
  };
  // More of them than there are disk workers, fewer than the credits that a connection begins with.
  std::vector<One> commits(6);
  for (One& one : commits) {
    rpcrdma::xdr::XdrWriter writer(one.args);
    nfs3::emit(writer, nfs3::CommitArgs{file, 0, 0});
    start_call(*slow, Proc::kCommit, one.args, one.answer);
  }
  run_until([&] { return gate.num_held() > 0; });
  for (int i = 0; i < 50; ++i) {
    Octets into(100);
    EXPECT_EQ(read(*other, file, 0, into).status, Nfsstat3::kOk);
    EXPECT_EQ(call<nfs3::GetattrRes>(*other, Proc::kGetattr, nfs3::FhArgs{file}).status, Nfsstat3::kOk);
    // Not even the same client's other calls wait.
    EXPECT_EQ(call<nfs3::GetattrRes>(*slow, Proc::kGetattr, nfs3::FhArgs{root}).status, Nfsstat3::kOk);
  }
  for (const One& one : commits) EXPECT_FALSE(one.answer.done);
  gate.open();
  run_until(
      [&] { return std::all_of(commits.begin(), commits.end(), [](const One& one) { return one.answer.done; }); });
  for (const One& one : commits) EXPECT_EQ(one.answer.status, CallStatus::kSuccess);
}

// A READDIRPLUS that waits for a disk worker holds up no change of another client: changes have workers of their own.
TEST_F(DiskWorkTest, ChangesDoNotWaitForAListingOfAnotherClient) {
  Gate gate;
  config.pool.num_workers = 1;
  config.calls.lies_in_memory = [](int) { return false; };
  config.calls.pread = [&](int fd, void* data, std::size_t len, off_t offset) {
    return gate.pass(), ::pread(fd, data, len, offset);
  };
  write_local(dir + "/file", std::string(std::size_t{512} << 10, 'x'));
  start();
  const NfsFh3 root = mount("/");
  auto listing = connect(), other = connect();
  const NfsFh3 file = lookup(*listing, root, "file");
  gate.shut();
  Octets read_args, list_args, into(std::size_t{512} << 10);
  rpcrdma::xdr::XdrWriter read_writer(read_args), list_writer(list_args);
  nfs3::emit(read_writer, nfs3::ReadArgs{file, 0, static_cast<std::uint32_t>(into.size())});
  nfs3::emit(list_writer, nfs3::ReaddirplusArgs{root, 0, {}, 8192, 65536});
  Answer read_answer, list_answer;
  start_call(*listing, Proc::kRead, read_args, read_answer, {}, into);
  run_until([&] { return gate.num_held() == 1; });
  start_call(*listing, Proc::kReaddirplus, list_args, list_answer);
  run_until([&] { return app->num_tasks() == 2; });
  EXPECT_EQ(call<nfs3::CommitRes>(*other, Proc::kCommit, nfs3::CommitArgs{file, 0, 0}).status, Nfsstat3::kOk);
  EXPECT_EQ(call<nfs3::NewObjectRes>(*other, Proc::kCreate,
                                     nfs3::CreateArgs{{root, "new"}, nfs3::Createmode3::kGuarded, {}, {}})
                .status,
            Nfsstat3::kOk);
  nfs3::SetattrArgs chmod{file, {}, {}};
  chmod.new_attributes.mode = 0600;
  EXPECT_EQ(call<nfs3::WccRes>(*other, Proc::kSetattr, chmod).status, Nfsstat3::kOk);
  EXPECT_EQ(write(*other, file, 0, Octets{'!'}, StableHow::kFileSync).status, Nfsstat3::kOk);
  EXPECT_FALSE(read_answer.done || list_answer.done);
  gate.open();
  run_until([&] { return read_answer.done && list_answer.done; });
  EXPECT_EQ(list_answer.status, CallStatus::kSuccess);
}

// A client that connects anew again and again holds no more than one that stays: what waits goes with its connection.
TEST_F(DiskWorkTest, CallsThatWaitForADiskWorkerGoWithTheirConnection) {
  constexpr std::uint32_t kXid = 0x5eed0100;
  Gate gate;
  const auto pass = [&](int fd) {
    gate.pass();
    return ::fsync(fd);
  };
  config.calls.fsync = config.calls.fdatasync = pass;
  config.pool.num_sync_workers = 1;
  config.backend.sync_metadata = true;
  start();
  const NfsFh3 root = mount("/");
  gate.shut();
  nfs3::CreateArgs args;
  const auto create = [&](Peer& peer, std::uint32_t number, Octets& octets, Answer& answer) {
    args.where = {root, "file-" + std::to_string(number)};
    rpcrdma::xdr::XdrWriter writer(octets);
    nfs3::emit(writer, args);
    start_call(peer, Proc::kCreate, octets, answer, {}, {}, kXid + number);
  };
  for (std::uint32_t number = 0; number < 10; ++number) {
    auto lost = connect();
    Octets octets;
    Answer answer;
    create(*lost, number, octets, answer);
    // The worker has the first one.
    run_until([&] { return gate.num_held() == 1 && app->num_tasks() == (number == 0 ? 1u : 2u); });
    std::erase(peers, lost.get());
    lost.reset();
    run_until([&] { return app->num_tasks() == 1; });
  }
  gate.open();
  run_until([&] { return app->num_tasks() == 0; });
  EXPECT_FALSE(std::filesystem::exists(dir + "/file-9"));
  // The same Call comes again, and runs now.
  auto again = connect();
  Octets octets;
  Answer answer;
  create(*again, 9, octets, answer);
  run_until([&] { return answer.done; });
  EXPECT_EQ(answer.status, CallStatus::kSuccess);
  EXPECT_TRUE(std::filesystem::exists(dir + "/file-9"));
}

// One client has every disk worker that its address may have, and more to do. The next one that is free is the other
// client's.
TEST_F(DiskWorkTest, AClientThatHasAllDiskWorkersDelaysAnotherByOneTask) {
  std::counting_semaphore<> permits(0);
  std::atomic<int> num_reading = 0;
  config.pool.num_workers = 4;
  config.calls.lies_in_memory = [](int) { return false; };
  config.calls.pread = [&](int fd, void* data, std::size_t len, off_t offset) {
    ++num_reading;
    permits.acquire();
    return ::pread(fd, data, len, offset);
  };
  write_local(dir + "/file", std::string(std::size_t{512} << 10, 'x'));
  start();
  const NfsFh3 root = mount("/");
  auto greedy = connect(), other = connect();
  const NfsFh3 file = lookup(*greedy, root, "file");
  struct One {
    Octets args, into = Octets(std::size_t{512} << 10);
    Answer answer;
  };
  // As many as the credits that a connection begins with.
  std::array<One, 8> reads;
  for (One& one : reads) {
    rpcrdma::xdr::XdrWriter writer(one.args);
    nfs3::emit(writer, nfs3::ReadArgs{file, 0, static_cast<std::uint32_t>(one.into.size())});
    start_call(*greedy, Proc::kRead, one.args, one.answer, {}, one.into);
  }
  run_until([&] { return num_reading == 3; });
  for (std::ptrdiff_t ended = 1; ended <= 3; ++ended) {
    Octets args;
    rpcrdma::xdr::XdrWriter writer(args);
    nfs3::emit(writer, nfs3::FhArgs{root});
    Answer answer;
    start_call(*other, Proc::kGetattr, args, answer);
    // The server has it before a worker is free.
    run_until([&] { return app->num_tasks() == static_cast<std::size_t>(8 - ended + 1) + 1 || answer.done; });
    EXPECT_FALSE(answer.done);
    permits.release();
    run_until([&] { return answer.done; });
    EXPECT_EQ(answer.status, CallStatus::kSuccess);
    run_until([&] {
      return std::count_if(reads.begin(), reads.end(), [](const One& one) { return one.answer.done; }) == ended;
    });
  }
  permits.release(8);
  run_until([&] { return std::all_of(reads.begin(), reads.end(), [](const One& one) { return one.answer.done; }); });
}

// A file that loses its place before its writes were synced is synced by a worker, beside the Call that took the place.
TEST_F(DiskWorkTest, ACallThatTakesAPlaceOfAnotherFileWaitsForNoSync) {
  Gate gate;
  std::atomic<int> num_synced = 0;
  config.calls.fsync = [&](int fd) { return gate.pass(), ++num_synced, ::fsync(fd); };
  config.backend.max_open_files = 1;
  for (const char* name : {"one", "two", "three"}) write_local(dir + "/" + name, name);
  start();
  const NfsFh3 root = mount("/");
  auto peer = connect();
  const NfsFh3 one = lookup(*peer, root, "one");
  ASSERT_EQ(write(*peer, one, 0, Octets{'O'}).status, Nfsstat3::kOk);
  gate.shut();
  Octets into(100);
  for (const char* name : {"two", "three"}) {
    EXPECT_EQ(read(*peer, lookup(*peer, root, name), 0, into).status, Nfsstat3::kOk);
  }
  run_until([&] { return gate.num_held() == 1; });
  EXPECT_EQ(num_synced, 0);
  gate.open();
  run_until([&] { return num_synced == 1 && app->num_tasks() == 0; });
}

// The loop itself reads and writes cached octets. That goes on while every disk worker is held.
TEST_F(DiskWorkTest, WhatMemoryHoldsNeedsNoDiskWorker) {
  Gate gate;
  const std::thread::id loop = std::this_thread::get_id();
  config.pool.num_workers = 2;
  config.calls.lies_in_memory = [](int) { return true; };
  config.calls.fsync = [&](int fd) { return gate.pass(), ::fsync(fd); };
  config.calls.pread = [&](int fd, void* data, std::size_t len, off_t offset) {
    if (std::this_thread::get_id() != loop) gate.pass();
    return ::pread(fd, data, len, offset);
  };
  write_local(dir + "/file", "content");
  write_local(dir + "/closed", "closed");
  start();
  const NfsFh3 root = mount("/");
  auto peer = connect();
  const NfsFh3 file = lookup(*peer, root, "file"), closed = lookup(*peer, root, "closed");
  Octets into(100);
  ASSERT_EQ(read(*peer, file, 0, into).status, Nfsstat3::kOk);
  ASSERT_EQ(write(*peer, file, 7, Octets{'!'}).status, Nfsstat3::kOk);
  gate.shut();
  struct One {
    Octets args, into = Octets(100);
    Answer answer;
  };
  std::array<One, 2> held;
  rpcrdma::xdr::XdrWriter commit(held[0].args), read_closed(held[1].args);
  nfs3::emit(commit, nfs3::CommitArgs{file, 0, 0});
  nfs3::emit(read_closed, nfs3::ReadArgs{closed, 0, 100});
  start_call(*peer, Proc::kCommit, held[0].args, held[0].answer);
  start_call(*peer, Proc::kRead, held[1].args, held[1].answer, {}, held[1].into);
  run_until([&] { return gate.num_held() == 2; });
  for (int i = 0; i < 20; ++i) {
    into.assign(100, 0);
    EXPECT_EQ(read(*peer, file, 0, into).status, Nfsstat3::kOk);
    EXPECT_EQ(std::string(into.begin(), into.end()), "content!");
    EXPECT_EQ(write(*peer, file, 0, Octets{'c'}).status, Nfsstat3::kOk);
  }
  EXPECT_FALSE(held[0].answer.done || held[1].answer.done);
  gate.open();
  run_until([&] { return held[0].answer.done && held[1].answer.done; });
  EXPECT_EQ(held[1].answer.status, CallStatus::kSuccess);
}

TEST_F(DiskWorkTest, ALargeReadIsAWorkers) {
  Gate gate;
  const std::thread::id loop = std::this_thread::get_id();
  config.calls.lies_in_memory = [](int) { return true; };
  config.calls.pread = [&](int fd, void* data, std::size_t len, off_t offset) {
    if (std::this_thread::get_id() != loop) gate.pass();
    return ::pread(fd, data, len, offset);
  };
  const Octets data = pattern(std::size_t{512} << 10, 5);
  write_local(dir + "/file", std::string(data.begin(), data.end()));
  start();
  auto peer = connect();
  const NfsFh3 file = lookup(*peer, mount("/"), "file");
  Octets into(1);
  ASSERT_EQ(read(*peer, file, 0, into).status, Nfsstat3::kOk);  // it is open now
  gate.shut();
  Octets args, large(data.size());
  rpcrdma::xdr::XdrWriter writer(args);
  nfs3::emit(writer, nfs3::ReadArgs{file, 0, static_cast<std::uint32_t>(large.size())});
  Answer answer;
  start_call(*peer, Proc::kRead, args, answer, {}, large);
  run_until([&] { return gate.num_held() == 1; });
  EXPECT_FALSE(answer.done);
  gate.open();
  run_until([&] { return answer.done; });
  EXPECT_EQ(large, data);
}

TEST_F(DiskWorkTest, AClientThatLeavesInTheMiddleHarmsNobody) {
  Gate gate;
  config.calls.fsync = [&](int fd) { return gate.pass(), ::fsync(fd); };
  write_local(dir + "/file", "content");
  start();
  const NfsFh3 root = mount("/");
  auto other = connect();
  const NfsFh3 file = lookup(*other, root, "file");
  gate.shut();
  Octets args;
  rpcrdma::xdr::XdrWriter writer(args);
  nfs3::emit(writer, nfs3::CommitArgs{file, 0, 0});
  {
    Answer answer;
    auto leaving = connect();  // goes before `answer`: its end still writes there
    start_call(*leaving, Proc::kCommit, args, answer);
    run_until([&] { return gate.num_held() > 0; });
    std::erase(peers, leaving.get());
  }
  gate.open();
  for (int i = 0; i < 20; ++i) {
    Octets into(100);
    EXPECT_EQ(read(*other, file, 0, into).status, Nfsstat3::kOk);
  }
  stop();  // before the gate goes, which a worker may still be passing
}

// The loop's clock drives it, and the loop does not wait for the disk.
TEST_F(DiskWorkTest, FilesThatLieIdleAreClosed) {
  Gate gate;
  config.calls.fsync = [&](int) { return gate.pass(), 0; };
  start();
  const NfsFh3 root = mount("/");
  auto peer = connect();
  auto made = call<nfs3::NewObjectRes>(*peer, Proc::kCreate,
                                       nfs3::CreateArgs{{root, "file"}, nfs3::Createmode3::kGuarded, {}, {}});
  ASSERT_EQ(made.status, Nfsstat3::kOk);
  ASSERT_EQ(write(*peer, *made.obj, 0, pattern(100, 1)).status, Nfsstat3::kOk);
  peers.clear();
  peer.reset();
  // Descriptors of this process, which is the server, too.
  const auto is_open = [&] {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code ignored;
      if (std::filesystem::read_symlink(entry, ignored) == dir + "/file") return true;
    }
    return false;
  };
  ASSERT_TRUE(is_open());
  gate.shut();
  auto now = std::chrono::steady_clock::now();
  const auto turn_until = [&](const std::function<bool()>& done, bool time_goes_on) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!done() && std::chrono::steady_clock::now() < deadline) {
      if (time_goes_on) now += std::chrono::milliseconds(10);
      app->turn(now);
      std::this_thread::yield();
    }
    return done();
  };
  EXPECT_TRUE(turn_until([&] { return gate.num_held() == 1; }, true));
  EXPECT_TRUE(is_open());
  gate.open();
  EXPECT_TRUE(turn_until([&] { return !is_open(); }, true));
}

}  // namespace
}  // namespace weft::serve
