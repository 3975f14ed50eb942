#include "verbs-shim/ibv/mapping.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace weft::verbs::ibv {

int to_ibv(Access access) {
  return (has(access, Access::kLocalWrite) ? IBV_ACCESS_LOCAL_WRITE : 0) |
         (has(access, Access::kRemoteWrite) ? IBV_ACCESS_REMOTE_WRITE : 0) |
         (has(access, Access::kRemoteRead) ? IBV_ACCESS_REMOTE_READ : 0) |
         (has(access, Access::kRemoteAtomic) ? IBV_ACCESS_REMOTE_ATOMIC : 0) |
         (has(access, Access::kMwBind) ? IBV_ACCESS_MW_BIND : 0);
}

// The values are the same, so the flags need no translation.
static_assert(static_cast<unsigned>(SendFlags::kFence) == IBV_SEND_FENCE);
static_assert(static_cast<unsigned>(SendFlags::kSignaled) == IBV_SEND_SIGNALED);
static_assert(static_cast<unsigned>(SendFlags::kSolicited) == IBV_SEND_SOLICITED);
static_assert(static_cast<unsigned>(SendFlags::kInline) == IBV_SEND_INLINE);
static_assert(static_cast<unsigned>(WcFlags::kWithImm) == IBV_WC_WITH_IMM);
static_assert(static_cast<unsigned>(WcFlags::kWithInv) == IBV_WC_WITH_INV);

unsigned to_ibv(SendFlags flags) {
  return static_cast<unsigned>(flags);
}

ibv_wr_opcode to_ibv(WrOpcode opcode) {
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

ibv_qp_state to_ibv(QpState state) {
  switch (state) {
    case QpState::kReset: return IBV_QPS_RESET;
    case QpState::kInit: return IBV_QPS_INIT;
    case QpState::kRtr: return IBV_QPS_RTR;
    case QpState::kRts: return IBV_QPS_RTS;
    case QpState::kSqd: return IBV_QPS_SQD;
    case QpState::kSqe: return IBV_QPS_SQE;
    case QpState::kErr: return IBV_QPS_ERR;
  }
  return IBV_QPS_ERR;
}

namespace {

// Returns the number of copied elements. Empty elements are left out: siw's kernel module crashes on them (a null
// pointer in siw_tx_hdt), and some RNICs read a length of 0 as 2^31.
int copy(std::span<const Sge> list, ibv_sge* sges) {
  int num = 0;
  for (const Sge& sge : list) {
    if (sge.length != 0) sges[num++] = {.addr = sge.addr, .length = sge.length, .lkey = sge.lkey};
  }
  return num;
}

}  // namespace

ibv_send_wr to_ibv(const SendWr& wr, ibv_sge* sges, ibv_mw* mw, ibv_mr* mr) {
  ibv_send_wr out{};
  out.wr_id = wr.wr_id;
  out.sg_list = sges;
  out.num_sge = copy(wr.sg_list, sges);
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
  ibv_recv_wr out{};
  out.wr_id = wr.wr_id;
  out.sg_list = sges;
  out.num_sge = copy(wr.sg_list, sges);
  return out;
}

void fill_empty(ibv_recv_wr& wr) {
  if (wr.num_sge != 0) return;
  wr.sg_list[0] = {};
  wr.num_sge = 1;
}

ibv_qp_init_attr to_ibv(const QpInitAttr& attr, ibv_cq* send_cq, ibv_cq* recv_cq, ibv_srq* srq) {
  ibv_qp_init_attr out{};
  out.send_cq = send_cq;
  out.recv_cq = recv_cq;
  out.srq = srq;
  out.cap.max_send_wr = attr.cap.max_send_wr;
  out.cap.max_recv_wr = srq != nullptr ? 0 : attr.cap.max_recv_wr;
  out.cap.max_send_sge = attr.cap.max_send_sge;
  out.cap.max_recv_sge = srq != nullptr ? 0 : attr.cap.max_recv_sge;
  out.cap.max_inline_data = attr.cap.max_inline_data;
  out.qp_type = IBV_QPT_RC;
  out.sq_sig_all = attr.sq_sig_all ? 1 : 0;
  return out;
}

rdma_conn_param to_ibv(const ConnParam& param) {
  rdma_conn_param out{};
  out.private_data = param.private_data.data();
  out.private_data_len = static_cast<std::uint8_t>(param.private_data.size());
  out.responder_resources = param.responder_resources;
  out.initiator_depth = param.initiator_depth;
  // For InfiniBand and RoCE only: they wait for a peer that is slow to post receives or to answer. 7 means "for ever"
  // for receives, and is the maximum for the rest.
  constexpr std::uint8_t kMostRetries = 7;
  out.flow_control = 1;
  out.retry_count = kMostRetries;
  out.rnr_retry_count = kMostRetries;
  return out;
}

// Statuses that a reliable connection cannot produce (EECs, datagrams) become kGeneralErr.
WcStatus from_ibv(ibv_wc_status status) {
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
    case IBV_WC_RETRY_EXC_ERR: return WcStatus::kRetryExcErr;
    case IBV_WC_RNR_RETRY_EXC_ERR: return WcStatus::kRnrRetryExcErr;
    case IBV_WC_FATAL_ERR: return WcStatus::kFatalErr;
    default: return WcStatus::kGeneralErr;
  }
}

