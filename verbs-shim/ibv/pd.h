#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "verbs-shim/api/verbs.h"

namespace weft::verbs::ibv {

class IbvDevice;

class IbvMr : public Mr {
 public:
  IbvMr(IbvDevice& device, ibv_mr* mr) : device_(device), mr_(mr) {}
  ~IbvMr() override;
  void* addr() const override { return mr_->addr; }
  std::size_t length() const override { return mr_->length; }
  std::uint32_t lkey() const override { return mr_->lkey; }
  std::uint32_t rkey() const override { return mr_->rkey; }
  std::size_t num_windows() const override;
  ibv_mr* get() const { return mr_; }

 private:
  IbvDevice& device_;
  ibv_mr* mr_;
};

class IbvMw : public Mw {
 public:
  IbvMw(IbvDevice& device, ibv_mw* mw) : device_(device), mw_(mw), rkey_(mw->rkey) {}
  ~IbvMw() override;
  std::uint32_t rkey() const override { return rkey_.load(std::memory_order_relaxed); }
  ibv_mw* get() const { return mw_; }
  void set_rkey(std::uint32_t rkey) { rkey_.store(rkey, std::memory_order_relaxed); }
  // Replaces a window that is bound to a region which goes away.
  void replace();

 private:
  IbvDevice& device_;
  ibv_mw* mw_;  // null if replacing it failed
  std::atomic<std::uint32_t> rkey_;
};

// IbvSrq counts its receives. The kernel's software devices look at the limit only when a receive is taken, but the
// event has to come at once if fewer are left when the limit is set. A receive that was taken and not polled yet counts
// as left. So does a receive that rxe flushed, because rxe's completions with errors do not say that they are receives.
class IbvSrq : public Srq {
 public:
  IbvSrq(IbvDevice& device, ibv_srq* srq, const SrqAttr& asked, const ibv_srq_attr& granted);
  ~IbvSrq() override;
  Status post_recv(const RecvWr& wr) override;
  Status modify(std::uint32_t srq_limit) override;
  Result<SrqAttr> query() const override;
  ibv_srq* get() const { return srq_; }

  // A receive of it completed.
  void on_taken() { left_.fetch_sub(1, std::memory_order_relaxed); }
  // The limit was reached: false if that was told already.
  bool on_limit() { return limit_.exchange(0) != 0; }

 private:
  IbvDevice& device_;
  ibv_srq* srq_;
  const SrqAttr attr_;  // the requested values
  const ibv_srq_attr granted_;
  std::atomic<std::int64_t> left_{0};
  std::atomic<std::uint32_t> limit_{0};  // 0 once the event has come
};

class IbvPd : public Pd {
 public:
  IbvPd(IbvDevice& device, ibv_pd* pd) : device_(device), pd_(pd) {}
  ~IbvPd() override;
  Result<std::unique_ptr<Mr>> reg_mr(void* addr, std::size_t length, Access access) override;
  Result<std::unique_ptr<Mw>> alloc_mw() override;
  Result<std::unique_ptr<Srq>> create_srq(const SrqAttr& attr) override;
  ibv_pd* get() const { return pd_; }

 private:
  IbvDevice& device_;
  ibv_pd* pd_;
};

}  // namespace weft::verbs::ibv
