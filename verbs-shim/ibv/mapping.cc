// A compile-time check that the API fits libibverbs and librdmacm: for every call of the API, the call behind it that a
// backend would make, and the conversions between their words and ours. Built as an object wherever the two headers are
// found; linked into nothing and called by nobody.
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "verbs-shim/api/cm.h"
#include "verbs-shim/api/verbs.h"

namespace weft::verbs::ibv_mapping {
namespace {

// ---- words

constexpr int to_ibv(Access access) {
  return (has(access, Access::kLocalWrite) ? IBV_ACCESS_LOCAL_WRITE : 0) |
         (has(access, Access::kRemoteWrite) ? IBV_ACCESS_REMOTE_WRITE : 0) |
         (has(access, Access::kRemoteRead) ? IBV_ACCESS_REMOTE_READ : 0) |
         (has(access, Access::kRemoteAtomic) ? IBV_ACCESS_REMOTE_ATOMIC : 0) |
         (has(access, Access::kMwBind) ? IBV_ACCESS_MW_BIND : 0);
}
static_assert(to_ibv(Access::kLocalWrite | Access::kMwBind) ==
              (static_cast<int>(IBV_ACCESS_LOCAL_WRITE) | static_cast<int>(IBV_ACCESS_MW_BIND)));

constexpr unsigned to_ibv(SendFlags flags) {
  return static_cast<unsigned>(flags);
}
static_assert(static_cast<unsigned>(SendFlags::kFence) == IBV_SEND_FENCE);
static_assert(static_cast<unsigned>(SendFlags::kSignaled) == IBV_SEND_SIGNALED);
static_assert(static_cast<unsigned>(SendFlags::kSolicited) == IBV_SEND_SOLICITED);
static_assert(static_cast<unsigned>(SendFlags::kInline) == IBV_SEND_INLINE);

constexpr ibv_wr_opcode to_ibv(WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::kRdmaWrite: return IBV_WR_RDMA_WRITE;
    case WrOpcode::kRdmaWriteWithImm: return IBV_WR_RDMA_WRITE_WITH_IMM;
    case WrOpcode::kSend: return IBV_WR_SEND;
    case WrOpcode::kSendWithImm: return IBV_WR_SEND_WITH_IMM;
    case WrOpcode::kRdmaRead: return IBV_WR_RDMA_READ;
    case WrOpcode::kAtomicCmpAndSwp: return IBV_WR_ATOMIC_CMP_AND_SWP;
    case WrOpcode::kAtomicFetchAndAdd: return IBV_WR_ATOMIC_FETCH_AND_ADD;
    case WrOpcode::kLocalInv: return IBV_WR_LOCAL_INV;
    case WrOpcode::kBindMw: return IBV_WR_BIND_MW;
    case WrOpcode::kSendWithInv: return IBV_WR_SEND_WITH_INV;
  }
  return IBV_WR_SEND;
}
static_assert(to_ibv(WrOpcode::kSendWithInv) == IBV_WR_SEND_WITH_INV);

// Statuses that iWARP has no use for (retries, EECs ...) become kGeneralErr.
constexpr WcStatus from_ibv(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS: return WcStatus::kSuccess;
    case IBV_WC_LOC_LEN_ERR: return WcStatus::kLocLenErr;
    case IBV_WC_LOC_QP_OP_ERR: return WcStatus::kLocQpOpErr;
    case IBV_WC_LOC_PROT_ERR: return WcStatus::kLocProtErr;
    case IBV_WC_WR_FLUSH_ERR: return WcStatus::kWrFlushErr;
    case IBV_WC_MW_BIND_ERR: return WcStatus::kMwBindErr;
    case IBV_WC_BAD_RESP_ERR: return WcStatus::kBadRespErr;
    case IBV_WC_LOC_ACCESS_ERR: return WcStatus::kLocAccessErr;
    case IBV_WC_REM_INV_REQ_ERR: return WcStatus::kRemInvReqErr;
    case IBV_WC_REM_ACCESS_ERR: return WcStatus::kRemAccessErr;
    case IBV_WC_REM_OP_ERR: return WcStatus::kRemOpErr;
    case IBV_WC_FATAL_ERR: return WcStatus::kFatalErr;
    default: return WcStatus::kGeneralErr;
  }
}
static_assert(from_ibv(IBV_WC_RNR_RETRY_EXC_ERR) == WcStatus::kGeneralErr);