WcOpcode from_ibv(ibv_wc_opcode opcode) {
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

QpState from_ibv(ibv_qp_state state) {
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

std::optional<CmEventType> from_ibv(rdma_cm_event_type type) {
  switch (type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED: return CmEventType::kAddrResolved;
    case RDMA_CM_EVENT_ADDR_ERROR: return CmEventType::kAddrError;
    case RDMA_CM_EVENT_ROUTE_RESOLVED: return CmEventType::kRouteResolved;
    case RDMA_CM_EVENT_ROUTE_ERROR: return CmEventType::kRouteError;
    case RDMA_CM_EVENT_CONNECT_REQUEST: return CmEventType::kConnectRequest;
    case RDMA_CM_EVENT_CONNECT_ERROR: return CmEventType::kConnectError;
    case RDMA_CM_EVENT_UNREACHABLE: return CmEventType::kUnreachable;
    case RDMA_CM_EVENT_REJECTED: return CmEventType::kRejected;
    case RDMA_CM_EVENT_ESTABLISHED: return CmEventType::kEstablished;
    case RDMA_CM_EVENT_DISCONNECTED: return CmEventType::kDisconnected;
    case RDMA_CM_EVENT_DEVICE_REMOVAL: return CmEventType::kDeviceRemoval;
    default: return std::nullopt;
  }
}

std::optional<AsyncEventType> from_ibv(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_CQ_ERR: return AsyncEventType::kCqErr;
    case IBV_EVENT_QP_FATAL: return AsyncEventType::kQpFatal;
    case IBV_EVENT_QP_REQ_ERR: return AsyncEventType::kQpReqErr;
    case IBV_EVENT_QP_ACCESS_ERR: return AsyncEventType::kQpAccessErr;
    case IBV_EVENT_COMM_EST: return AsyncEventType::kCommEst;
    case IBV_EVENT_QP_LAST_WQE_REACHED: return AsyncEventType::kQpLastWqeReached;
    case IBV_EVENT_SRQ_ERR: return AsyncEventType::kSrqErr;
    case IBV_EVENT_SRQ_LIMIT_REACHED: return AsyncEventType::kSrqLimitReached;
    case IBV_EVENT_PORT_ACTIVE: return AsyncEventType::kPortActive;
    case IBV_EVENT_PORT_ERR: return AsyncEventType::kPortErr;
    case IBV_EVENT_DEVICE_FATAL: return AsyncEventType::kDeviceFatal;
    default: return std::nullopt;
  }
}

Wc from_ibv(const ibv_wc& wc) {
  Wc out;
  out.wr_id = wc.wr_id;
  out.status = from_ibv(wc.status);
  out.opcode = from_ibv(wc.opcode);
  const unsigned flags = wc.wc_flags;
  out.wc_flags = static_cast<WcFlags>(flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV));
  out.vendor_err = wc.vendor_err;
  out.byte_len = wc.byte_len;
  out.qp_num = wc.qp_num;
  if ((flags & IBV_WC_WITH_INV) != 0) out.invalidated_rkey = wc.invalidated_rkey;
  if ((flags & IBV_WC_WITH_IMM) != 0) out.imm_data = wc.imm_data;
  return out;
}

