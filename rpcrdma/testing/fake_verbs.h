#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "verbs-shim/api/testing/post_tap.h"
#include "verbs-shim/api/verbs.h"

// Verbs in one process, for tests of the engines: requests are carried out when they are posted, completions wait in
// the queue until the test polls them, and everything can be made to fail. While a queue pair holds completions back,
// its requests count as queued: the program aborts when a region or window that one of them names is destroyed, or when
// octets that one of them sends change.
namespace weft::rpcrdma::testing {

// FakeMemory: all registrations of a test. Remote access is checked as a device would.
class FakeMemory {
 public:
  struct Region {
    std::uint8_t* octets = nullptr;
    std::size_t len = 0;
    verbs::Access access = verbs::Access::kNone;
    std::optional<std::uint64_t> first = {};  // the address of its first octet; none: where that lies
    const verbs::Qp* stream = nullptr;        // of a bound window: whose peer may use it
    std::uint32_t over = 0;                   // and the key of its region
  };

  std::uint32_t add(Region region) {
    regions_[++last_key_] = region;
    return last_key_;
  }
  // A region's end unbinds the windows over it.
  void remove(std::uint32_t key);
  // Windows: keys of their own, upper 24 bits each.
  std::uint32_t add_window() {
    ++num_windows_;
    return last_window_ += kKeysPerWindow;
  }
  void remove_window(std::uint32_t key);
  // How many windows there are, bound or not.
  std::size_t num_windows() const { return num_windows_; }
  // A queued request names the region or window, until unpin.
  void pin(std::uint32_t key) { ++pins_[name_of(key)]; }
  void unpin(std::uint32_t key);
  bool bind(const verbs::Qp& stream, const verbs::MwBind& bind);
  // The peer of `stream` can invalidate windows that are bound there. Its own end can invalidate unbound windows, too.
  bool invalidate(const verbs::Qp& stream, std::uint32_t key);
  bool invalidate_own(const verbs::Qp& stream, std::uint32_t key);
  // Keys of all bound windows.
  std::vector<std::uint32_t> bound() const;
  std::size_t size() const { return regions_.size(); }
  // How many regions a peer could read or write.
  std::size_t num_remote() const;
  // Counts of requests posted to send queues and of registrations, at all ends together. The other fields choose the
  // one, counted from 1, that does not succeed: `cut_at` breaks the connection instead, the others make it fail. 0:
  // none.
  struct Faults {
    std::size_t posts = 0;
    std::size_t cut_at = 0;
    std::size_t fail_post_at = 0;
    std::size_t registrations = 0;
    std::size_t fail_registration_at = 0;
    bool and_all_later_ones = false;
    bool fail_invalidations = false;  // the local ones
  };
  Faults faults;
  // Null where the key, the range or the right is missing.
  std::uint8_t* find(std::uint32_t key, std::uint64_t addr, std::uint64_t len, verbs::Access needed) const;

 private:
  std::map<std::uint32_t, Region> regions_;
  static constexpr std::uint32_t kKeysPerWindow = 0x100;
  std::uint32_t last_key_ = 0x1000;
  static constexpr std::uint32_t kFirstWindow = 0x77000000;
  // Windows keep their upper 24 bits from bind to bind.
  static std::uint32_t name_of(std::uint32_t key) { return key < kFirstWindow ? key : key / kKeysPerWindow; }
  void check_unpinned(std::uint32_t key, const char* what) const;

  std::uint32_t last_window_ = kFirstWindow;
  std::size_t num_windows_ = 0;
  std::map<std::uint32_t, std::size_t> pins_;       // by name_of: queued requests
  std::map<std::uint32_t, std::uint32_t> windows_;  // upper 24 bits of each that was bound, to its last key
};

class FakeMr final : public verbs::Mr {
 public:
  FakeMr(FakeMemory& memory, FakeMemory::Region region) : memory_(memory), region_(region), key_(memory.add(region)) {}
  ~FakeMr() override { memory_.remove(key_); }
  void* addr() const override { return region_.octets; }
  std::size_t length() const override { return region_.len; }
  std::uint32_t lkey() const override { return key_; }
  std::uint32_t rkey() const override { return key_; }

 private:
  FakeMemory& memory_;
  FakeMemory::Region region_;
  std::uint32_t key_;
};

class FakeMw final : public verbs::Mw {
 public:
  explicit FakeMw(FakeMemory& memory) : memory_(memory), key_(memory.add_window()) {}
  ~FakeMw() override { memory_.remove_window(key_); }
  std::uint32_t rkey() const override { return key_; }
  void set_rkey(std::uint32_t key) { key_ = key; }

 private:
  FakeMemory& memory_;
  std::uint32_t key_;
};

// FakeSrq: Receives that several queue pairs take from, in the order in which they were posted.
class FakeSrq final : public verbs::Srq {
 public:
  explicit FakeSrq(std::uint32_t max_wr) : max_wr_(max_wr) {}
  verbs::Status post_recv(const verbs::RecvWr& wr) override;
  verbs::Status modify(std::uint32_t) override { return {}; }
  verbs::Result<verbs::SrqAttr> query() const override { return verbs::SrqAttr{.max_wr = max_wr_}; }
  std::optional<std::uint32_t> num_waiting() const override { return static_cast<std::uint32_t>(receives.size()); }
  std::size_t size() const { return receives.size(); }

