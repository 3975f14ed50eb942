#pragma once

#include <infiniband/verbs.h>

#include <atomic>
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
  // A new window in place of one that is bound to a region which goes.
  void replace();

 private:
  IbvDevice& device_;
  ibv_mw* mw_;  // null where there was none to replace it
  std::atomic<std::uint32_t> rkey_;
};

class IbvSrq : public Srq {
 public:
  IbvSrq(IbvDevice& device, ibv_srq* srq, const SrqAttr& attr);
  ~IbvSrq() override;
  Status post_recv(const RecvWr& wr) override;
  Status modify(std::uint32_t srq_limit) override;
  Result<SrqAttr> query() const override;
  ibv_srq* get() const { return srq_; }

 private:
  IbvDevice& device_;
  ibv_srq* srq_;
  const SrqAttr attr_;  // as asked for
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
