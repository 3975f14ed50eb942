#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/bytes.h"
#include "rpcrdma/chunk_lists.h"
#include "rpcrdma/policies.h"
#include "rpcrdma/transport_error.h"
#include "rpcrdma/v1/header.h"
#include "rpcrdma/v2_cel05/header.h"
#include "rpcrdma/v2_wg07/header.h"

namespace weft::apps::dissect {

// TransportType: rdma_proc or rdma_htype of a header, by the version that has it; std::monostate: of no header.
using TransportType = std::variant<std::monostate, rpcrdma::v1::Proc, rpcrdma::v2_cel05::Proc, rpcrdma::v2_wg07::Htype>;
// "RDMA_MSG"
std::string_view type_str(const TransportType& type);

// TransportWords: the words of an RPC-over-RDMA header of any version, as far as the dissector speaks of them.
struct TransportWords {
  std::uint32_t xid = 0;
  std::uint32_t version = 0;
  std::uint32_t credit = 0;
  TransportType type = {};
  std::optional<bool> reply = {};  // the header's word on the direction; empty: it has none
  bool external = false;           // the RPC message is in a chunk
  bool has_payload = false;        // the Payload stream of a whole RPC message follows, or the last part of one
  bool is_middle = false;          // a part of the Payload stream follows, and more come in other messages
  std::size_t lists_at = 16;       // where the chunk lists begin; behind what this type has before them
  std::uint32_t inv_handle = 0;    // version 2: the STag that the Reply to this Call may invalidate; 0 for none
  std::size_t len = 0;             // octets of the header
  std::optional<rpcrdma::TransportError> error = {};  // of RDMA_ERROR and RDMA2_ERROR

  template <typename Type>
  bool is(Type its) const {
    const Type* own = std::get_if<Type>(&type);
    return own != nullptr && *own == its;
  }
  // Connection properties of draft-ietf-nfsv4-rpcrdma-version-two-07.
  bool is_connprop_wg07() const {
    using enum rpcrdma::v2_wg07::Htype;
    return is(kConnpropMiddle) || is(kConnpropFinal);
  }
};

// TransportHeader: a header with its chunk lists.
struct TransportHeader : TransportWords {
  std::string text = {};  // behind the credits: error codes, handles, properties
  rpcrdma::ChunkListsView lists = {};
};

// parse_transport_header reads a header of `protocol` in place of what `out` had, and takes its memory. False: the
// message is none, and `out` has no meaning.
[[nodiscard]] bool parse_transport_header(rpcrdma::Protocol protocol, ConstBytes message, TransportHeader& out);

}  // namespace weft::apps::dissect
