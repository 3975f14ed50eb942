#include "apps/nfs/url.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "apps/common/address.h"

namespace weft::nfs {
namespace {

constexpr std::string_view kScheme = "nfs+rdma://";

absl::Status bad_url(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError("'" + std::string(text) + "' is not a remote name: " + std::string(why) +
                                    "; expected nfs+rdma://HOST[:PORT]/PATH[?mountport=N]");
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// decode returns nothing if a % is not followed by two digits, or if the result could not be a name.
std::optional<std::string> decode(std::string_view text) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = text.size() - i > 2 ? hex_digit(text[i + 1]) : -1;
      const int low = text.size() - i > 2 ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (c == '\0' || c == '/') return std::nullopt;
    name += c;
  }
  return name;
}

bool stays_literal(char c) {
  constexpr std::string_view kPunctuation = "-._~!$&'()*+,;=:@";
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || kPunctuation.find(c) != std::string_view::npos;
}

std::string encode(std::string_view name) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string text;
  for (const char c : name) {
    const auto octet = static_cast<unsigned char>(c);
    if (octet < 0x80 && stays_literal(c)) {
      text += c;
    } else {
      text += {'%', kHex[octet >> 4], kHex[octet & 15]};
    }
  }
  return text;
}

absl::Status parse_query(std::string_view text, std::string_view query, Url& url) {
  constexpr std::string_view kKey = "mountport=";
  if (!query.starts_with(kKey)) return bad_url(text, "only ?mountport=N may follow the path");
  query.remove_prefix(kKey.size());
  const auto [end, error] = std::from_chars(query.data(), query.data() + query.size(), url.mountport);
  if (error != std::errc() || end != query.data() + query.size() || url.mountport == 0) {
    return bad_url(text, "mountport must be a number from 1 to 65535");
  }
  return absl::OkStatus();
}

absl::Status parse_path(std::string_view text, std::string_view path, Url& url) {
  url.trailing_slash = path.ends_with('/');
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
    const std::optional<std::string> name = decode(part);
    if (!name)
      return bad_url(text, "% must be followed by two hexadecimal digits, and a name cannot contain '/' or NUL");
    if (*name == "..") {
      if (!url.path.empty()) url.path.pop_back();
    } else if (!name->empty() && *name != ".") {
      url.path.push_back(*name);
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool looks_like_url(std::string_view text) {
  const std::size_t end = text.find("://");
  if (end == std::string_view::npos || end == 0) return false;
  return std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '-' || c == '.';
  });
}

absl::StatusOr<Url> parse_url(std::string_view text) {
  std::string scheme(text.substr(0, kScheme.size()));
  std::transform(scheme.begin(), scheme.end(), scheme.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  if (scheme != kScheme) return bad_url(text, "it does not begin with nfs+rdma://");
  std::string_view rest = text.substr(kScheme.size());

  Url url;
  if (const std::size_t mark = rest.find('?'); mark != std::string_view::npos) {
    if (absl::Status status = parse_query(text, rest.substr(mark + 1), url); !status.ok()) return status;
    rest = rest.substr(0, mark);
  }
  const std::size_t slash = rest.find('/');
  const std::string_view authority = rest.substr(0, slash);
  if (authority.find('@') != std::string_view::npos) return bad_url(text, "user names have no meaning here");
  absl::StatusOr<apps::HostPort> where = apps::parse_host_port(authority, kDefaultPort);
  if (!where.ok()) return bad_url(text, std::string(where.status().message()));
  if (where->port == 0) return bad_url(text, "port 0 cannot be connected to");
  url.host = where->host;
  url.port = where->port;
  if (slash == std::string_view::npos) {
    url.trailing_slash = true;
    return url;
  }
  if (absl::Status status = parse_path(text, rest.substr(slash + 1), url); !status.ok()) return status;
  if (url.path.empty()) url.trailing_slash = true;
  return url;
}

Url Url::child(const std::string& name) const {
  Url url = *this;
  url.path.push_back(name);
  url.trailing_slash = false;
  return url;
}

std::string Url::str() const {
  std::string text(kScheme);
  text += host.find(':') == std::string::npos ? host : "[" + host + "]";
  if (port != kDefaultPort) text += ":" + std::to_string(port);
  if (path.empty()) text += "/";
  for (const std::string& name : path) text += "/" + encode(name);
  if (trailing_slash && !path.empty()) text += "/";
  if (mountport != kDefaultMountport) text += "?mountport=" + std::to_string(mountport);
  return text;
}

std::string absolute_path(const std::vector<std::string>& names) {
  std::string path;
  for (const std::string& name : names) path += "/" + name;
  return path.empty() ? "/" : path;
}

}  // namespace weft::nfs
