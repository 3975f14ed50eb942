#include "verbs-shim/soft/translate.h"

#include <cerrno>
#include <cstring>

#include "verbs-shim/soft/sges.h"

namespace weft::verbs::soft {
namespace {

WcStatus wc_status(rdmap::WorkStatus status) {
  switch (status) {
    case rdmap::WorkStatus::kSuccess: return WcStatus::kSuccess;
    case rdmap::WorkStatus::kFlushed: return WcStatus::kWrFlushErr;
    case rdmap::WorkStatus::kLocalLength: return WcStatus::kLocLenErr;
    case rdmap::WorkStatus::kLocalProtection: return WcStatus::kLocProtErr;
    case rdmap::WorkStatus::kLocalOperation: return WcStatus::kLocQpOpErr;
    case rdmap::WorkStatus::kRemoteAccess: return WcStatus::kRemAccessErr;
    case rdmap::WorkStatus::kRemoteOperation: return WcStatus::kRemOpErr;
    case rdmap::WorkStatus::kRemoteInvalidRequest: return WcStatus::kRemInvReqErr;
    case rdmap::WorkStatus::kWindow: return WcStatus::kMwBindErr;
    case rdmap::WorkStatus::kFatal: return WcStatus::kFatalErr;
  }
  return WcStatus::kGeneralErr;
}

rdmap::AtomicOperands atomic_operands(const SendWr& wr) {
  rdmap::AtomicOperands out;
  if (wr.opcode == WrOpcode::kAtomicFetchAndAdd) {
    out.add_swap = wr.compare_add;
    return out;
  }
  out.op = rdmap::AtomicOp::kCmpSwap;
  out.compare = wr.compare_add;
  out.add_swap = wr.swap;
  out.add_swap_mask = ~std::uint64_t{0};
  return out;
}

rdmap::ImmediateData immediate_data(std::uint32_t imm_data) {
  rdmap::ImmediateData out{};
  std::memcpy(out.data(), &imm_data, sizeof(imm_data));
  return out;
}

ddp::WindowBind window_bind(const MwBind& bind) {
  ddp::WindowBind out;
  out.stag = ddp::Stag{bind.rkey};
  out.region = ddp::Stag{bind.mr->lkey()};
  out.to = bind.addr;
  out.len = bind.length;
  out.remote_read = has(bind.access, Access::kRemoteRead);
  out.remote_write = has(bind.access, Access::kRemoteWrite);
  out.remote_atomic = has(bind.access, Access::kRemoteAtomic);
  return out;
}

Status check_bind(const SendWr& wr) {
  const MwBind& bind = wr.bind_mw;
  constexpr unsigned kAllowed = unsigned(Access::kRemoteRead | Access::kRemoteWrite | Access::kRemoteAtomic);
  constexpr std::uint32_t kKeyMask = 0xff;
  if (bind.mw == nullptr || bind.mr == nullptr) return Error{EINVAL, "a bind names a window and a region"};
  if (((bind.rkey ^ bind.mw->rkey()) & ~kKeyMask) != 0)
    return Error{EINVAL, "a bind may change the lower byte of the window's rkey only"};
  if ((unsigned(bind.access) & ~kAllowed) != 0) return Error{EINVAL, "a window has remote access flags only"};
  if (bind.length == 0) return Error{EINVAL, "an empty window"};
  return {};
}

bool is_atomic(WrOpcode opcode) {
  return opcode == WrOpcode::kAtomicCmpAndSwp || opcode == WrOpcode::kAtomicFetchAndAdd;
}
bool is_local(WrOpcode opcode) {
  return opcode == WrOpcode::kBindMw || opcode == WrOpcode::kLocalInv;
}

std::uint32_t vendor_err(const rdmap::Terminate& terminate) {
  return std::uint32_t{static_cast<std::uint8_t>(terminate.layer)} << 12 | std::uint32_t{terminate.etype} << 8 |
         terminate.code;
}

void copy_inline(std::span<const Sge> from, std::vector<std::uint8_t>& to) {
  for (const Sge& sge : from) {
    if (sge.length == 0) continue;
    // The caller's own pointer, passed as a number as in ibv_sge.
    const auto* octets = reinterpret_cast<const std::uint8_t*>(static_cast<std::uintptr_t>(sge.addr));
    to.insert(to.end(), octets, octets + sge.length);
  }
}

}  // namespace

std::optional<SendOpcodes> send_op(WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::kSend: return SendOpcodes{rdmap::SendOp::kSend, WcOpcode::kSend};
    case WrOpcode::kSendWithInv: return SendOpcodes{rdmap::SendOp::kSendInvalidate, WcOpcode::kSend};
    case WrOpcode::kRdmaWrite: return SendOpcodes{rdmap::SendOp::kRdmaWrite, WcOpcode::kRdmaWrite};
    case WrOpcode::kRdmaRead: return SendOpcodes{rdmap::SendOp::kRdmaRead, WcOpcode::kRdmaRead};
    case WrOpcode::kRdmaWriteWithImm: return SendOpcodes{rdmap::SendOp::kWriteImmediate, WcOpcode::kRdmaWrite};
    case WrOpcode::kAtomicCmpAndSwp: return SendOpcodes{rdmap::SendOp::kAtomic, WcOpcode::kCompSwap};
    case WrOpcode::kAtomicFetchAndAdd: return SendOpcodes{rdmap::SendOp::kAtomic, WcOpcode::kFetchAdd};
    case WrOpcode::kBindMw: return SendOpcodes{rdmap::SendOp::kBindWindow, WcOpcode::kBindMw};
    case WrOpcode::kLocalInv: return SendOpcodes{rdmap::SendOp::kInvalidateWindow, WcOpcode::kLocalInv};
    case WrOpcode::kSendWithImm: return std::nullopt;  // WrOpcode says why
  }
  return std::nullopt;
}