  struct Receive {
    std::uint64_t wr_id = 0;
    verbs::Sge sge;
  };
  std::deque<Receive> receives;
  bool fail_post = false;

 private:
  std::uint32_t max_wr_;
};

class FakePd final : public verbs::Pd {
 public:
  explicit FakePd(FakeMemory& memory) : memory_(memory) {}
  verbs::Result<std::unique_ptr<verbs::Mr>> reg_mr(void* addr, std::size_t length, verbs::Access access) override;
  verbs::Result<std::unique_ptr<verbs::Srq>> create_srq(const verbs::SrqAttr& attr) override;
  verbs::Result<std::unique_ptr<verbs::Mw>> alloc_mw() override;

  bool fail_registration = false;

 private:
  FakeMemory& memory_;
};

class FakeCq final : public verbs::Cq {
 public:
  int poll(std::span<verbs::Wc> wc) override;
  verbs::Status req_notify(bool) override { return {}; }
  void push(const verbs::Wc& wc) {
    ++num_pushed_;
    wcs_.push_back(wc);
  }
  std::size_t size() const { return wcs_.size(); }
  bool overflowed = false;
  std::size_t num_pushed() const { return num_pushed_; }

 private:
  std::size_t num_pushed_ = 0;
  std::deque<verbs::Wc> wcs_;
};

// FakeQp: with a peer its Sends fill the peer's Receives; without one they are kept in `sent`.
class FakeQp final : public verbs::Qp {
 public:
  struct Rdma {
    verbs::WrOpcode opcode = verbs::WrOpcode::kRdmaWrite;
    std::uint32_t rkey = 0;
    std::uint64_t remote_addr = 0;
    std::uint32_t len = 0;
    std::size_t sends_before = 0;  // Sends posted before it
  };

  FakeQp(FakeMemory& memory, FakeCq& cq) : memory_(memory), cq_(cq) {}
  ~FakeQp() override { forget(); }
  static void connect(FakeQp& client, FakeQp& server) {
    client.peer_ = &server;
    server.peer_ = &client;
    client.tap_.pairs_with(server.tap_);
  }

  verbs::Status post_send(const verbs::SendWr& wr) override;
  verbs::Status post_recv(const verbs::RecvWr& wr) override;
  verbs::QpState state() const override { return broken_ ? verbs::QpState::kErr : verbs::QpState::kRts; }
  std::uint32_t qp_num() const override { return number; }
  verbs::QpCounters counters() const override { return moved; }
  std::size_t num_unsent() const override { return unsent; }

  // A Send of the peer's arrives, and invalidates a window of this end. False where no Receive takes it, or the window
  // is not bound here; then the queue pair is broken.
  bool inject(ConstBytes message, std::optional<std::uint32_t> invalidate = {});
  // Breaks the connection: posted, unfinished requests are flushed.
  void break_connection();
  bool broken() const { return broken_; }
  std::size_t num_receives() const { return receives_.size(); }

  std::vector<std::vector<std::uint8_t>> sent;  // without a peer, or where all are to be kept
  bool keep_sent = false;
  std::vector<Rdma> rdma;                           // every RDMA Read and Write
  std::vector<std::uint32_t> remote_invalidations;  // handles of its Sends with Invalidate
  std::vector<std::uint32_t> local_invalidations;
  std::size_t num_binds = 0;
  std::size_t num_sends = 0;
  std::size_t last_send_sges = 0;  // gather elements of the last Send
  verbs::QpCounters moved;         // what the test says has moved
  std::size_t unsent = 0;          // what the test says TCP has not sent
  bool fail_post_send = false;
  std::uint32_t max_sge = UINT32_MAX;  // requests that gather more elements fail, as with a device
  // Requests stay queued until release(): Sends, Reads and Writes move octets at once, invalidations of windows do not
  // take place before, and all completions wait.
  bool hold_completions = false;
  FakeSrq* srq = nullptr;     // where Receives come from
  FakeCq* recv_cq = nullptr;  // where they complete if it is another queue
  std::uint32_t number = 1;
  // The first `num` of them.
  void release(std::size_t num = SIZE_MAX);
  // As its destruction: queued requests are gone, without completions.
  void forget();

 private:
  using Receive = FakeSrq::Receive;
  // A request that stays queued.
  struct Held {
    verbs::Wc wc;
    bool is_signaled = false;
    std::vector<std::uint32_t> keys;
    std::vector<std::pair<const std::uint8_t*, std::vector<std::uint8_t>>>
        sources;  // the octets that it sends, and a copy
    std::optional<std::uint32_t> invalidates;
  };

  void complete(const verbs::SendWr& wr, verbs::WcOpcode opcode, std::uint32_t len);
  void hold(const verbs::SendWr& wr, const verbs::Wc& wc);
  bool finish(const Held& held);
  bool move(const verbs::SendWr& wr, std::uint32_t len);
  verbs::Status post_local(const verbs::SendWr& wr);

  verbs::Status carry_out(const verbs::SendWr& wr);

  verbs::testing::EndTap tap_;
  FakeMemory& memory_;
  FakeCq& cq_;
  FakeQp* peer_ = nullptr;
  std::deque<Receive> receives_;
  std::vector<Held> held_;
  bool broken_ = false;
};

}  // namespace weft::rpcrdma::testing
