#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <optional>

#include "tests/ulb_oracle/oracle.h"

// Programs whose procedures stand alone: arguments and results of one procedure, drawn, walked and bounded.
namespace weft::ulb_oracle {

inline constexpr std::size_t kDraws = 800;

// For a procedure whose arguments or results are void.
struct Void {};
inline bool_t xdr_nothing(XDR*, Void*) {
  return TRUE;
}

template <typename T>
using ItemOf = std::function<std::optional<Item>(T&)>;

// Procedure is the oracle's knowledge of one procedure. `fits` says whether the test covers a pair of values. It may
// change the pair so that the Call asks for the contents of the Reply.
template <typename ArgsType, typename ResType>
struct Procedure {
  std::uint32_t number;
  Proc<ArgsType> args_proc;
  Proc<ResType> res_proc;
  ItemOf<ArgsType> arg_item = [](ArgsType&) { return std::nullopt; };
  ItemOf<ResType> res_item = [](ResType&) { return std::nullopt; };
  std::function<bool(ArgsType&, ResType&)> fits = [](ArgsType&, ResType&) { return true; };
};

// ProcedureTester compares a program's procedures with its binding, and records the arms of the schema that it saw.
class ProcedureTester {
 public:
  ProcedureTester(std::uint32_t program, std::uint32_t version, Words words)
      : words_(std::move(words)), binding_(*nfsulb::find_binding(program, version)) {
    for (const nfsulb::BoundProgram& bound : nfsulb::bound_programs()) {
      if (&bound.binding == &binding_) schema_ = bound.schema;
    }
  }

  template <typename ArgsType, typename ResType>
  void check(const Procedure<ArgsType, ResType>& procedure) {
    const nfsulb::Operation* row = nullptr;
    for (const nfsulb::Operation& each : schema_->procedures) {
      if (each.number == procedure.number) row = &each;
    }
    ASSERT_NE(row, nullptr) << procedure.number;
    std::size_t num_pairs = 0;
    for (std::uint64_t i = 0; i < kDraws; ++i) {
      SCOPED_TRACE(testing::Message() << row->name << " seed " << seed() << " draw " << i);
      if (check_pair(procedure, *row, seed() + i)) ++num_pairs;
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_GT(num_pairs, 30u) << row->name;
    EXPECT_EQ(arms_.unseen(*row->arguments, row->name) + arms_.unseen(*row->results, row->name), 0u);
  }

 private:
  template <typename ArgsType, typename ResType>
  bool check_pair(const Procedure<ArgsType, ResType>& procedure, const nfsulb::Operation& row, std::uint64_t seed) {
    Value<ArgsType> args(procedure.args_proc);
    Value<ResType> results(procedure.res_proc);
    if (!args.draw(seed, words_) || !results.draw(seed + 1, words_)) return false;
    if (!procedure.fits(args.get(), results.get())) return false;
    const auto arg_item = procedure.arg_item(args.get());
    const auto res_item = procedure.res_item(results.get());
    if ((arg_item && arg_item->len == 0) || (res_item && res_item->len == 0)) return false;
    OutStream call, reply;
    encode(call, procedure.args_proc, args.get());
    encode(reply, procedure.res_proc, results.get());
    EXPECT_TRUE(arms_.saw(*row.arguments, call.octets()));
    EXPECT_TRUE(arms_.saw(*row.results, reply.octets()));
    const std::vector<Item> none;
    expect_arguments(binding_, procedure.number, call, arg_item ? std::vector{*arg_item} : none);
    std::vector<int> entries;
    if (row.eligible_result) entries.push_back(res_item ? 0 : -1);
    expect_results(binding_, procedure.number, reply, res_item ? std::vector{*res_item} : none, entries);
    expect_bound(binding_, procedure.number, call.octets(), reply.octets());
    return true;
  }

  Words words_;
  Arms arms_;
  const rpcrdma::Binding& binding_;
  const nfsulb::Program* schema_ = nullptr;
};

}  // namespace weft::ulb_oracle
