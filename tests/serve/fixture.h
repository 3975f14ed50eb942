#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "apps/serve/backend/backend.h"
#include "apps/serve/export/tree.h"

namespace weft::serve::testing {

// TempDir is a directory that goes, with all in it, when this does.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// run_without runs `work` in a thread without these capabilities (CAP_*), as an ordinary user has none.
void run_without(std::initializer_list<int> capabilities, const std::function<void()>& work);

void write_local(const std::string& path, const std::string& content);
std::string read_local(const std::string& path);

// ExportTest has an export with a backend over it, writable, in a temporary directory. The tests change files locally,
// behind the server's back, at dir / "...".
class ExportTest : public ::testing::Test {
 protected:
  ExportTest();
  // Makes the server anew, as a restart does: same state directory. Called once by the constructor.
  void start();
  // ... after the index was lost.
  void lose_index();

  nfs3::NfsFh3 root() const { return tree->handle_of(tree->root().key); }
  nfs3::LookupRes lookup(const nfs3::NfsFh3& dir, const std::string& name) { return backend->lookup({{dir, name}}); }
  // The handle of a path of plain names.
  nfs3::NfsFh3 handle(const std::string& path);
  nfs3::Nfsstat3 getattr_status(const nfs3::NfsFh3& fh) { return backend->getattr({fh}).status; }

  nfs3::NewObjectRes create(const nfs3::NfsFh3& dir, const std::string& name,
                            nfs3::Createmode3 mode = nfs3::Createmode3::kUnchecked, const nfs3::Sattr3& attrs = {},
                            const nfs3::Verf& verf = {});
  nfs3::WriteRes write(const nfs3::NfsFh3& file, std::uint64_t offset, const std::string& text,
                       nfs3::StableHow stable = nfs3::StableHow::kUnstable);
  // The result of READ; "!STATUS" on failure.
  std::string read(const nfs3::NfsFh3& file, std::uint64_t offset = 0, std::uint32_t count = 65536);

  TempDir temp;
  std::string dir;  // the export
  TreeConfig tree_config;
  BackendConfig config;
  DiskCalls calls;
  std::unique_ptr<Tree> tree;
  std::unique_ptr<Backend> backend;
};

}  // namespace weft::serve::testing

namespace weft::nfs3 {

inline void PrintTo(Nfsstat3 status, std::ostream* out) {
  *out << nfsstat3_name(status);
}

}  // namespace weft::nfs3