constexpr WcOpcode from_ibv(ibv_wc_opcode opcode) {
  switch (opcode) {
    case IBV_WC_RDMA_WRITE: return WcOpcode::kRdmaWrite;
    case IBV_WC_RDMA_READ: return WcOpcode::kRdmaRead;
    case IBV_WC_COMP_SWAP: return WcOpcode::kCompSwap;
    case IBV_WC_FETCH_ADD: return WcOpcode::kFetchAdd;
    case IBV_WC_BIND_MW: return WcOpcode::kBindMw;
    case IBV_WC_LOCAL_INV: return WcOpcode::kLocalInv;
    case IBV_WC_RECV: return WcOpcode::kRecv;
    case IBV_WC_RECV_RDMA_WITH_IMM: return WcOpcode::kRecvRdmaWithImm;
    default: return WcOpcode::kSend;
  }
}
static_assert(static_cast<unsigned>(WcFlags::kWithImm) == IBV_WC_WITH_IMM);
static_assert(static_cast<unsigned>(WcFlags::kWithInv) == IBV_WC_WITH_INV);

constexpr QpState from_ibv(ibv_qp_state state) {
  switch (state) {
    case IBV_QPS_RESET: return QpState::kReset;
    case IBV_QPS_INIT: return QpState::kInit;
    case IBV_QPS_RTR: return QpState::kRtr;
    case IBV_QPS_RTS: return QpState::kRts;
    case IBV_QPS_SQD: return QpState::kSqd;
    case IBV_QPS_SQE: return QpState::kSqe;
    default: return QpState::kErr;
  }
}

// Nothing is named that the API has no word for: an unknown event would be shown as a failed connect.
constexpr CmEventType from_ibv(rdma_cm_event_type type) {
  switch (type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED: return CmEventType::kAddrResolved;
    case RDMA_CM_EVENT_ADDR_ERROR: return CmEventType::kAddrError;
    case RDMA_CM_EVENT_ROUTE_RESOLVED: return CmEventType::kRouteResolved;
    case RDMA_CM_EVENT_ROUTE_ERROR: return CmEventType::kRouteError;
    case RDMA_CM_EVENT_CONNECT_REQUEST: return CmEventType::kConnectRequest;
    case RDMA_CM_EVENT_UNREACHABLE: return CmEventType::kUnreachable;
    case RDMA_CM_EVENT_REJECTED: return CmEventType::kRejected;
    case RDMA_CM_EVENT_ESTABLISHED: return CmEventType::kEstablished;
    case RDMA_CM_EVENT_DISCONNECTED: return CmEventType::kDisconnected;
    case RDMA_CM_EVENT_DEVICE_REMOVAL: return CmEventType::kDeviceRemoval;
    default: return CmEventType::kConnectError;
  }
}

// ---- structures: field by field, so that a width that does not fit is an error (-Wconversion)

ibv_sge to_ibv(const Sge& sge) {
  return {.addr = sge.addr, .length = sge.length, .lkey = sge.lkey};
}

// sges: room for wr.sg_list.size() elements. mw and mr: those behind wr.bind_mw, null without.
ibv_send_wr to_ibv(const SendWr& wr, ibv_sge* sges, ibv_mw* mw, ibv_mr* mr) {
  for (std::size_t i = 0; i < wr.sg_list.size(); ++i) sges[i] = to_ibv(wr.sg_list[i]);
  ibv_send_wr out{};
  out.wr_id = wr.wr_id;
  out.sg_list = sges;
  out.num_sge = static_cast<int>(wr.sg_list.size());
  out.opcode = to_ibv(wr.opcode);
  out.send_flags = to_ibv(wr.send_flags);
  switch (wr.opcode) {
    case WrOpcode::kSendWithInv:
    case WrOpcode::kLocalInv: out.invalidate_rkey = wr.invalidate_rkey; break;
    case WrOpcode::kBindMw:
      out.bind_mw.mw = mw;
      out.bind_mw.rkey = wr.bind_mw.rkey;
      out.bind_mw.bind_info = {.mr = mr,
                               .addr = wr.bind_mw.addr,
                               .length = wr.bind_mw.length,
                               .mw_access_flags = static_cast<unsigned>(to_ibv(wr.bind_mw.access))};
      break;
    case WrOpcode::kAtomicCmpAndSwp:
    case WrOpcode::kAtomicFetchAndAdd:
      out.wr.atomic = {.remote_addr = wr.remote_addr, .compare_add = wr.compare_add, .swap = wr.swap, .rkey = wr.rkey};
      break;
    case WrOpcode::kRdmaWriteWithImm: out.imm_data = wr.imm_data; [[fallthrough]];
    default: out.wr.rdma.remote_addr = wr.remote_addr; out.wr.rdma.rkey = wr.rkey;
  }
  return out;
}

