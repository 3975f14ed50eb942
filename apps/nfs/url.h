#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace weft::nfs {

// The port of NFS over RPC-over-RDMA (RFC 8267) and of the MOUNT service of `weft serve`.
inline constexpr std::uint16_t kDefaultPort = 20049;
inline constexpr std::uint16_t kDefaultMountport = 20048;

// Url is a remote name: nfs+rdma://HOST[:PORT]/PATH[?mountport=N], taken apart and percent-decoded (RFC 3986).
struct Url {
  std::string host;  // without brackets
  std::uint16_t port = kDefaultPort;
  std::uint16_t mountport = kDefaultMountport;
  // The names from "/" down; "." and ".." are resolved (RFC 3986 section 5.2.4). A name may hold any octet but NUL and
  // "/".
  std::vector<std::string> path;
  bool trailing_slash = false;  // the name must be a directory

  // The last name; empty for "/".
  std::string basename() const { return path.empty() ? std::string() : path.back(); }
  bool same_server(const Url& other) const {
    return host == other.host && port == other.port && mountport == other.mountport;
  }
  // The Url of `name` in this directory.
  Url child(const std::string& name) const;
  // The text that parse_url reads, percent-encoded; default ports are left out.
  std::string str() const;

  friend bool operator==(const Url&, const Url&) = default;
};

// looks_like_url: whether the text has the form SCHEME://..., so that it is no local path.
bool looks_like_url(std::string_view text);

// parse_url returns kInvalidArgument for any other text. The error's message names the mistake.
absl::StatusOr<Url> parse_url(std::string_view text);

// absolute_path makes "/a/b" of names, not encoded.
std::string absolute_path(const std::vector<std::string>& names);

}  // namespace weft::nfs
