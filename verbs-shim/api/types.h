#pragma once

#include <cstdint>
#include <span>

#include "base/time.h"

namespace weft::verbs {

class Mr;
class Mw;

// Access: the flags of ibv_reg_mr(3), same meaning. kRemoteWrite and kRemoteAtomic need kLocalWrite.
enum class Access : unsigned {
  kNone = 0,
  kLocalWrite = 1,
  kRemoteWrite = 1 << 1,
  kRemoteRead = 1 << 2,
  kRemoteAtomic = 1 << 3,
  kMwBind = 1 << 4,
};
constexpr Access operator|(Access a, Access b) {
  return Access(unsigned(a) | unsigned(b));
}
constexpr bool has(Access set, Access flag) {
  return (unsigned(set) & unsigned(flag)) == unsigned(flag);
}

// Sge: struct ibv_sge. addr is a virtual address inside the region that lkey names; length in octets.
struct Sge {
  std::uint64_t addr = 0;
  std::uint32_t length = 0;
  std::uint32_t lkey = 0;
};

// WrOpcode: enum ibv_wr_opcode, as far as iWARP has a counterpart.
//
// Immediates have 32 bits in ibverbs and 8 octets in RFC 7306. kRdmaWriteWithImm is an RDMA Write and, right behind it,
// an Immediate Data Message (with Solicited Event for kSolicited). The first four octets of the message are imm_data,
// and the last four are zero. RFC 7306 section 6 says that the two together act like InfiniBand's operation. The
// receive that it consumes completes as kRecvRdmaWithImm with the first four octets. The last four octets, which a
// native iWARP peer may use, are in the receive's memory if that has room for all eight. kSendWithImm has no
// counterpart (a Send and an Immediate Data Message would consume two receives) and is refused.
enum class WrOpcode : std::uint8_t {
  kRdmaWrite,
  kRdmaWriteWithImm,
  kSend,
  kSendWithImm,
  kRdmaRead,
  kAtomicCmpAndSwp,
  kAtomicFetchAndAdd,
  kLocalInv,
  kBindMw,
  kSendWithInv,
};

// SendFlags: enum ibv_send_flags.
enum class SendFlags : unsigned { kNone = 0, kFence = 1, kSignaled = 1 << 1, kSolicited = 1 << 2, kInline = 1 << 3 };
constexpr SendFlags operator|(SendFlags a, SendFlags b) {
  return SendFlags(unsigned(a) | unsigned(b));
}
constexpr bool has(SendFlags set, SendFlags flag) {
  return (unsigned(set) & unsigned(flag)) == unsigned(flag);
}

// MwBind: the bind_mw part of struct ibv_send_wr. From this request on only the peer of this queue pair reaches [addr,
// addr + length) of mr through rkey. rkey: inc_rkey of the previous rkey, or another value with the same upper 24 bits
// and a different key octet. access: any of kRemoteRead, kRemoteWrite and kRemoteAtomic. kRemoteWrite and kRemoteAtomic
// need kLocalWrite of mr; all three need kMwBind of mr. Either side must invalidate a bound window before it is bound
// again.
struct MwBind {
  Mw* mw = nullptr;
  std::uint32_t rkey = 0;
  Mr* mr = nullptr;
  std::uint64_t addr = 0;
  std::uint64_t length = 0;  // octets, not 0
  Access access = Access::kNone;
};

// inc_rkey: ibv_inc_rkey(3), the next key of the same memory window.
constexpr std::uint32_t inc_rkey(std::uint32_t rkey) {
  constexpr std::uint32_t kKeyMask = 0xff;
  return (rkey & ~kKeyMask) | ((rkey + 1) & kKeyMask);
}

// SendWr: struct ibv_send_wr, without the chain. post_send copies sg_list. The memory that it names belongs to the
// device until the completion was polled (with kInline the memory is copied, too).
struct SendWr {
  std::uint64_t wr_id = 0;
  std::span<const Sge> sg_list{};
  WrOpcode opcode = WrOpcode::kSend;
  SendFlags send_flags = SendFlags::kSignaled;
  std::uint32_t invalidate_rkey = 0;  // kSendWithInv, kLocalInv
  std::uint64_t remote_addr = 0;      // Writes, kRdmaRead, the atomics (then a multiple of 8)
  std::uint32_t rkey = 0;
  std::uint32_t imm_data = 0;     // kRdmaWriteWithImm; in network byte order, as in ibverbs
  std::uint64_t compare_add = 0;  // the atomics, as in ibverbs; sg_list receives the 8 octets of the old value, in the
                                  // byte order of this machine
  std::uint64_t swap = 0;         // kAtomicCmpAndSwp
  MwBind bind_mw{};               // kBindMw
};

// RecvWr: struct ibv_recv_wr.
struct RecvWr {
  std::uint64_t wr_id = 0;
  std::span<const Sge> sg_list{};
};

// WcStatus: enum ibv_wc_status, the values that iWARP can produce and, last, two of InfiniBand's.
enum class WcStatus : std::uint8_t {
  kSuccess,
  kLocLenErr,
  kLocQpOpErr,
  kLocProtErr,
  kWrFlushErr,
  kMwBindErr,
  kBadRespErr,
  kLocAccessErr,
  kRemInvReqErr,
  kRemAccessErr,
  kRemOpErr,
  kFatalErr,
  kGeneralErr,
  kRetryExcErr,     // the peer acknowledged nothing
  kRnrRetryExcErr,  // the peer had no receive posted
};

// The name that ibv_wc_status_str(3) prints; never null.
const char* wc_status_str(WcStatus status);

enum class WcOpcode : std::uint8_t {
  kSend,
  kRdmaWrite,
  kRdmaRead,
  kCompSwap,
  kFetchAdd,
  kBindMw,
  kLocalInv,
  kRecv,
  kRecvRdmaWithImm,
};

enum class WcFlags : unsigned { kNone = 0, kWithImm = 1 << 1, kWithInv = 1 << 3 };
constexpr WcFlags operator|(WcFlags a, WcFlags b) {
  return WcFlags(unsigned(a) | unsigned(b));
}
constexpr bool has(WcFlags set, WcFlags flag) {
  return (unsigned(set) & unsigned(flag)) == unsigned(flag);
}

// Wc: struct ibv_wc. With a status other than kSuccess only wr_id, status, qp_num and vendor_err mean anything.
struct Wc {
  std::uint64_t wr_id = 0;
  WcStatus status = WcStatus::kSuccess;
  WcOpcode opcode = WcOpcode::kSend;
  WcFlags wc_flags = WcFlags::kNone;
  std::uint32_t vendor_err = 0;  // soft: the Terminate's control octets layer<<12 | etype<<8 | code, 0 for none
  std::uint32_t byte_len = 0;    // of receives (0 or 8 for kRecvRdmaWithImm: its own octets), kRdmaRead and the atomics
  std::uint32_t imm_data = 0;    // with kWithImm; in network byte order, as in ibverbs
  std::uint32_t qp_num = 0;
  std::uint32_t invalidated_rkey = 0;  // with kWithInv
};

// Caps: the abilities and limits of a device. Engines ask Caps, never the name of a backend.
struct Caps {
  bool mem_windows_type2 = false;             // remote invalidation from user space needs them
  bool remote_invalidation = false;           // Send with Invalidate is understood on receipt
  bool read_sink_needs_remote_write = false;  // classic iWARP verbs: the sink of an RDMA Read is a remote write target
  bool imm_data = false;                      // kRdmaWriteWithImm (WrOpcode says how)
  bool own_progress = false;                  // it moves without Device::process
  bool atomics =
      false;  // kAtomicCmpAndSwp and kAtomicFetchAndAdd: atomic among themselves, on soft also with the CPUs'
  std::uint32_t max_qp_wr = 0;
  std::uint32_t max_sge = 0;
  std::uint32_t max_sge_rd = 0;       // sges of a Read's sink
  std::uint32_t max_inline_data = 0;  // octets
  std::uint32_t max_cqe = 0;
  std::uint32_t max_qp_rd_atom = 0;       // IRD that a connection may ask for
  std::uint32_t max_qp_init_rd_atom = 0;  // ORD
  std::uint32_t max_private_data = 0;     // octets that connect and accept carry
  std::uint32_t max_srq = 0;              // number of Srqs; 0: there are none
  std::uint32_t max_srq_wr = 0;
  std::uint32_t max_srq_sge = 0;
  bool srq_reserve = false;  // SrqAttr::reserve has an effect
};

// QpCounters: the messages and octets that went over the wire for one queue pair. Zero on all devices but the soft
// RNIC.
struct QpCounters {
  std::uint64_t sends_tx = 0, sends_rx = 0, send_octets_tx = 0, send_octets_rx = 0;
  std::uint64_t writes_tx = 0, writes_rx = 0, write_octets_tx = 0, write_octets_rx = 0;
  std::uint64_t reads_tx = 0, reads_rx = 0, read_octets_tx = 0, read_octets_rx = 0;
  std::uint64_t immediates_tx = 0, immediates_rx = 0, atomics_tx = 0, atomics_rx = 0;

  // Adds every counter of another queue pair.
  QpCounters& operator+=(const QpCounters& one);
};

}  // namespace weft::verbs
