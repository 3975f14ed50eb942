#pragma once

#include <chrono>
#include <cstdint>
#include <span>

namespace weft::verbs {

using TimePoint = std::chrono::steady_clock::time_point;

// Access: the flags of ibv_reg_mr(3), same meaning. kRemoteWrite needs kLocalWrite.
enum class Access : unsigned { kNone = 0, kLocalWrite = 1, kRemoteWrite = 1 << 1, kRemoteRead = 1 << 2, kMwBind = 1 << 4 };
constexpr Access operator|(Access a, Access b) { return Access(unsigned(a) | unsigned(b)); }
constexpr bool has(Access set, Access flag) { return (unsigned(set) & unsigned(flag)) == unsigned(flag); }

// Sge: struct ibv_sge. addr is a virtual address inside the region that lkey names; length in octets.
struct Sge {
  std::uint64_t addr = 0;
  std::uint32_t length = 0;
  std::uint32_t lkey = 0;
};

// WrOpcode: enum ibv_wr_opcode, as far as iWARP has a counterpart.
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
constexpr SendFlags operator|(SendFlags a, SendFlags b) { return SendFlags(unsigned(a) | unsigned(b)); }
constexpr bool has(SendFlags set, SendFlags flag) { return (unsigned(set) & unsigned(flag)) == unsigned(flag); }

// SendWr: struct ibv_send_wr, without the chain. sg_list is copied by post_send; the memory that it names belongs to
// the device until the completion was polled (with kInline it is copied too).
struct SendWr {
  std::uint64_t wr_id = 0;
  std::span<const Sge> sg_list;
  WrOpcode opcode = WrOpcode::kSend;
  SendFlags send_flags = SendFlags::kSignaled;
  std::uint32_t invalidate_rkey = 0;  // kSendWithInv, kLocalInv
  std::uint64_t remote_addr = 0;      // kRdmaWrite, kRdmaRead
  std::uint32_t rkey = 0;
};

// RecvWr: struct ibv_recv_wr.
struct RecvWr {
  std::uint64_t wr_id = 0;
  std::span<const Sge> sg_list;
};

// WcStatus: enum ibv_wc_status, the values that iWARP can produce.
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
};

// The name ibv_wc_status_str(3) would print; never null.
const char* wc_status_str(WcStatus status);

enum class WcOpcode : std::uint8_t { kSend, kRdmaWrite, kRdmaRead, kCompSwap, kFetchAdd, kBindMw, kLocalInv, kRecv };

enum class WcFlags : unsigned { kNone = 0, kWithImm = 1 << 1, kWithInv = 1 << 3 };
constexpr bool has(WcFlags set, WcFlags flag) { return (unsigned(set) & unsigned(flag)) == unsigned(flag); }

// Wc: struct ibv_wc. With a status other than kSuccess only wr_id, status, qp_num and vendor_err mean anything.
struct Wc {
  std::uint64_t wr_id = 0;
  WcStatus status = WcStatus::kSuccess;
  WcOpcode opcode = WcOpcode::kSend;
  WcFlags wc_flags = WcFlags::kNone;
  std::uint32_t vendor_err = 0;  // soft: the Terminate's control octets layer<<12 | etype<<8 | code, 0 for none
  std::uint32_t byte_len = 0;    // kRecv and kRdmaRead
  std::uint32_t qp_num = 0;
  std::uint32_t invalidated_rkey = 0;  // with kWithInv
};

// Caps: what a device can do and how much of it. Engines ask this, never the name of a backend.
struct Caps {
  bool mem_windows_type2 = false;       // remote invalidation from user space needs them
  bool remote_invalidation = false;     // Send with Invalidate is understood on receipt
  bool read_sink_needs_remote_write = false;  // classic iWARP verbs: the sink of an RDMA Read is a remote write target
  bool imm_data = false;                // 32-bit immediates of ibverbs
  std::uint32_t max_qp_wr = 0;
  std::uint32_t max_sge = 0;
  std::uint32_t max_sge_rd = 0;         // sges of a Read's sink
  std::uint32_t max_inline_data = 0;    // octets
  std::uint32_t max_cqe = 0;
  std::uint32_t max_qp_rd_atom = 0;     // IRD a connection may ask for
  std::uint32_t max_qp_init_rd_atom = 0;  // ORD
  std::uint32_t max_private_data = 0;   // octets that connect and accept carry
};

// QpCounters: what went over the wire for one queue pair. Messages and octets; the soft RNIC only, zero elsewhere.
struct QpCounters {
  std::uint64_t sends_tx = 0, sends_rx = 0;
  std::uint64_t writes_tx = 0, writes_rx = 0, write_octets_tx = 0, write_octets_rx = 0;
  std::uint64_t reads_tx = 0, reads_rx = 0, read_octets_tx = 0, read_octets_rx = 0;
};

}  // namespace weft::verbs
