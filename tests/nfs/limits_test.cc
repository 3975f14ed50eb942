// `weft nfs` keeps to the sizes that a server names, and to the bounds that its user sets.
#include <algorithm>
#include <functional>
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

}  // namespace
}  // namespace weft::nfs::testing