ConnParam from_ibv(const rdma_conn_param& param) {
  ConnParam out;
  const auto* data = static_cast<const std::uint8_t*>(param.private_data);
  if (data != nullptr) out.private_data.assign(data, data + param.private_data_len);
  out.responder_resources = param.responder_resources;
  out.initiator_depth = param.initiator_depth;
  return out;
}

Transport transport_of(const ibv_device& device, const ibv_port_attr& port) {
  switch (device.transport_type) {
    case IBV_TRANSPORT_IWARP: return Transport::kIwarp;
    case IBV_TRANSPORT_IB:
      return port.link_layer == IBV_LINK_LAYER_ETHERNET ? Transport::kRoce : Transport::kInfiniBand;
    default: return Transport::kOther;
  }
}

Caps from_ibv(const ibv_device_attr& attr, Transport transport) {
  const auto count = [](int value) { return static_cast<std::uint32_t>(std::max(value, 0)); };
  const bool iwarp = transport == Transport::kIwarp;
  Caps out;
  out.mem_windows_type2 =
      (attr.device_cap_flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B)) != 0;
  out.remote_invalidation = out.mem_windows_type2;
  out.read_sink_needs_remote_write = iwarp;
  out.imm_data = !iwarp;
  out.own_progress = true;
  out.atomics = attr.atomic_cap != IBV_ATOMIC_NONE;
  out.max_qp_wr = count(std::max(attr.max_qp_wr, 1) - 1);  // one place is the marker's (qp.h)
  out.max_sge = std::min<std::uint32_t>(count(attr.max_sge), kMaxSge);
  out.max_sge_rd = std::clamp<std::uint32_t>(count(attr.max_sge_rd), 1, std::max(out.max_sge, 1u));
  out.max_cqe = count(attr.max_cqe);
  // Eight bits in struct rdma_conn_param; 255 is "as much as the device has" there.
  constexpr std::uint32_t kMostDepth = 254;
  out.max_qp_rd_atom = std::min(count(attr.max_qp_rd_atom), kMostDepth);
  out.max_qp_init_rd_atom = std::min(count(attr.max_qp_init_rd_atom), kMostDepth);
  // iWARP: siw counts the octets in 8 bits, and RFC 6581's four octets are among them. A REQ of InfiniBand has 92
  // octets, of which librdmacm's header takes 36.
  out.max_private_data = iwarp ? 251 : 56;
  out.max_srq = count(attr.max_srq);
  out.max_srq_wr = count(attr.max_srq_wr);
  out.max_srq_sge = std::min<std::uint32_t>(count(attr.max_srq_sge), kMaxSge);
  return out;
}

std::string reject_text(int reason) {
  switch (reason) {
    case 1: return "no queue pair";
    case 4: return "timeout";
    case kRejInvalidServiceId: return "no program listens there";
    case 10: return "stale connection";
    case kRejConsumerDefined: return "by the application";
    default: return "reason " + std::to_string(reason);
  }
}

namespace {

bool is_refusal(int errno_value) {
  return errno_value == EACCES || errno_value == EPERM;
}

Error plain_error(const std::string& what, int errno_value) {
  errno_value = std::abs(errno_value);  // some providers return it negative
  return {errno_value, what + ": " + std::strerror(errno_value)};
}

}  // namespace

Error invalid(std::string what) {
  return {EINVAL, std::move(what)};
}

Error call_error(const std::string& what, int errno_value) {
  Error error = plain_error(what, errno_value);
  if (is_refusal(error.errno_value)) {
    error.message += "; this user may not use /dev/infiniband (udev rules of rdma-core, or group rdma)";
  }
  return error;
}

Error bind_error(const std::string& address, const std::string& device, int errno_value) {
  Error error = plain_error("cannot bind to " + address, errno_value);
  if (is_refusal(error.errno_value)) {
    error.message += "; ports below 1024 are for root and CAP_NET_BIND_SERVICE";
  } else if (error.errno_value == EADDRNOTAVAIL || error.errno_value == ENODEV) {
    error.message += "; it must be an address of the network interface below RDMA device " + device;
  }
  return error;
}

}  // namespace weft::verbs::ibv
