#pragma once

#include <cstring>
#include <memory>

#include "verbs-shim/api/testing/pair.h"

namespace weft::verbs::testing {

inline constexpr Access kAtomicMemory =
    Access::kLocalWrite | Access::kRemoteWrite | Access::kRemoteRead | Access::kRemoteAtomic;

// ExtensionTest: the server has memory for atomics and Writes, the client for results; the client has spoken.
class ExtensionTest : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    if (IsSkipped()) return;
    const Caps& caps = server_.device->caps();
    if (!caps.atomics || !caps.imm_data) GTEST_SKIP() << "no atomics or no immediates";
    memory_ = std::make_unique<Mem>(*server_.pd, 4096, kAtomicMemory);
    ours_ = std::make_unique<Mem>(*client_.pd, 4096, client_.sink());
    use_channel(server_);
    establish();
    ASSERT_TRUE(server_.recv({memory_->sge(4000, 8)}, 500).ok());
    ASSERT_TRUE(client_.send({ours_->sge(0, 1)}, 1000).ok());
    ASSERT_TRUE(drive([&] { return client_.wcs.size() == 1 && server_.wcs.size() == 1; }));
    client_.wcs.clear();
    server_.wcs.clear();
  }
  void TearDown() override {
    memory_.reset();
    ours_.reset();
  }

  // The server's word at octet `off`, and the value that the client's request wr_id found there.
  std::uint64_t word(std::size_t off) const { return load(memory_->octets, off); }
  std::uint64_t result(std::uint64_t wr_id) const { return load(ours_->octets, static_cast<std::size_t>(8 * wr_id)); }
  void set_word(std::size_t off, std::uint64_t value) { std::memcpy(&memory_->octets[off], &value, sizeof(value)); }

  // wr_id also names the 8 octets for the result. The request is to be posted before the next one is made.
  SendWr atomic_wr(WrOpcode opcode, std::uint64_t wr_id, std::uint64_t compare_add, std::uint64_t swap = 0) {
    sge_ = ours_->sge(static_cast<std::size_t>(8 * wr_id), 8);
    SendWr wr;
    wr.wr_id = wr_id;
    wr.sg_list = {&sge_, 1};
    wr.opcode = opcode;
    wr.remote_addr = memory_->addr();
    wr.rkey = memory_->mr->rkey();
    wr.compare_add = compare_add;
    wr.swap = swap;
    return wr;
  }
  // A Write of 600 octets to octet 1024, with an immediate.
  SendWr imm_wr(std::uint64_t wr_id, std::uint32_t imm_data) {
    sge_ = ours_->sge(0, 600);
    SendWr wr;
    wr.wr_id = wr_id;
    wr.sg_list = {&sge_, 1};
    wr.opcode = WrOpcode::kRdmaWriteWithImm;
    wr.remote_addr = memory_->addr(1024);
    wr.rkey = memory_->mr->rkey();
    wr.imm_data = imm_data;
    return wr;
  }

  std::unique_ptr<Mem> memory_, ours_;

 private:
  static std::uint64_t load(const std::vector<std::uint8_t>& octets, std::size_t off) {
    std::uint64_t value = 0;
    std::memcpy(&value, &octets[off], sizeof(value));
    return value;
  }

  Sge sge_;
};

}  // namespace weft::verbs::testing
