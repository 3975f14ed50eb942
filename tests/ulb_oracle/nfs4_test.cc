// NFS version 4, minor versions 0 to 2, against rpcgen's encoders of RFC 7863.
#include <gtest/gtest.h>

#include <deque>

#include "tests/ulb_oracle/nfs4_values.h"

namespace weft::ulb_oracle {
namespace {

constexpr std::size_t kDraws = 1000;  // for each operation

// draw makes up a value of the operation whose item, if it has one, can be followed.
template <typename Op>
bool draw(Value<Op>& value, std::uint32_t op, std::uint64_t seed) {
  return value.draw(seed, words(op)) && can_follow(value.get());
}

std::vector<std::uint32_t> all_operations() {
  std::vector<std::uint32_t> all;
  for (std::uint32_t op = OP_ACCESS; op <= kLastOp; ++op) all.push_back(op);
  all.push_back(OP_ILLEGAL);
  return all;
}

template <typename Op>
Octets without_number(Proc<Op> proc, Op& value) {
  OutStream out;
  encode(out, proc, value);
  return Octets(out.octets().begin() + 4, out.octets().end());
}

TEST(Nfs4Oracle, EveryOperationAlone) {
  RecordProperty("proves", "U1-6.1-01 U1-6.1-02 U1-6.1-03 U1-6.1-04 U1-6.1-05");
  Arms arms;
  std::size_t unseen = 0;
  for (const std::uint32_t op : all_operations()) {
    const nfsulb::Operation* schema = nullptr;
    for (const nfsulb::Operation& row : operations_of(nfs4())) {
      if (row.number == op) schema = &row;
    }
    ASSERT_NE(schema, nullptr) << op;
    std::size_t num_args = 0, num_results = 0;
    for (std::uint64_t i = 0; i < kDraws; ++i) {
      SCOPED_TRACE(testing::Message() << schema->name << " seed " << seed() << " draw " << i);
      Args args(&xdr_nfs_argop4);
      if (draw(args, op, seed() + i)) {
        ++num_args;
        EXPECT_TRUE(arms.saw(*schema->arguments, without_number(&xdr_nfs_argop4, args.get())));
        std::vector<nfs_argop4> ops = {args.get()};
        OutStream call;
        encode_call(call, 2, ops);
        const auto item = item_of(ops[0]);
        expect_arguments(nfs4(), kCompound, call, item ? std::vector{*item} : std::vector<Item>{});
      }
      Results results(&xdr_nfs_resop4);
      if (draw(results, op, seed() + i)) {
        ++num_results;
        EXPECT_TRUE(arms.saw(*schema->results, without_number(&xdr_nfs_resop4, results.get())));
        std::vector<nfs_resop4> ops = {results.get()};
        OutStream reply;
        encode_reply(reply, ops);
        const auto item = item_of(ops[0]);
        std::vector<int> entries;
        if (op == OP_READ || op == OP_READLINK) entries.push_back(item ? 0 : -1);
        expect_results(nfs4(), kCompound, reply, item ? std::vector{*item} : std::vector<Item>{}, entries);
      }
      ASSERT_FALSE(HasFailure());
    }
    EXPECT_GT(num_args, 25u) << schema->name;
    EXPECT_GT(num_results, 25u) << schema->name;
    unseen += arms.unseen(*schema->arguments, schema->name) + arms.unseen(*schema->results, schema->name);
  }
  EXPECT_EQ(unseen, 0u);
}

// Half of the operations have items.
std::uint32_t some_operation(std::mt19937_64& random) {
  constexpr std::uint32_t kWithItems[] = {OP_CREATE, OP_READ, OP_READLINK, OP_WRITE};
  if (random() % 2 == 0) return kWithItems[random() % 4];
  return static_cast<std::uint32_t>(OP_ACCESS + random() % (kLastOp - OP_ACCESS + 1));
}

TEST(Nfs4Oracle, ManyOperationsTogether) {
  std::mt19937_64 random(seed());
  for (std::size_t i = 0; i < 1000; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << seed() << " compound " << i);
    std::deque<Args> args;
    std::deque<Results> results;
    std::vector<nfs_argop4> call_ops;
    std::vector<nfs_resop4> reply_ops;
    std::vector<Item> call_items, reply_items;
    std::vector<int> entries;
    for (std::size_t n = random() % 8; n > 0; --n) {
      const std::uint32_t op = some_operation(random);
      if (draw(args.emplace_back(&xdr_nfs_argop4), op, random())) {
        call_ops.push_back(args.back().get());
        if (const auto item = item_of(call_ops.back())) call_items.push_back(*item);
      }
      if (!draw(results.emplace_back(&xdr_nfs_resop4), op, random())) continue;
      reply_ops.push_back(results.back().get());
      const auto item = item_of(reply_ops.back());
      const bool is_read = op == OP_READ || op == OP_READLINK;
      if (is_read) entries.push_back(item ? static_cast<int>(reply_items.size()) : -1);
      if (item) reply_items.push_back(*item);
    }
    OutStream call, reply;
    encode_call(call, 2, call_ops);
    encode_reply(reply, reply_ops);
    expect_arguments(nfs4(), kCompound, call, call_items);
    expect_results(nfs4(), kCompound, reply, reply_items, entries);
    ASSERT_FALSE(HasFailure());
  }
}

template <typename ArgsType, typename ResType>
void check_xattr(std::uint32_t op, Proc<ArgsType> args_proc, Proc<ResType> res_proc) {
  const auto check = [op](auto& value, auto proc, bool is_call) {
    OutStream out, head;
    encode(out, proc, value);
    const Octets& body = out.octets();
    nfsulb::testing::Xdr message;
    message.u32(0);
    if (is_call) message.u32(2);
    if (!is_call) message.opaque(0);
    message.u32(1).u32(op);
    Octets octets = message.octets();
    octets.insert(octets.end(), body.begin(), body.end());
    if (is_call) {
      const auto walk = nfsulb::testing::walk_arguments(nfs4(), kCompound, octets);
      EXPECT_TRUE(walk.walked == nfsulb::testing::Walked::kWhole && walk.items.empty());
    } else {
      const auto walk = nfsulb::testing::walk_results(nfs4(), kCompound, octets);
      EXPECT_TRUE(walk.walked == nfsulb::testing::Walked::kWhole && walk.items.empty());
    }
  };
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    SCOPED_TRACE(testing::Message() << op << " seed " << seed() << " draw " << i);
    Value<ArgsType> args(args_proc);
    if (args.draw(seed() + i, {})) check(args.get(), args_proc, true);
    Value<ResType> results(res_proc);
    if (results.draw(seed() + i, {})) check(results.get(), res_proc, false);
  }
}

