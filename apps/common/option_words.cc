#include "apps/common/option_words.h"

namespace weft::apps {
namespace {

struct Words {
  std::string_view of_library;
  std::string_view of_program;
};

constexpr Words kWords[] = {
    {"SoftConfig::mpa_revision", "--mpa-rev"},
    {"SoftConfig::crc false", "--crc off"},
    {"SoftConfig::direct_placement", "--placement direct"},
    {"SoftConfig::markers", "--markers"},
    {"SoftConfig::peer", "--peer"},
    {"SoftConfig::rtr", "--rtr"},
    {"SoftConfig::nudge", "--nudge"},
    {"SoftConfig::port_map.ask", "--port-map"},
    {"SoftConfig::ord", "--ord"},
    {"SoftConfig::ird", "--ird"},
    {"TraceConfig::tagged_len", "--trace-snaplen"},
    {"BackendConfig::set_id_files", "--set-id-files"},
    {"ClientConfig::inline_threshold", "--inline"},
    {"ClientConfig::credits", "--credits"},
    {"ClientConfig::protocols", "--rpcrdma"},
    {"ChunkUse::max_continued_call", "--parts"},
    {"one with ClientConfig::reverse_programs", "weft gateway"},
    {"the port of an iWARP program", "another port: NFS over RDMA is 20049 (not 2049), rping and weft ping 7174"},
    {"a listener for iWARP at the peer", "on a Linux NFS server 'echo rdma 20049 > /proc/fs/nfsd/portlist'"},
    {"the listener's own address and port", "the address and port of the listener's 'ready' line"},
    {"iWARP chosen at the client", "for an NFS client the mount option proto=rdma"},
    {"a software one on a network interface will do",
     "a software one is made of any network interface: modprobe siw; rdma link add siw0 type siw netdev eth0 (iWARP; "
     "rxe for RoCE), see `weft doctor`"},
};

}  // namespace

std::string in_options(std::string_view text) {
  std::string out(text);
  for (const Words& words : kWords) {
    for (std::size_t at = 0; (at = out.find(words.of_library, at)) != std::string::npos;
         at += words.of_program.size()) {
      out.replace(at, words.of_library.size(), words.of_program);
    }
  }
  return out;
}

}  // namespace weft::apps
