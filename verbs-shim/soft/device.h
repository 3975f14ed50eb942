#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "verbs-shim/api/cm.h"
#include "verbs-shim/api/log.h"
#include "verbs-shim/api/verbs.h"
#include "verbs-shim/soft/trace.h"

namespace weft::verbs {

// Rtr is the ready-to-receive indication that connect offers (RFC 6581 section 9.2). kAuto: the peer profile decides.
enum class Rtr : std::uint8_t { kAuto, kNone, kSend, kWrite, kRead };

// SoftConfig configures one soft RNIC; all its connections share the settings. Sizes are in octets. The `weft` program
// has the same defaults.
struct SoftConfig {
  // ---- MPA, DDP and RDMAP
  std::uint8_t mpa_revision = 2;  // the revision that connect asks for; a listener answers revisions 1 to this one. 0:
                                  // like 1, and RDMAC peers are served, too (RFC 5044 appendix C)
  bool fall_back = true;          // connect asks again with revision 1 when the peer closes on revision 2
  bool crc = true;                // CRCs are on unless both ends say off
  bool markers = false;           // ask for Markers in the received octets
  Rtr rtr = Rtr::kAuto;           // any asks for the peer-to-peer model; needs mpa_revision 2
  std::string peer = "auto";      // the peer's implementation: auto, siw, cxgb4, irdma or strict (mpa/peer_profile.h)
  // How long connect waits for the peer's first FPDU after ours before a Write of no octets goes out. Without it a
  // Linux siw that lost a wake-up may hang. 0: never. std::nullopt: the peer profile decides, as in `weft`. The default
  // is off, since the peer counts this Write among the Writes.
  std::optional<std::chrono::milliseconds> nudge = std::chrono::milliseconds(0);
  std::uint8_t ird = 16;          // most that ConnParam::responder_resources gets (Caps::max_qp_rd_atom)
  std::uint8_t ord = 16;          // most that ConnParam::initiator_depth gets (Caps::max_qp_init_rd_atom)
  std::size_t fpdu_limit = 0;     // upper bound of an FPDU, 0 for none
  bool direct_placement = false;  // place large FPDUs before their CRC was checked (rdmap::Placement has the details)
  bool rfc7306 = true;            // Atomics and Immediate Data (Caps::atomics, Caps::imm_data)

  // ---- progress
  // The number of the device's own threads, which share its connections. 0: the caller drives (Device::process).
  std::uint32_t num_workers = 0;

  // ---- how long a peer may take
  std::chrono::milliseconds connect_timeout{10000};  // TCP connect
  std::chrono::milliseconds request_timeout{5000};   // listener: from the TCP connection to a whole MPA Request
  std::chrono::milliseconds reply_timeout{10000};    // connect: from the MPA Request to a whole Reply
  std::chrono::milliseconds close_timeout{5000};     // after a Terminate or a disconnect: until the peer's FIN

  // ---- the iWARP port mapper: a host with an RNIC runs one (iwpmd), and listens on other ports than it announces
  struct PortMap {
    bool ask = false;                          // connect first asks the peer's host for the endpoint to connect to
    bool answer = false;                       // a listening id answers Requests: its port is the real one
    std::uint16_t port = 3935;                 // UDP, ours and the peer's
    std::chrono::milliseconds interval{1000};  // between two Requests
    std::uint32_t tries = 5;                   // Requests before the port is taken as it is
    std::uint32_t answers_per_second = 1000;   // for each address listened on
  };
  PortMap port_map;

  // ---- TCP
  std::string congestion_control;           // TCP_CONGESTION of every socket; empty for the system's default
  std::chrono::seconds keepalive_idle{30};  // TCP_KEEPIDLE; 0 leaves keepalive off
  std::chrono::seconds keepalive_interval{10};
  int keepalive_count = 6;
  std::chrono::milliseconds user_timeout{90000};  // TCP_USER_TIMEOUT, 0 for the system's default
  int send_buffer = 0;                            // SO_SNDBUF and SO_RCVBUF, 0 for the system's own tuning
  int receive_buffer = 0;

  // Decides by a peer's address whether its TCP connection is taken; other connections are closed at once. Called in
  // the threads of the device. Empty: all are taken.
  std::function<bool(const sockaddr_storage& peer)> admits = {};