ibv_recv_wr to_ibv(const RecvWr& wr, ibv_sge* sges) {
  for (std::size_t i = 0; i < wr.sg_list.size(); ++i) sges[i] = to_ibv(wr.sg_list[i]);
  ibv_recv_wr out{};
  out.wr_id = wr.wr_id;
  out.sg_list = sges;
  out.num_sge = static_cast<int>(wr.sg_list.size());
  return out;
}

Wc from_ibv(const ibv_wc& wc) {
  Wc out;
  out.wr_id = wc.wr_id;
  out.status = from_ibv(wc.status);
  out.opcode = from_ibv(wc.opcode);
  out.wc_flags = static_cast<WcFlags>(static_cast<unsigned>(wc.wc_flags) & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV));
  out.vendor_err = wc.vendor_err;
  out.byte_len = wc.byte_len;
  out.qp_num = wc.qp_num;
  if ((static_cast<unsigned>(wc.wc_flags) & IBV_WC_WITH_INV) != 0) out.invalidated_rkey = wc.invalidated_rkey;
  if ((static_cast<unsigned>(wc.wc_flags) & IBV_WC_WITH_IMM) != 0) out.imm_data = wc.imm_data;
  return out;
}

ibv_qp_init_attr to_ibv(const QpInitAttr& attr, ibv_cq* send_cq, ibv_cq* recv_cq) {
  ibv_qp_init_attr out{};
  out.send_cq = send_cq;
  out.recv_cq = recv_cq;
  out.cap.max_send_wr = attr.cap.max_send_wr;
  out.cap.max_recv_wr = attr.cap.max_recv_wr;
  out.cap.max_send_sge = attr.cap.max_send_sge;
  out.cap.max_recv_sge = attr.cap.max_recv_sge;
  out.cap.max_inline_data = attr.cap.max_inline_data;
  out.qp_type = IBV_QPT_RC;
  out.sq_sig_all = attr.sq_sig_all ? 1 : 0;
  return out;
}

// private_data_len has eight bits there: Caps::max_private_data of that backend is at most 255.
rdma_conn_param to_ibv(const ConnParam& param) {
  rdma_conn_param out{};
  out.private_data = param.private_data.data();
  out.private_data_len = static_cast<std::uint8_t>(param.private_data.size());
  out.responder_resources = param.responder_resources;
  out.initiator_depth = param.initiator_depth;
  return out;
}

Caps from_ibv(const ibv_device_attr& attr) {
  Caps out;
  out.mem_windows_type2 =
      (attr.device_cap_flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B)) != 0;
  out.remote_invalidation = out.mem_windows_type2;
  out.atomics = attr.atomic_cap != IBV_ATOMIC_NONE;
  out.max_qp_wr = static_cast<std::uint32_t>(attr.max_qp_wr);
  out.max_sge = static_cast<std::uint32_t>(attr.max_sge);
  out.max_sge_rd = static_cast<std::uint32_t>(attr.max_sge_rd);
  out.max_cqe = static_cast<std::uint32_t>(attr.max_cqe);
  out.max_qp_rd_atom = static_cast<std::uint32_t>(attr.max_qp_rd_atom);
  out.max_qp_init_rd_atom = static_cast<std::uint32_t>(attr.max_qp_init_rd_atom);
  out.max_private_data = 255;
  return out;
}

// ---- calls: the API's call, and the types of the functions behind it. Inline functions and macros of the C headers
// are taken by decltype of a call.

// Device: alloc_pd, create_comp_channel, create_cq. The Cq's own address is the cq_context that CompChannel::get_event
// gets back.
static_assert(std::is_same_v<decltype(&ibv_alloc_pd), ibv_pd* (*)(ibv_context*)>);
static_assert(std::is_same_v<decltype(&ibv_create_comp_channel), ibv_comp_channel* (*)(ibv_context*)>);
static_assert(std::is_same_v<decltype(&ibv_create_cq), ibv_cq* (*)(ibv_context*, int, void*, ibv_comp_channel*, int)>);
// Pd: reg_mr, and what ~Mr calls.
static_assert(
    std::is_same_v<decltype(ibv_reg_mr(static_cast<ibv_pd*>(nullptr), nullptr, std::size_t{}, int{})), ibv_mr*>);
static_assert(std::is_same_v<decltype(&ibv_dereg_mr), int (*)(ibv_mr*)>);
static_assert(std::is_same_v<decltype(ibv_mr::lkey), std::uint32_t> &&
              std::is_same_v<decltype(ibv_mr::rkey), std::uint32_t>);
