// Listings without an end, and the end of a file in READ's results.
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "apps/nfs/runner.h"
#include "apps/nfs/tree.h"
#include "tests/nfs/world.h"

namespace weft::nfs::testing {
namespace {

using nfs3::Proc;
using rpcrdma::ServedCall;

class Listings : public World {
 protected:
  static constexpr int kPageLen = 50;

  static std::string name_at(std::uint64_t cookie) { return "name-" + std::to_string(1'000'000 - cookie); }

  // A page of a directory of files, cookies counted from 1. The names come in descending order.
  nfs3::ReaddirplusRes page_after(std::uint64_t cookie) {
    nfs3::ReaddirplusRes res;
    for (std::uint64_t i = cookie + 1; i <= cookie + kPageLen; ++i) {
      res.entries.push_back({i, name_at(i), i, attributes_, file_});
    }
    return res;
  }
  // `num` pages; 0: for ever. on_page runs before each.
  void serve_pages(int num, std::function<void(int page)> on_page = nullptr) {
    write_file(exported("file"), {1});
    file_ = handle_of("file");
    attributes_ = attributes_of(file_);
    interposer.hook = [this, num, on_page, done = 0](ServedCall& call) mutable {
      if (!is(call, Proc::kReaddirplus)) return false;
      if (on_page) on_page(done);
      nfs3::ReaddirplusRes res = page_after(args_of<nfs3::ReaddirplusArgs>(call).cookie);
      res.eof = ++done == num;
      interposer.answer(call, res);
      return true;
    };
  }
  // `weft nfs ls` with other options than the command line can give.
  Ran ls(NfsOptions options) {
    options.names = {url("")};
    apps::GlobalOptions globals = client_options();
    Ran ran;
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    {
      Runner runner(globals, options);
      run_ls(runner);
      ran.status = runner.finish();
    }
    ran.out = ::testing::internal::GetCapturedStdout();
    ran.err = ::testing::internal::GetCapturedStderr();
    return ran;
  }

 private:
  nfs3::NfsFh3 file_;
  nfs3::Fattr3 attributes_;
};

// Servers do this for filesystems that are mounted below their export.
TEST_F(Listings, ANameWithoutAnythingElseIsListedAndSpoilsNothing) {
  write_file(exported("file"), {1});
  const nfs3::NfsFh3 file = handle_of("file");
  const nfs3::Fattr3 attributes = attributes_of(file);
  interposer.hook = [&](ServedCall& call) {
    if (is(call, Proc::kReaddirplus)) {
      nfs3::ReaddirplusRes res;
      res.entries.push_back({1, "closed", 1, {}, {}});
      res.entries.push_back({2, "file", 2, attributes, file});
      res.eof = true;
      interposer.answer(call, res);
      return true;
    }
    if (!is(call, Proc::kLookup) || args_of<nfs3::DiropArgs>(call).what.name != "closed") return false;
    nfs3::LookupRes res;
    res.status = nfs3::Nfsstat3::kAcces;
    interposer.answer(call, res);
    return true;
  };
  Ran ran = weft({"nfs", "ls", url("")});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "closed\nfile\n");
  ran = weft({"nfs", "ls", "-l", url("")});
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.out, ::testing::StartsWith("??????????"));
  EXPECT_THAT(ran.err, ::testing::HasSubstr("/closed"));
  ran = weft({"nfs", "get", "-r", url(""), local("copy")});
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.err, ::testing::HasSubstr("/closed"));
  EXPECT_EQ(read_file(local("copy/file")), Octets{1});
}

TEST_F(Listings, AnEndlessDirectoryIsPrintedAsItComes) {
  for (const char* option : {"--json", "-U"}) {
    // The command is told to stop after some pages. The earlier entries are printed already.
    serve_pages(0, [](int page) {
      if (page == 20) kill(getpid(), SIGINT);
    });
    const Ran ran = weft({"nfs", "ls", option, url("")});
    EXPECT_EQ(ran.status, 1);
    EXPECT_NE(ran.err.find("interrupted"), std::string::npos) << ran.err;
    EXPECT_GE(std::count(ran.out.begin(), ran.out.end(), '\n'), 10 * kPageLen);
    EXPECT_LT(ran.out.find(name_at(1)), ran.out.find(name_at(400))) << "in the server's order";
  }
}