TEST(Nfs4Oracle, ExtendedAttributes) {
  RecordProperty("proves", "U1-7-01");
  check_xattr(72, &xdr_GETXATTR4args, &xdr_GETXATTR4res);
  check_xattr(73, &xdr_SETXATTR4args, &xdr_SETXATTR4res);
  check_xattr(74, &xdr_LISTXATTRS4args, &xdr_LISTXATTRS4res);
  check_xattr(75, &xdr_REMOVEXATTR4args, &xdr_REMOVEXATTR4res);
}

TEST(Nfs4Oracle, Callbacks) {
  RecordProperty("proves", "U1-6.5.1-02 U1-6.5.2-03");
  Arms arms;
  std::size_t unseen = 0;
  for (const nfsulb::Operation& schema : operations_of(callback())) {
    for (std::uint64_t i = 0; i < kDraws; ++i) {
      SCOPED_TRACE(testing::Message() << schema.name << " seed " << seed() << " draw " << i);
      char tag[] = "cb";
      Value<nfs_cb_argop4> args(&xdr_nfs_cb_argop4);
      if (args.draw(seed() + i, words(schema.number))) {
        EXPECT_TRUE(arms.saw(*schema.arguments, without_number(&xdr_nfs_cb_argop4, args.get())));
        CB_COMPOUND4args call{{2, tag}, 2, 7, {1, &args.get()}};
        OutStream out;
        encode(out, &xdr_CB_COMPOUND4args, call);
        expect_arguments(callback(), kCompound, out, {});
      }
      Value<nfs_cb_resop4> results(&xdr_nfs_cb_resop4);
      if (results.draw(seed() + i, words(schema.number))) {
        EXPECT_TRUE(arms.saw(*schema.results, without_number(&xdr_nfs_cb_resop4, results.get())));
        CB_COMPOUND4res reply{NFS4_OK, {2, tag}, {1, &results.get()}};
        OutStream out;
        encode(out, &xdr_CB_COMPOUND4res, reply);
        expect_results(callback(), kCompound, out, {}, {});
      }
      ASSERT_FALSE(HasFailure());
    }
    unseen += arms.unseen(*schema.arguments, schema.name) + arms.unseen(*schema.results, schema.name);
  }
  EXPECT_EQ(unseen, 0u);
}

}  // namespace
}  // namespace weft::ulb_oracle
