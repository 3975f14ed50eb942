#include "tests/serve/fixture.h"

#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

namespace weft::serve::testing {

namespace fs = std::filesystem;

TempDir::TempDir() {
  std::string pattern = ::testing::TempDir() + "weft-serve-XXXXXX";
  path_ = ::mkdtemp(pattern.data());
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void run_without(std::initializer_list<int> capabilities, const std::function<void()>& work) {
  std::thread thread([&] {
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
    ASSERT_EQ(::syscall(SYS_capget, &header, sets), 0);
    for (int capability : capabilities) sets[capability / 32].effective &= ~(1u << (capability % 32));
    ASSERT_EQ(::syscall(SYS_capset, &header, sets), 0);
    work();
  });
  thread.join();
}

void write_local(const std::string& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << content;
  ASSERT_TRUE(out.good()) << path;
}

std::string read_local(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

ExportTest::ExportTest() : dir(temp / "export") {
  ::mkdir(dir.c_str(), 0755);
  tree_config.directory = dir;
  tree_config.state_dir = temp / "state";
  config.read_write = true;
  config.sync_metadata = false;
  start();
}

void ExportTest::start() {
  backend.reset();
  tree.reset();
  auto opened = Tree::open(tree_config);
  ASSERT_TRUE(opened.ok()) << opened.status();
  tree = std::move(*opened);
  backend = std::make_unique<Backend>(*tree, config, calls);
}

void ExportTest::lose_index() {
  backend.reset();
  tree.reset();
  for (const auto& entry : fs::directory_iterator(tree_config.state_dir))
    if (entry.path().filename().string().starts_with("index-")) fs::remove(entry.path());
  start();
}

nfs3::NfsFh3 ExportTest::handle(const std::string& path) {
  Outcome<Node> node = tree->open_path(path);
  EXPECT_TRUE(node.ok()) << path;
  return node ? tree->handle_of(node->key) : nfs3::NfsFh3{};
}

nfs3::NewObjectRes ExportTest::create(const nfs3::NfsFh3& in, const std::string& name, nfs3::Createmode3 mode,
                                      const nfs3::Sattr3& attrs, const nfs3::Verf& verf) {
  return backend->create({.where = {in, name}, .mode = mode, .obj_attributes = attrs, .verf = verf});
}

nfs3::WriteRes ExportTest::write(const nfs3::NfsFh3& file, std::uint64_t offset, const std::string& text,
                                 nfs3::StableHow stable) {
  nfs3::WriteArgs args;
  args.file = file;
  args.offset = offset;
  args.count = static_cast<std::uint32_t>(text.size());
  args.stable = stable;
  return backend->write(args, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

std::string ExportTest::read(const nfs3::NfsFh3& file, std::uint64_t offset, std::uint32_t count) {
  std::vector<std::uint8_t> into(count);
  nfs3::ReadRes res = backend->read({.file = file, .offset = offset, .count = count}, into);
  if (res.status != nfs3::Nfsstat3::kOk) return std::string("!") + nfs3::nfsstat3_name(res.status);
  return {into.begin(), into.begin() + res.count};
}

}  // namespace weft::serve::testing