TEST_F(Listings, NamesAreSortedAsFarAsMemoryAllows) {
  constexpr int kPages = 12;
  NfsOptions options;
  serve_pages(kPages);
  Ran ran = ls(options);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), kPages * kPageLen);
  EXPECT_EQ(ran.out.find(name_at(kPages * kPageLen)), 0u);

  EXPECT_EQ(options.max_sorted, std::size_t{256} << 20);
  options.max_sorted = 4 * kPageLen * sizeof(DirEntry);  // some three pages
  serve_pages(kPages);
  ran = ls(options);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), kPages * kPageLen);
  EXPECT_GT(ran.out.find(name_at(kPages * kPageLen)), ran.out.find(name_at(1))) << "too late to be sorted";
  EXPECT_LT(ran.out.find(name_at(kPageLen)), ran.out.find(name_at(1))) << "soon enough to be sorted";
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  EXPECT_NE(ran.err.find("for sorting"), std::string::npos) << ran.err;
}

// A server that shows its export within itself: the tree has no leaves.
TEST_F(Listings, DirectoriesWithoutAnEndOfTheirDepthEndAtABound) {
  const nfs3::NfsFh3 root = handle_of("");
  const nfs3::Fattr3 attributes = attributes_of(root);
  int num_pages = 0;
  interposer.hook = [&](ServedCall& call) {
    if (!is(call, Proc::kReaddirplus)) return false;
    ++num_pages;
    nfs3::ReaddirplusRes res;
    res.entries.push_back({1, "d", 1, attributes, root});
    res.eof = true;
    interposer.answer(call, res);
    return true;
  };
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"nfs", "get", "-r", url(""), local("copy")}, {"nfs", "ls", "-R", url("")}}) {
    num_pages = 0;
    const Ran ran = weft(words);
    EXPECT_EQ(ran.status, 1);
    EXPECT_THAT(ran.err, ::testing::HasSubstr("directories nested too deeply"));
    EXPECT_EQ(num_pages, 512);
  }
}