Status check_send(const SendWr& wr, const QpCap& cap) {
  if (wr.sg_list.size() > cap.max_send_sge) {
    return Error{EINVAL, "more scatter/gather elements than max_send_sge of the queue pair"};
  }
  std::uint64_t len = 0;
  for (const Sge& sge : wr.sg_list) len += sge.length;
  if (is_atomic(wr.opcode) && len != rdmap::kAtomicLen)
    return Error{EINVAL, "an atomic's scatter/gather list has 8 bytes, for what was there before"};
  if (is_local(wr.opcode) && len != 0) return Error{EINVAL, "binding and invalidating a window move no bytes"};
  if (wr.opcode == WrOpcode::kBindMw) {
    if (Status status = check_bind(wr); !status) return status;
  }
  if (has(wr.send_flags, SendFlags::kInline)) {
    if (wr.opcode == WrOpcode::kRdmaRead || is_atomic(wr.opcode))
      return Error{EINVAL, "data that is read cannot be inline"};
    if (len > cap.max_inline_data) return Error{EINVAL, "more inline data than the queue pair was created for"};
  }
  return {};
}

AsyncEventType event_of(const rdmap::Terminate& terminate) {
  constexpr std::uint8_t kProtection = 1;  // of RDMAP, tagged buffers of DDP
  constexpr std::uint8_t kOperation = 2;   // of RDMAP, untagged buffers of DDP
  constexpr std::uint8_t kTaggedVersion = 0x04;
  if (terminate == rdmap::kStreamCatastrophic || terminate.layer == rdmap::Layer::kLlp) return AsyncEventType::kQpFatal;
  if (terminate.etype == kOperation) return AsyncEventType::kQpReqErr;
  if (terminate.etype != kProtection) return AsyncEventType::kQpFatal;
  if (terminate.layer == rdmap::Layer::kDdp && terminate.code == kTaggedVersion) return AsyncEventType::kQpReqErr;
  return AsyncEventType::kQpAccessErr;
}

QpCounters to_api(const rdmap::StreamCounters& in) {
  QpCounters out;
  out.sends_tx = in.sends_tx;
  out.sends_rx = in.sends_rx;
  out.send_octets_tx = in.send_octets_tx;
  out.send_octets_rx = in.send_octets_rx;
  out.writes_tx = in.writes_tx;
  out.writes_rx = in.writes_rx;
  out.write_octets_tx = in.write_octets_tx;
  out.write_octets_rx = in.write_octets_rx;
  out.reads_tx = in.reads_tx;
  out.reads_rx = in.reads_rx;
  out.read_octets_tx = in.read_octets_tx;
  out.read_octets_rx = in.read_octets_rx;
  out.immediates_tx = in.immediates_tx;
  out.immediates_rx = in.immediates_rx;
  out.atomics_tx = in.atomics_tx;
  out.atomics_rx = in.atomics_rx;
  return out;
}

void to_request(const SendWr& wr, const SendOpcodes& op, bool signaled, rdmap::SendWr& out) {
  out.wr_id = wr.wr_id;
  out.sg_list.clear();
  out.inline_data.clear();
  out.args = {};
  out.op = op.wire;
  out.note = static_cast<std::uint16_t>(static_cast<std::uint16_t>(op.completed) | (signaled ? kSignaled : 0));
  out.solicited = has(wr.send_flags, SendFlags::kSolicited);
  out.fence = has(wr.send_flags, SendFlags::kFence);
  if (has(wr.send_flags, SendFlags::kInline)) {
    copy_inline(wr.sg_list, out.inline_data);
  } else {
    copy_sges(wr.sg_list, out.sg_list);
  }
  const bool invalidates = wr.opcode == WrOpcode::kSendWithInv || wr.opcode == WrOpcode::kLocalInv;
  out.remote_stag = ddp::Stag{invalidates ? wr.invalidate_rkey : wr.rkey};
  out.remote_to = wr.remote_addr;
  if (is_atomic(wr.opcode)) out.args = atomic_operands(wr);
  if (wr.opcode == WrOpcode::kRdmaWriteWithImm) out.args = immediate_data(wr.imm_data);
  if (wr.opcode == WrOpcode::kBindMw) out.args = window_bind(wr.bind_mw);
}

WcOpcode opcode_of(const rdmap::SendWr& request) {
  return static_cast<WcOpcode>(request.note & 0xff);
}

Wc to_wc(const rdmap::Completion& completion) {
  Wc wc{.wr_id = completion.wr_id, .status = wc_status(completion.status)};
  wc.opcode = completion.op == rdmap::WorkOp::kRecv ? WcOpcode::kRecv : static_cast<WcOpcode>(completion.note & 0xff);
  wc.byte_len = completion.byte_len;
  if (completion.immediate) {
    wc.opcode = WcOpcode::kRecvRdmaWithImm;
    wc.wc_flags = WcFlags::kWithImm;
    std::memcpy(&wc.imm_data, completion.immediate->data(), sizeof(wc.imm_data));
  }
  if (completion.invalidated) {
    wc.wc_flags = WcFlags::kWithInv;
    wc.invalidated_rkey = completion.invalidated->value;
  }
  if (completion.terminate) wc.vendor_err = vendor_err(*completion.terminate);
  return wc;
}

}  // namespace weft::verbs::soft
