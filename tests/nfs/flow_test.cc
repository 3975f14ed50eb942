#include "apps/nfs/flow.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <vector>

#include "apps/common/global_options.h"
#include "apps/nfs/runner.h"
#include "apps/nfs/tree_work.h"
#include "tests/nfs/world.h"
#include "verbs-shim/api/testing/post_tap.h"
#include "verbs-shim/soft/device.h"

namespace weft::nfs::testing {
namespace {

// FlowTest has a session with the World's server.
class FlowTest : public World {
 protected:
  FlowTest() {
    auto device = verbs::open_soft_device({});
    EXPECT_TRUE(device.ok());
    device_ = verbs::testing::tapped(std::move(device.value()));
    open_session({});
  }
  void open_session(const Endurance& endurance) {
    auto url_parsed = parse_url(url(""));
    EXPECT_TRUE(url_parsed.ok());
    auto session = Session::open(*url_parsed, options_, *device_, stop_, endurance);
    EXPECT_TRUE(session.ok()) << session.status();
    session_ = std::move(*session);
  }

  apps::GlobalOptions options_ = client_options();
  apps::StopSignals stop_;
  std::unique_ptr<verbs::Device> device_;
  std::unique_ptr<Session> session_;
};

struct Workers {
  int running = 0;
  int most = 0;
  int done = 0;
};

Task<void> work(Flow& flow, Slots& slots, std::size_t num, Workers& workers) {
  const SlotsHeld held = co_await slots.acquire(num);
  workers.most = std::max(workers.most, ++workers.running);
  co_await flow.until(std::chrono::steady_clock::now());
  --workers.running;
  ++workers.done;
}

Task<void> spawn_workers(Flow& flow, Slots& slots, std::size_t num, int times, Workers& workers) {
  for (int i = 0; i < times; ++i) flow.spawn(work(flow, slots, num, workers));
  co_return;
}

TEST_F(FlowTest, AsManyTasksGoOnAsThereArePlaces) {
  for (const std::size_t num : {1u, 2u, 6u, 100u}) {
    Flow flow(*session_);
    Slots slots(flow, 6);
    Workers workers;
    flow.run(spawn_workers(flow, slots, num, 40, workers));
    EXPECT_EQ(workers.done, 40);
    EXPECT_EQ(workers.most, static_cast<int>(std::max<std::size_t>(1, 6 / num)));
    EXPECT_EQ(slots.num_used(), 0u);
  }
}

TEST_F(FlowTest, EntriesThatWaitForTheWalkAreBoundedTogether) {
  const NfsOptions nfs_options;
  Runner runner(options_, nfs_options);
  Flow flow(*session_);
  TreeWork work(runner, flow, {.listed_octets = 1000});
  TreeWork::Listed first(work);
  EXPECT_TRUE(first.set(600));
  {
    TreeWork::Listed below(work);
    EXPECT_TRUE(below.set(400));
    EXPECT_FALSE(below.set(401));
  }
  EXPECT_TRUE(first.set(1000));
}

Task<void> get_attributes(Flow& flow, nfs3::NfsFh3 fh, WhenStopped when, std::vector<absl::Status>& statuses) {
  nfs3::FhArgs args{fh};
  nfs3::GetattrRes res;
  statuses.push_back(co_await flow.call(nfs3::Proc::kGetattr, args, res, when));
}

TEST_F(FlowTest, AfterAStopOnlyCleaningUpGoesOn) {
  std::atomic<int> num_calls = 0;
  interposer.hook = [&](rpcrdma::ServedCall& call) {
    if (is(call, nfs3::Proc::kGetattr)) ++num_calls;
    return false;
  };
  Flow flow(*session_);
  std::vector<absl::Status> statuses;
  flow.run(get_attributes(flow, session_->root(), WhenStopped::kRefuse, statuses));
  flow.stop(absl::CancelledError("enough"));
  flow.stop(absl::UnknownError("a later reason"));
  flow.run(get_attributes(flow, session_->root(), WhenStopped::kRefuse, statuses));
  flow.run(get_attributes(flow, session_->root(), WhenStopped::kSend, statuses));
  ASSERT_EQ(statuses.size(), 3u);
  EXPECT_TRUE(statuses[0].ok());
  EXPECT_EQ(statuses[1].message(), "enough");
  EXPECT_TRUE(statuses[2].ok()) << statuses[2];
  EXPECT_EQ(num_calls, 2);
}

// A command takes as long as --timeout says, however many Calls it would still make.
TEST_F(FlowTest, AfterACallWithoutAnAnswerOnlyCleaningUpGoesOn) {
  Endurance endurance;
  endurance.timeout = std::chrono::milliseconds(500);
  endurance.reconnect_for = std::chrono::hours(1);
  open_session(endurance);
  std::atomic<int> num_calls = 0;
  interposer.hook = [&](rpcrdma::ServedCall& call) { return is(call, nfs3::Proc::kGetattr) && num_calls++ == 0; };
  Flow flow(*session_);
  std::vector<absl::Status> statuses;
  flow.run(get_attributes(flow, session_->root(), WhenStopped::kRefuse, statuses));
  flow.run(get_attributes(flow, session_->root(), WhenStopped::kRefuse, statuses));
  EXPECT_EQ(num_calls, 1);
  flow.run(get_attributes(flow, session_->root(), WhenStopped::kSend, statuses));
  ASSERT_EQ(statuses.size(), 3u);
  EXPECT_NE(statuses[0].message().find("no Reply within 500 ms"), std::string::npos) << statuses[0];
  EXPECT_EQ(statuses[1], statuses[0]);
  EXPECT_EQ(num_calls, 2);
}

TEST_F(FlowTest, EveryTaskEndsWhenTheConnectionDoes) {
  interposer.hook = [this, num = 0](rpcrdma::ServedCall& call) mutable {
    // Until its first Reply a client may make one Call at a time.
    if (!is(call, nfs3::Proc::kGetattr) || ++num == 1) return false;
    if (num == 6) stop_server();
    return true;  // none is answered
  };
  Flow flow(*session_);
  std::vector<absl::Status> statuses;
  flow.run(get_attributes(flow, session_->root(), WhenStopped::kRefuse, statuses));
  ASSERT_TRUE(statuses.at(0).ok()) << statuses[0];
  statuses.clear();
  for (int i = 0; i < 9; ++i) flow.spawn(get_attributes(flow, session_->root(), WhenStopped::kRefuse, statuses));
  flow.run(get_attributes(flow, session_->root(), WhenStopped::kSend, statuses));
  EXPECT_EQ(statuses.size(), 10u);
  for (const absl::Status& status : statuses) {
    EXPECT_NE(status.message().find("the connection"), std::string::npos) << status;
  }
  EXPECT_TRUE(flow.is_stopped());
}

Task<void> io_jobs(Flow& flow, std::vector<std::int64_t>& results) {
  for (int i = 0; i < 50; ++i) results.push_back(co_await flow.io([i]() -> std::int64_t { return i; }));
}

TEST_F(FlowTest, EachTaskGetsTheResultsOfItsOwnJobs) {
  Flow flow(*session_);
  std::vector<std::int64_t> first, second;
  flow.spawn(io_jobs(flow, first));
  flow.run(io_jobs(flow, second));
  ASSERT_EQ(first.size(), 50u);
  EXPECT_EQ(first, second);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(first[static_cast<std::size_t>(i)], i);
}

Task<void> count(TreeWork& work, nfs3::NfsFh3 fh, Url url) {
  co_await work.count_remote(fh, url);
}

TEST_F(FlowTest, ATreeIsCountedBesideTheWork) {
  for (const std::string& dir : {export_dir(), local_dir()}) {
    std::filesystem::create_directories(dir + "/a/b");
    write_file(dir + "/one", noise(10));
    write_file(dir + "/a/two", noise(20));
    write_file(dir + "/a/b/three", noise(30));
  }
  apps::GlobalOptions globals = client_options();
  NfsOptions nfs_options;
  Runner runner(globals, nfs_options);
  for (const bool remote : {true, false}) {
    Flow flow(*session_);
    TreeWork work(runner, flow, {});
    EXPECT_TRUE(work.run(remote ? count(work, session_->root(), session_->url()) : work.count_local(local_dir())).ok());
    EXPECT_TRUE(work.counts().found_all);
    EXPECT_EQ(work.counts().found_files, 3u);
    EXPECT_EQ(work.counts().found_octets, 60u);
  }
}

}  // namespace
}  // namespace weft::nfs::testing