TEST_F(Listings, AnEndlessDirectoryEndsWithItsReader) {
  serve_pages(0);
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  close(pipe_fds[0]);
  const std::vector<std::string> names = {url("")};
  NfsOptions options;
  options.json = true;
  options.names = names;
  apps::GlobalOptions globals = client_options();
  int status = -1;
  ::testing::internal::CaptureStderr();
  {
    const StdoutTo closed(pipe_fds[1]);
    close(pipe_fds[1]);
    Runner runner(globals, options);
    run_ls(runner);
    status = runner.finish();
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "everybody knows why";
  EXPECT_EQ(status, apps::kExitReaderLeft);
}

TEST_F(Listings, ACircleOfCookiesIsNoticed) {
  for (const std::uint64_t len : {2u, 3u, 7u, 100u}) {
    interposer.hook = [this, len](ServedCall& call) {
      if (!is(call, Proc::kReaddirplus)) return false;
      // A few names that lead into the circle.
      const std::uint64_t cookie = args_of<nfs3::ReaddirplusArgs>(call).cookie + 1;
      nfs3::ReaddirplusRes res;
      res.entries.push_back({1, ".", cookie < 5 + len ? cookie : 5, std::nullopt, std::nullopt});
      interposer.answer(call, res);
      return true;
    };
    for (const char* option : {"-l", "--json", "-r"}) {
      const Ran ran = weft({"nfs", "ls", option, url("")});
      EXPECT_EQ(ran.status, 1) << len;
      EXPECT_NE(ran.err.find("in a circle"), std::string::npos) << ran.err;
    }
    EXPECT_EQ(weft({"nfs", "get", "-r", url(""), local("copy")}).status, 1);
  }
}

class Ends : public World {
 protected:
  // Every READ says that the file ends at `end`, its attributes that it has `size` bytes.
  void serve_end(std::uint64_t end, std::uint64_t size) {
    write_file(exported("file"), noise(size));
    interposer.hook = [this, end, size](ServedCall& call) {
      if (!is(call, Proc::kRead)) return false;
      const auto args = args_of<nfs3::ReadArgs>(call);
      const std::uint64_t len = args.offset >= end ? 0 : std::min<std::uint64_t>(args.count, end - args.offset);
      rpcrdma::Buffer buffer = interposer.server->buffers().take(std::max<std::uint64_t>(len, 1));
      nfs3::ReadRes res;
      if (len > 0) res = backend->read({args.file, args.offset, std::uint32_t(len)}, buffer.octets());
      res.file_attributes = attributes_of(args.file);
      res.file_attributes->size = size;
      res.count = res.data.len = std::uint32_t(len);
      res.eof = args.offset + len >= end;
      interposer.answer_with_item(call, res, std::move(buffer));
      return true;
    };
  }
};

TEST_F(Ends, AnEndThatTheAttributesDenyIsAnError) {
  const std::pair<std::uint64_t, std::uint64_t> cases[] = {{0, 18}, {7, 18}, {0, 5'000'000}, {2'000'000, 5'000'000}};
  for (const auto& [end, size] : cases) {
    serve_end(end, size);
    // With a large file another READ than the last one may be the first to be denied.
    const std::string place = size < 1000 ? "ends after " + std::to_string(end) : "";
    const std::string words = place + " bytes and that it has " + std::to_string(size);
    for (const std::vector<std::string>& command : {std::vector<std::string>{"nfs", "cat", url("file")},
                                                    {"nfs", "get", url("file"), local("one")},
                                                    {"nfs", "get", "-r", url(""), local("tree")}}) {
      const Ran ran = weft(command);
      EXPECT_EQ(ran.status, 1) << command[1];
      EXPECT_NE(ran.err.find(words), std::string::npos) << ran.err;
    }
    EXPECT_FALSE(exists(local("one")));
    EXPECT_TRUE(names_in(local("tree")).empty());
  }
}

TEST_F(Ends, AFileThatGrowsWhileItIsReadIsNoError) {
  constexpr unsigned kTimes = 20;
  for (const std::size_t before : {std::size_t{0}, std::size_t{100}, std::size_t{600'000}}) {
    std::filesystem::remove_all(local("tree"));
    write_file(exported("file"), noise(before));
    // It grows faster than it is read, for a while.
    interposer.hook = [this, before, times = 0u](ServedCall& call) mutable {
      if (!is(call, Proc::kRead) || times == kTimes) return false;
      // Read first, then appended to, then the attributes taken.
      const auto args = args_of<nfs3::ReadArgs>(call);
      rpcrdma::Buffer buffer = interposer.server->buffers().take(args.count);
      nfs3::ReadRes res = backend->read(args, buffer.octets());
      write_file(exported("file"), noise(before + 50 * ++times));
      res.file_attributes = attributes_of(args.file);
      res.data.len = res.count;
      interposer.answer_with_item(call, res, std::move(buffer));
      return true;
    };
    const Ran ran = weft({"nfs", "get", "-r", url(""), local("tree")});
    EXPECT_EQ(ran.status, 0) << ran.err;
    const Octets got = read_file(local("tree/file"));
    Octets whole = noise(before + 50 * kTimes);
    EXPECT_GE(got.size(), before);
    EXPECT_LT(got.size(), whole.size()) << "its end was run after";
    whole.resize(std::min(whole.size(), got.size()));
    EXPECT_EQ(got, whole);
  }
}

TEST_F(Ends, GetToADashWritesToStandardOutput) {
  const Octets octets = noise(70'000);
  write_file(exported("file"), octets);
  const Ran ran = weft({"nfs", "get", url("file"), url("file"), "-"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, text_of(octets) + text_of(octets));
  EXPECT_FALSE(exists("-"));
  EXPECT_EQ(weft({"nfs", "get", "--json", url("file"), "-"}).status, 2);
  EXPECT_EQ(weft({"nfs", "get", "-r", url(""), "-"}).status, 1);
  EXPECT_FALSE(exists("-"));
}

}  // namespace
}  // namespace weft::nfs::testing
