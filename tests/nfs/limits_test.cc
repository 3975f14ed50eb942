// `weft nfs` keeps to the sizes that a server names, and to the bounds that its user sets.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>

#include "tests/nfs/world.h"

namespace weft::nfs::testing {
namespace {

using nfs3::Proc;
using rpcrdma::ServedCall;

class Limits : public World {};

// LongestIo changes the server's FSINFO results, and records the longest READ and WRITE of the client.
struct LongestIo {
  LongestIo(Interposer& interposer, serve::Backend& backend, std::function<void(nfs3::FsinfoRes&)> change) {
    interposer.hook = [this, &interposer, &backend, change = std::move(change)](ServedCall& call) {
      if (is(call, Proc::kFsinfo)) {
        nfs3::FsinfoRes res = backend.fsinfo(args_of<nfs3::FhArgs>(call));
        change(res);
        interposer.answer(call, res);
        return true;
      }
      if (is(call, Proc::kRead)) read = std::max(read, args_of<nfs3::ReadArgs>(call).count);
      if (is(call, Proc::kWrite)) {
        ConstBytes data;
        write = std::max(write, write_args_of(call, data).count);
      }
      return false;
    };
  }
  std::uint32_t read = 0;
  std::uint32_t write = 0;
};

// RFC 1813 section 3.3.19: rtmax is for READ, wtmax for WRITE, and they need not be the same.
TEST_F(Limits, ReadsAndWritesAreAsLongAsFsinfoSays) {
  constexpr std::uint32_t kRtmax = 20480, kWtmax = 12288;
  LongestIo longest(interposer, *backend, [](nfs3::FsinfoRes& res) {
    res.rtmax = kRtmax;
    res.wtmax = kWtmax;
  });
  const Octets octets = noise(100000);
  write_file(local("file"), octets);
  const Ran up = weft({"nfs", "put", local("file"), url("file")});
  EXPECT_EQ(up.status, 0) << up.err;
  EXPECT_EQ(longest.write, kWtmax);
  const Ran down = weft({"nfs", "get", url("file"), local("back")});
  EXPECT_EQ(down.status, 0) << down.err;
  EXPECT_EQ(longest.read, kRtmax);
  EXPECT_EQ(read_file(local("back")), octets);
}

// READs and WRITEs of a few octets each, or of none, would never end.
TEST_F(Limits, SizesThatAreFarTooSmallCountAs1024) {
  LongestIo longest(interposer, *backend, [](nfs3::FsinfoRes& res) {
    res.rtmax = 0;
    res.wtmax = 1;
  });
  const Octets octets = noise(5000);
  write_file(local("file"), octets);
  const Ran up = weft({"nfs", "put", local("file"), url("file")});
  EXPECT_EQ(up.status, 0) << up.err;
  EXPECT_EQ(longest.write, 1024u);
  const Ran down = weft({"nfs", "get", url("file"), local("back")});
  EXPECT_EQ(down.status, 0) << down.err;
  EXPECT_EQ(longest.read, 1024u);
  EXPECT_EQ(read_file(local("back")), octets);
}

TEST_F(Limits, TheTextOfALinkIsTakenUpToTheLongestPath) {
  std::filesystem::create_symlink("text", exported("link"));
  const std::string text(nfs3::kMaxPath, 'x');
  int num_calls = 0;
  interposer.hook = [&](ServedCall& call) {
    if (!is(call, Proc::kReadlink)) return false;
    ++num_calls;
    rpcrdma::Buffer buffer = interposer.server->buffers().take(text.size());
    std::ranges::copy(text, buffer.octets().begin());
    nfs3::ReadlinkRes res;
    res.data.len = static_cast<std::uint32_t>(text.size());
    interposer.answer_with_item(call, res, std::move(buffer));
    return true;
  };
  const Ran ran = weft({"nfs", "stat", url("link")});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find(text), std::string::npos) << ran.out;
  EXPECT_EQ(num_calls, 1) << "asked again with more room";
}

// --io-size bounds the client's memory, however large the sizes are that a server offers.
TEST_F(Limits, NoMoreIsAskedForThanTheUserWants) {
  constexpr std::uint32_t kIoSize = 16384;
  LongestIo longest(interposer, *backend,
                    [](nfs3::FsinfoRes& res) { res.rtmax = res.rtpref = res.wtmax = res.wtpref = UINT32_MAX; });
  const Octets octets = noise(100000);
  write_file(local("file"), octets);
  const std::string io_size = std::to_string(kIoSize);
  const Ran up = weft({"nfs", "put", "--io-size", io_size, local("file"), url("file")});
  EXPECT_EQ(up.status, 0) << up.err;
  EXPECT_EQ(longest.write, kIoSize);
  const Ran down = weft({"nfs", "get", "--io-size", io_size, url("file"), local("back")});
  EXPECT_EQ(down.status, 0) << down.err;
  EXPECT_EQ(longest.read, kIoSize);
  EXPECT_EQ(read_file(local("back")), octets);
}

// A server whose memory is taken answers NFS3ERR_JUKEBOX. The client asks again.
TEST_F(Limits, AServerWithoutMemoryIsAskedAgain) {
  const Octets octets = noise(100000);
  write_file(exported("file"), octets);
  std::vector<rpcrdma::Buffer> hog;
  int num_reads = 0;
  std::size_t largest = 0;
  interposer.hook = [&](ServedCall& call) {
    if (!is(call, Proc::kRead)) return false;
    rpcrdma::BufferPool& buffers = interposer.server->buffers();
    if (++num_reads > 1) {
      hog.clear();
    } else {
      for (std::size_t left; (left = buffers.max_total() - buffers.in_use()) > 0;) {
        hog.push_back(buffers.take(std::min<std::size_t>(left, 1 << 20)));
        largest = std::max(largest, hog.back().octets().size());
      }
    }
    return false;
  };
  const Ran down = weft({"nfs", "get", "-j", "1", url("file"), local("back")});
  EXPECT_EQ(down.status, 0) << down.err;
  EXPECT_EQ(read_file(local("back")), octets);
  EXPECT_EQ(largest, std::size_t{1} << 20);
  EXPECT_EQ(num_reads, 2) << "the one that got nothing, and the same again";
}

// The user hears of the wait, once.
TEST_F(Limits, AServerThatIsNotReadyForLongIsNamed) {
  write_file(exported("file"), noise(1000));
  tell_after = std::chrono::milliseconds(0);
  std::vector<rpcrdma::Buffer> hog;
  int num_reads = 0;
  interposer.hook = [&](ServedCall& call) {
    if (!is(call, Proc::kRead)) return false;
    rpcrdma::BufferPool& buffers = interposer.server->buffers();
    if (++num_reads > 2) {
      hog.clear();
    } else {
      for (std::size_t left; (left = buffers.max_total() - buffers.in_use()) > 0;) {
        hog.push_back(buffers.take(std::min<std::size_t>(left, 1 << 20)));
      }
    }
    return false;
  };
  const Ran down = weft({"nfs", "get", "-j", "1", url("file"), local("back")});
  EXPECT_EQ(down.status, 0) << down.err;
  EXPECT_EQ(num_reads, 3);
  const std::size_t told = down.err.find("is not ready (NFS3ERR_JUKEBOX)");
  EXPECT_NE(down.err.find("asking again for 60 s more"), std::string::npos) << down.err;
  ASSERT_NE(told, std::string::npos) << down.err;
  EXPECT_EQ(down.err.find("is not ready", told + 1), std::string::npos) << down.err;
}

}  // namespace
}  // namespace weft::nfs::testing