// alloc_mw and what ~Mw calls; inc_rkey.
static_assert(std::is_same_v<decltype(ibv_alloc_mw(nullptr, IBV_MW_TYPE_2)), ibv_mw*>);
static_assert(std::is_same_v<decltype(ibv_dealloc_mw(nullptr)), int>);
static_assert(std::is_same_v<decltype(ibv_inc_rkey(std::uint32_t{})), std::uint32_t>);
// CompChannel: fd, get_event (the descriptor made nonblocking), acknowledged at once.
static_assert(std::is_same_v<decltype(ibv_comp_channel::fd), int>);
static_assert(std::is_same_v<decltype(&ibv_get_cq_event), int (*)(ibv_comp_channel*, ibv_cq**, void**)>);
static_assert(std::is_same_v<decltype(&ibv_ack_cq_events), void (*)(ibv_cq*, unsigned)>);
// Cq: poll, req_notify.
static_assert(std::is_same_v<decltype(ibv_poll_cq(nullptr, int{}, static_cast<ibv_wc*>(nullptr))), int>);
static_assert(std::is_same_v<decltype(ibv_req_notify_cq(nullptr, int{})), int>);
// Qp: post_send, post_recv.
static_assert(std::is_same_v<decltype(ibv_post_send(nullptr, static_cast<ibv_send_wr*>(nullptr),
                                                    static_cast<ibv_send_wr**>(nullptr))),
                             int>);
static_assert(std::is_same_v<decltype(ibv_post_recv(nullptr, static_cast<ibv_recv_wr*>(nullptr),
                                                    static_cast<ibv_recv_wr**>(nullptr))),
                             int>);
// CmChannel: fd, get_event, create_id.
static_assert(std::is_same_v<decltype(rdma_event_channel::fd), int>);
static_assert(std::is_same_v<decltype(&rdma_get_cm_event), int (*)(rdma_event_channel*, rdma_cm_event**)>);
static_assert(std::is_same_v<decltype(&rdma_ack_cm_event), int (*)(rdma_cm_event*)>);
static_assert(
    std::is_same_v<decltype(&rdma_create_id), int (*)(rdma_event_channel*, rdma_cm_id**, void*, rdma_port_space)>);
// CmId: bind_addr, listen, resolve_addr, resolve_route, create_qp, connect, accept, reject, disconnect, addresses.
static_assert(std::is_same_v<decltype(&rdma_bind_addr), int (*)(rdma_cm_id*, sockaddr*)>);
static_assert(std::is_same_v<decltype(&rdma_listen), int (*)(rdma_cm_id*, int)>);
static_assert(std::is_same_v<decltype(&rdma_resolve_addr), int (*)(rdma_cm_id*, sockaddr*, sockaddr*, int)>);
static_assert(std::is_same_v<decltype(&rdma_resolve_route), int (*)(rdma_cm_id*, int)>);
static_assert(std::is_same_v<decltype(&rdma_create_qp), int (*)(rdma_cm_id*, ibv_pd*, ibv_qp_init_attr*)>);
static_assert(std::is_same_v<decltype(&rdma_destroy_qp), void (*)(rdma_cm_id*)>);
static_assert(std::is_same_v<decltype(&rdma_connect), int (*)(rdma_cm_id*, rdma_conn_param*)>);
static_assert(std::is_same_v<decltype(&rdma_accept), int (*)(rdma_cm_id*, rdma_conn_param*)>);
static_assert(std::is_same_v<decltype(&rdma_reject), int (*)(rdma_cm_id*, const void*, std::uint8_t)>);
static_assert(std::is_same_v<decltype(&rdma_disconnect), int (*)(rdma_cm_id*)>);
static_assert(std::is_same_v<decltype(&rdma_destroy_id), int (*)(rdma_cm_id*)>);
static_assert(std::is_same_v<decltype(rdma_get_local_addr(nullptr)), sockaddr*>);
static_assert(std::is_same_v<decltype(rdma_get_peer_addr(nullptr)), sockaddr*>);

// One use of each conversion, so that none can rot unseen.
struct Uses {
  ibv_send_wr (*send)(const SendWr&, ibv_sge*, ibv_mw*, ibv_mr*) = to_ibv;
  ibv_recv_wr (*recv)(const RecvWr&, ibv_sge*) = to_ibv;
  Wc (*wc)(const ibv_wc&) = from_ibv;
  ibv_qp_init_attr (*qp)(const QpInitAttr&, ibv_cq*, ibv_cq*) = to_ibv;
  rdma_conn_param (*conn)(const ConnParam&) = to_ibv;
  Caps (*caps)(const ibv_device_attr&) = from_ibv;
  QpState (*state)(ibv_qp_state) = from_ibv;
  CmEventType (*event)(rdma_cm_event_type) = from_ibv;
};
[[maybe_unused]] constexpr Uses kUses;

}  // namespace
}  // namespace weft::verbs::ibv_mapping
