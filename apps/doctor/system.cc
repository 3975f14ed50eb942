#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string_view>

#include "apps/doctor/facts.h"
#include "base/fd.h"

namespace weft::apps::doctor {
namespace {

constexpr std::size_t kMostOctets = std::size_t{4} << 20;

// nullopt if the file does not exist. It does not wait: a FIFO or a device in the place of a file is nullopt, too.
std::optional<std::string> read_file(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return std::nullopt;
  struct stat info {};
  std::optional<std::string> text;
  if (::fstat(fd.get(), &info) == 0 && S_ISREG(info.st_mode)) {
    text.emplace();
    char chunk[16384];
    for (ssize_t n = 0; text->size() < kMostOctets && (n = ::read(fd.get(), chunk, sizeof(chunk))) > 0;) {
      text->append(chunk, static_cast<std::size_t>(n));
    }
  }
  return text;
}

std::string first_line(const std::string& path) {
  const std::string text = read_file(path).value_or("");
  return text.substr(0, text.find('\n'));
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::optional<std::uint64_t> number(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

std::vector<std::string> list_dir(const std::string& path) {
  std::vector<std::string> names;
  DIR* dir = ::opendir(path.c_str());
  if (dir == nullptr) return names;
  while (const dirent* entry = ::readdir(dir)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  ::closedir(dir);
  std::ranges::sort(names);
  return names;
}

bool exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

void read_cpu(const std::string& root, Facts& facts) {
  std::istringstream in(read_file(root + "/proc/cpuinfo").value_or(""));
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("flags") && !line.starts_with("Features")) continue;
    const std::vector<std::string> flags = words_of(line);
    const auto has = [&](const char* flag) { return std::ranges::find(flags, flag) != flags.end(); };
    facts.crc32c_instruction = has("sse4_2") || has("crc32");
    return;
  }
}

void read_tcp(const std::string& root, Facts& facts) {
  const std::string ipv4 = root + "/proc/sys/net/ipv4/";
  facts.congestion_control = first_line(ipv4 + "tcp_congestion_control");
  facts.congestion_controls = words_of(first_line(ipv4 + "tcp_available_congestion_control"));
  facts.allowed_congestion_controls = words_of(first_line(ipv4 + "tcp_allowed_congestion_control"));
  const auto most_of = [&](const char* name) -> std::optional<std::uint64_t> {
    const auto words = words_of(first_line(ipv4 + name));
    if (words.size() != 3) return std::nullopt;
    return number(words[2]);
  };
  facts.tcp_rmem_max = most_of("tcp_rmem");
  facts.tcp_wmem_max = most_of("tcp_wmem");
}

// "kernel/drivers/infiniband/sw/siw/siw.ko.xz" gives siw; '-' and '_' are the same in a module's name.
std::string module_of(std::string_view path) {
  path = path.substr(0, path.find(':'));
  if (const auto slash = path.rfind('/'); slash != path.npos) path.remove_prefix(slash + 1);
  std::string name(path.substr(0, path.find(".ko")));
  std::ranges::replace(name, '-', '_');
  return name;
}

void read_modules(const std::string& root, Facts& facts) {
  const std::string folder = root + "/lib/modules/" + facts.kernel + "/";
  std::set<std::string> available, loaded;
  if (const auto text = read_file(folder + "modules.dep")) {
    facts.modules_known = true;
    std::istringstream in(*text);
    for (std::string line; std::getline(in, line);) available.insert(module_of(line));
  }
  std::istringstream builtin(read_file(folder + "modules.builtin").value_or(""));
  for (std::string line; std::getline(builtin, line);) loaded.insert(module_of(line));
  std::istringstream in(read_file(root + "/proc/modules").value_or(""));
  for (std::string line; std::getline(in, line);) loaded.insert(line.substr(0, line.find(' ')));
  for (const char* name : kModules) {
    const bool here = loaded.contains(name) || exists(root + "/sys/module/" + name);
    facts.modules[name] = here                       ? ModuleState::kLoaded
                          : available.contains(name) ? ModuleState::kAvailable
                                                     : ModuleState::kMissing;
  }
}

// "4: ACTIVE" gives ACTIVE.
std::string behind_colon(const std::string& text) {
  const auto colon = text.find(": ");
  return colon == text.npos ? text : text.substr(colon + 2);
}

std::string transport_of(const std::string& device, const std::string& port) {
  const std::string node = behind_colon(first_line(device + "/node_type"));
  if (node == "RNIC") return "iWARP";
  if (node != "CA") return node.empty() ? "unknown" : node;
  return first_line(port + "/link_layer") == "Ethernet" ? "RoCE" : "InfiniBand";
}

std::string netdev_of(const std::string& device, const std::string& port) {
  std::string name = first_line(port + "/gid_attrs/ndevs/0");
  if (name.empty()) {
    const auto parents = list_dir(device + "/device/net");
    if (!parents.empty()) name = parents.front();
  }
  return name;
}

void read_rdma(const std::string& root, Facts& facts) {
  for (const std::string& name : list_dir(root + "/sys/class/infiniband")) {
    const std::string device = root + "/sys/class/infiniband/" + name;
    const std::string port = device + "/ports/1";
    facts.rdma_devices.push_back(
        {name, transport_of(device, port), behind_colon(first_line(port + "/state")), netdev_of(device, port)});
  }
  for (const std::string& name : list_dir(root + "/dev/infiniband")) {
    const std::string path = "/dev/infiniband/" + name;
    if (!name.starts_with("uverbs") && name != "rdma_cm") continue;
    facts.device_nodes.push_back({path, ::access((root + path).c_str(), R_OK | W_OK) == 0});
  }
}

void read_installed(const std::string& root, Facts& facts) {
  for (const char* program : kPrograms) {
    for (const char* folder : {"/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/", "/usr/local/sbin/", "/usr/local/bin/"}) {
      if (exists(root + folder + program)) facts.programs.insert(program);
    }
  }
  for (const std::string folder : {"/usr/lib", "/lib", "/usr/lib64", "/usr/local/lib"}) {
    facts.libibverbs = facts.libibverbs || exists(root + folder + "/libibverbs.so.1");
  }
  for (const std::string& triplet : list_dir(root + "/usr/lib")) {
    if (!triplet.ends_with("-linux-gnu")) continue;
    facts.libibverbs = facts.libibverbs || exists(root + "/usr/lib/" + triplet + "/libibverbs.so.1");
  }
  facts.siw_provider = exists(root + "/etc/libibverbs.d/siw.driver");
}

void read_nfsd(const std::string& root, Facts& facts) {
  const auto ports = read_file(root + "/proc/fs/nfsd/portlist");
  if (!ports) return;
  facts.nfsd_rdma = ports->starts_with("rdma ") || ports->find("\nrdma ") != ports->npos;
}

}  // namespace

void read_system(const std::string& root, const std::string& kernel, Facts& facts) {
  facts.kernel = kernel;
  read_cpu(root, facts);
  read_tcp(root, facts);
  read_modules(root, facts);
  read_rdma(root, facts);
  read_installed(root, facts);
  read_nfsd(root, facts);
  facts.container = exists(root + "/.dockerenv") || exists(root + "/run/.containerenv");
}

}  // namespace weft::apps::doctor
