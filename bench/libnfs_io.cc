// Measures the rate of an NFS client over TCP: READ or WRITE through libnfs's asynchronous interface, some in flight,
// through a file over and over. WRITE is UNSTABLE, as the file is not opened for synchronous writing.
//
//   libnfs_io URL read|write SIZE DEPTH SECONDS      prints "OCTETS/S" and ends
//
// The URL is libnfs's: nfs://HOST/EXPORT/FILE?nfsport=N&mountport=N; the file is there and holds SIZE octets at least.
#include <fcntl.h>
#include <netinet/tcp.h>
#include <nfsc/libnfs.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Run {
  nfs_context* nfs = nullptr;
  nfsfh* file = nullptr;
  bool writes = false;
  std::uint64_t size = 0, places = 0, called = 0, done = 0;
  int outstanding = 0;
  Clock::time_point end;
  std::vector<char> data;
};

[[noreturn]] void fail(const char* what, const char* why) {
  std::fprintf(stderr, "libnfs_io: %s: %s\n", what, why);
  std::exit(1);
}

void call(Run& run);

void on_done(int status, nfs_context* nfs, void*, void* private_data) {
  Run& run = *static_cast<Run*>(private_data);
  if (status < 0) fail("a call failed", nfs_get_error(nfs));
  if (std::uint64_t(status) != run.size) fail("a call", "did less than it was told to");
  ++run.done;
  --run.outstanding;
  if (Clock::now() < run.end) call(run);
}

void call(Run& run) {
  const std::uint64_t offset = run.called++ % run.places * run.size;
  const int status = run.writes ? nfs_pwrite_async(run.nfs, run.file, offset, run.size, run.data.data(), on_done, &run)
                                : nfs_pread_async(run.nfs, run.file, offset, run.size, on_done, &run);
  if (status != 0) fail("cannot call", nfs_get_error(run.nfs));
  ++run.outstanding;
}

void open_file(Run& run, const char* text) {
  run.nfs = nfs_init_context();
  nfs_url* const url = nfs_parse_url_full(run.nfs, text);
  if (url == nullptr) fail(text, nfs_get_error(run.nfs));
  if (nfs_mount(run.nfs, url->server, url->path) != 0) fail("mount", nfs_get_error(run.nfs));
  const int flags = run.writes ? O_RDWR : O_RDONLY;
  if (nfs_open(run.nfs, url->file, flags, &run.file) != 0) fail("open", nfs_get_error(run.nfs));
  nfs_stat_64 info{};
  if (nfs_fstat64(run.nfs, run.file, &info) != 0) fail("fstat", nfs_get_error(run.nfs));
  const std::uint64_t most = run.writes ? nfs_get_writemax(run.nfs) : nfs_get_readmax(run.nfs);
  if (run.size == 0 || run.size > most || info.nfs_size < run.size) {
    fail("SIZE", "more than the server or the file takes");
  }
  run.places = info.nfs_size / run.size;
  run.data.assign(run.size, 'w');
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: libnfs_io URL read|write SIZE DEPTH SECONDS\n");
    return 2;
  }
  Run run;
  run.writes = std::strcmp(argv[2], "write") == 0;
  run.size = std::strtoull(argv[3], nullptr, 10);
  open_file(run, argv[1]);
  const auto start = Clock::now();
  run.end = start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::atof(argv[5])));
  for (int i = 0; i < std::atoi(argv[4]); ++i) call(run);
  while (run.outstanding > 0) {
    pollfd polled{nfs_get_fd(run.nfs), short(nfs_which_events(run.nfs)), 0};
    if (poll(&polled, 1, -1) < 0) fail("poll", std::strerror(errno));
    if (nfs_service(run.nfs, polled.revents) < 0) fail("the connection", nfs_get_error(run.nfs));
  }
  std::printf("%.0f\n", double(run.done * run.size) / std::chrono::duration<double>(Clock::now() - start).count());
  return 0;
}
