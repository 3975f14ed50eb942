#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <optional>
#include <string>

#include "verbs-shim/api/cm.h"
#include "verbs-shim/api/verbs.h"

// Translates between the types of the API and of libibverbs and librdmacm.
namespace weft::verbs::ibv {

// The most Sges of a request: posting uses an array on the stack.
inline constexpr std::size_t kMaxSge = 32;

int to_ibv(Access access);
unsigned to_ibv(SendFlags flags);
ibv_wr_opcode to_ibv(WrOpcode opcode);
ibv_qp_state to_ibv(QpState state);

// sges: room for wr.sg_list.size() elements. mw and mr: the kernel's objects for wr.bind_mw, null without a bind.
ibv_send_wr to_ibv(const SendWr& wr, ibv_sge* sges, ibv_mw* mw, ibv_mr* mr);
ibv_recv_wr to_ibv(const RecvWr& wr, ibv_sge* sges);
// Gives an empty list one empty element; the list has room for it. siw takes no receive without an element, and ignores
// empty elements.
void fill_empty(ibv_recv_wr& wr);
ibv_qp_init_attr to_ibv(const QpInitAttr& attr, ibv_cq* send_cq, ibv_cq* recv_cq, ibv_srq* srq);
// param.private_data has at most Caps::max_private_data octets, and outlives the result.
rdma_conn_param to_ibv(const ConnParam& param);

Wc from_ibv(const ibv_wc& wc);
WcStatus from_ibv(ibv_wc_status status);
WcOpcode from_ibv(ibv_wc_opcode opcode);
QpState from_ibv(ibv_qp_state state);
ConnParam from_ibv(const rdma_conn_param& param);
Caps from_ibv(const ibv_device_attr& attr, Transport transport);
// Nothing for events that the API does not have.
std::optional<CmEventType> from_ibv(rdma_cm_event_type type);
std::optional<AsyncEventType> from_ibv(ibv_event_type type);

Transport transport_of(const ibv_device& device, const ibv_port_attr& port);

// Reject reasons of InfiniBand's connection manager (IBTA 12.6.7.2). They are not errno values.
inline constexpr int kRejInvalidServiceId = 8;
inline constexpr int kRejConsumerDefined = 28;
std::string reject_text(int reason);

// Error of a call that failed: "what: strerror", and for well-known errno values the remedy.
Error call_error(const std::string& what, int errno_value);
// Error of an argument that no device takes: EINVAL.
Error invalid(std::string what);
// Error of rdma_bind_addr. /dev/infiniband is open by then, so the address or the port was refused.
Error bind_error(const std::string& address, const std::string& device, int errno_value);

}  // namespace weft::verbs::ibv