  // ---- limits of the resources that others can hold; with workers each gets an equal part of the first three
  // Beyond each of them, of the address that has most the oldest connection is reset (Holdings).
  std::size_t max_silent = 1024;                   // incoming connections without a whole MPA Request
  std::size_t max_lingering = 1024;                // connections without an owner that still deliver their end
  std::size_t max_parked = std::size_t{64} << 20;  // octets of FPDUs that arrived in part, over all connections
  std::size_t max_mrs = std::size_t{1} << 20;      // and as many memory windows; at most 2^22 are possible
  std::uint32_t max_qp_wr = 16384;
  std::uint32_t max_sge = 32;
  std::uint32_t max_inline_data = 4096;
  std::uint32_t max_srq = 1024;  // 0: there are none
  std::uint32_t max_srq_wr = std::uint32_t{1} << 20;
  std::uint32_t max_srq_sge = 32;
  std::uint32_t max_cqe = std::uint32_t{1} << 20;
  bool cq_overcommit = false;  // whether queue pairs may be created that can overflow their Cqs (ibverbs allows it)

  // A capture of what the device's connections send and receive (open_trace); null: none.
  std::shared_ptr<Trace> trace;

  // ---- log lines beside the events: causes of ended connections, answers of the port mapper, missing descriptors
  Log log;
};

// open_soft_device makes a soft RNIC: iWARP over ordinary TCP sockets. Any number may be open. Errors: EINVAL (a value
// out of range), ENOENT (no such congestion control), EMFILE, EAGAIN (no threads for the workers).
//
// With polled progress (num_workers 0) the device belongs to one thread. With workers each connection belongs to one
// worker for good, and any thread may call. Qp, Cq, the channels, reg_mr and ~Mr take calls from several threads at
// once. Every other object takes one caller at a time. ~Mr waits in each worker for the current turn of a connection
// (system calls that do not block, a bounded number of octets), never for a peer. One thread may call Device::process
// and sleep on Device::fd as if the device were polled. Nothing depends on this thread, and other threads sleep on the
// channels' descriptors.
//
// Asynchronous events make no descriptor readable until the program has asked for one of them or for Device::async_fd:
// a program that does not know of them is not kept awake. The device keeps at most 1024 events that were not taken, and
// drops the oldest.
//
// With polled progress, Device::fd (and so the channels' descriptors) is also readable while a channel holds an event
// that was not taken, and while a work request that was posted outside of process waits to be sent. A caller that never
// asks for a descriptor, or that calls Device::set_busy_polling, is assumed to spin: process then looks at busy sockets
// directly and at the other sockets now and then.
Result<std::unique_ptr<Device>> open_soft_device(const SoftConfig& config);

// unplug makes a soft RNIC behave as though it were taken out of the machine, so that programs can be tested for it.
// Every connection is reset. Every id gets kDeviceRemoval (and no other event for its connection's end), and the device
// gets kDeviceFatal. Requests that are posted from then on are flushed, and listening and connecting fail with ENODEV.
// Any thread may call it if the device has workers.
void unplug(Device& device);

// Delayed startup (RFC 5044 section 7.1.3): MPA begins on a TCP connection that another protocol has used before. Both
// functions take over fd, a connected TCP socket, if they succeed, and set the device's socket options on it. The
// caller has read all streaming-mode octets before: octets that come later, and `received` (octets that the caller read
// and did not use), are taken for MPA's. CmId and Pd are of a soft RNIC. Either end may have made the TCP connection.

// connect_socket is CmId::connect over fd. It has the same precondition except for the address: the id is neither bound
// nor resolved. It never falls back to another revision. Errors: EINVAL, errors of the socket's options.
Status connect_socket(CmId& id, int fd, const ConnParam& param, std::span<const std::uint8_t> received = {});

// accept_socket waits for an MPA Request on fd; a kConnectRequest of `id` follows, as though it listened. id: unused,
// or listening, or given a socket before. Errors: as for connect_socket.
Status accept_socket(CmId& id, int fd, std::span<const std::uint8_t> received = {});

// ReleasedSocket is a TCP connection that MPA has left: the caller closes fd. received: octets behind the Reply.
struct ReleasedSocket {
  int fd = -1;
  std::vector<std::uint8_t> received;
};

// release_socket gives back the socket after MPA has rejected (RFC 5044 section 7.1.2 rules 2 and 3). An id of
// connect_socket has it after its kRejected. An id that came from accept_socket has it after reject, once the Reply has
// left. Errors: ENOTCONN (no socket, or not yet). A socket that is not released is closed with the id.
Result<ReleasedSocket> release_socket(CmId& id);

}  // namespace weft::verbs
