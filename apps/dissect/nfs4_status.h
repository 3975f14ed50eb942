#pragma once

#include <cstdint>
#include <string_view>

namespace weft::apps::dissect {

// nfs4_status_name: "NFS4ERR_NOENT" for 2 (nfsstat4 of RFC 7531, RFC 5662, RFC 7863 and RFC 8276). Empty for a number
// that they lack.
std::string_view nfs4_status_name(std::uint32_t status);

}  // namespace weft::apps::dissect
