#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "rpcrdma/binding.h"

// Names of programs, procedures and operations of the NFS family, and their main arguments and results.
namespace weft::apps::dissect {

class RpcLayer;

// ProcedureKey names a procedure.
struct ProcedureKey {
  std::uint32_t program = 0, version = 0, procedure = 0;
  friend bool operator==(const ProcedureKey&, const ProcedureKey&) = default;
};

struct KnownProgram;
struct KnownProcedure;

// ProcedureFacts: what is known of a procedure. A value that stays valid.
struct ProcedureFacts {
  const KnownProgram* program = nullptr;      // null: it is not known
  const KnownProcedure* procedure = nullptr;  // the same
  bool has_status = false;                    // the first word of its results is a status of NFS
};
// facts_of looks a procedure up. For one thread, as the functions below.
ProcedureFacts facts_of(const ProcedureKey& key);

// procedure_name: "NFSv3 READ", "MOUNTv3 MNT"; "program 395183 version 1 procedure 7" without a known name. The text is
// valid until the next call. facts: of the key, here and below.
const std::string& procedure_name(const ProcedureKey& key, const ProcedureFacts& facts);

// BackChannel: the words of a Call's operations about callbacks on its connection (RFC 8881 sections 18.34 and 18.36).
struct BackChannel {
  bool may_be_bound = false;                      // CREATE_SESSION or BIND_CONN_TO_SESSION is there, or can be
  std::optional<std::uint32_t> max_request = {};  // octets: the longest callback. Empty: not told here
};

// tell_arguments and tell_results add to the line, beginning with a blank, and to the fields. at: where args or results
// begin in the RPC message. reduced: as of nfsulb::walk_arguments and nfsulb::walk_results. Octets that are not what
// the procedure says end the text. tell_results returns false for a status that is no success.
BackChannel tell_arguments(const ProcedureKey& key, const ProcedureFacts& facts, ConstBytes args, std::size_t at,
                           std::span<const std::size_t> reduced, RpcLayer& layer);
bool tell_results(const ProcedureKey& key, const ProcedureFacts& facts, ConstBytes results, std::size_t at,
                  std::span<const std::uint32_t> reduced, RpcLayer& layer);
// walk_results: as nfsulb::walk_results; kUnknown for a procedure that is not known.
rpcrdma::Walked walk_results(const ProcedureKey& key, const ProcedureFacts& facts, ConstBytes results,
                             std::span<const std::uint32_t> reduced,
                             std::vector<std::optional<rpcrdma::EligibleItem>>& items);

}  // namespace weft::apps::dissect
