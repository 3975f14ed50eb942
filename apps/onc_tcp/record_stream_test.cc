#include "apps/onc_tcp/record_stream.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "rpcrdma/testing/fake_verbs.h"

namespace weft::onc_tcp {
namespace {

using Octets = std::vector<std::uint8_t>;
using Outcome = RecordReceiver::Outcome;

constexpr std::size_t kMaxRecord = 64 << 10;

void put_fragment(Octets& out, std::uint32_t mark, ConstBytes octets) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(mark >> shift));
  out.insert(out.end(), octets.begin(), octets.end());
}

struct RecordReceiverTest : ::testing::Test {
  Octets counted(std::size_t len) {
    Octets octets(len);
    std::iota(octets.begin(), octets.end(), next_++);
    return octets;
  }
  // Passes one read of at most `len` octets of the stream to the receiver.
  std::size_t receive(RecordReceiver& receiver, ConstBytes stream, std::size_t len) {
    std::size_t n = 0;
    for (const MutBytes place : receiver.space()) {
      const std::size_t part = std::min({place.size(), len - n, stream.size() - n});
      std::copy_n(stream.begin() + static_cast<std::ptrdiff_t>(n), part, place.begin());
      n += part;
    }
    receiver.received(n);
    return n;
  }
  // Reads the whole stream in pieces of at most `step` octets, and returns the outcome.
  Outcome receive_all(RecordReceiver& receiver, ConstBytes stream, std::size_t step, std::vector<Octets>& records) {
    while (!stream.empty()) {
      const std::size_t n = receive(receiver, stream, step);
      EXPECT_GT(n, 0u);
      if (n == 0) return Outcome::kNoRoom;
      stream = stream.subspan(n);
      Outcome outcome;
      while ((outcome = receiver.next()) == Outcome::kRecord) {
        const Record record = receiver.take();
        records.emplace_back(record.octets().begin(), record.octets().end());
      }
      if (outcome != Outcome::kNeedMore) return outcome;
    }
    return Outcome::kNeedMore;
  }

  rpcrdma::testing::FakeMemory memory_;
  rpcrdma::testing::FakePd pd_{memory_};
  rpcrdma::BufferPool pool_{pd_, kMaxRecord, 4 * kMaxRecord};
  std::uint8_t next_ = 0;
};

TEST_F(RecordReceiverTest, FragmentsCutAnywhere) {
  Octets stream;
  const Octets small = counted(3), rest = counted(2), large = counted(9000), last = counted(1);
  put_fragment(stream, 3, small);
  put_fragment(stream, 0, {});
  put_fragment(stream, kLastFragment | 2, rest);
  put_fragment(stream, kLastFragment | 9000, large);
  put_fragment(stream, kLastFragment, {});
  put_fragment(stream, kLastFragment | 1, last);
  Octets joined = small;
  joined.insert(joined.end(), rest.begin(), rest.end());
  for (const std::size_t step : {1ul, 2ul, 3ul, 5ul, 7ul, 4096ul, 4100ul, 9000ul, 100000ul}) {
    RecordReceiver receiver(pool_, {.max_record = kMaxRecord});
    std::vector<Octets> records;
    EXPECT_EQ(receive_all(receiver, stream, step, records), Outcome::kNeedMore);
    EXPECT_EQ(records, (std::vector<Octets>{joined, large, {}, last})) << "pieces of " << step;
    EXPECT_FALSE(receiver.is_inside());
  }
  EXPECT_EQ(pool_.in_use(), 0u);
}

// The reader that copies everything is the reference.
TEST_F(RecordReceiverTest, AgreesWithTheCopyingReaderOnRandomStreams) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    Octets stream;
    for (int i = 0; i < 30; ++i) {
      const auto len = static_cast<std::uint32_t>(random() % (random() % 4 == 0 ? 20000 : 40));
      put_fragment(stream, (random() % 3 == 0 ? 0 : kLastFragment) | len, counted(len));
    }
    std::vector<Octets> expected, records;
    RecordReader reader(kMaxRecord);
    ConstBytes input = stream;
    while (reader.next(input) == RecordReader::Outcome::kRecord) expected.push_back(reader.record());
    RecordReceiver receiver(pool_, {.max_record = kMaxRecord});
    receive_all(receiver, stream, 1 + random() % 30000, records);
    EXPECT_EQ(records, expected) << "seed " << seed;
  }
}

TEST_F(RecordReceiverTest, AllOfALargeRecordButItsBeginningIsReceivedInPlace) {
  constexpr std::size_t kFirst = 8000;
  Octets stream;
  put_fragment(stream, kLastFragment | 50000, counted(50000));
  RecordReceiver receiver(pool_, {.max_record = kMaxRecord, .first = kFirst});
  std::size_t done = receive(receiver, stream, stream.size());
  EXPECT_EQ(done, RecordReceiver::kStaging);
  ASSERT_EQ(receiver.next(), Outcome::kNeedMore);
  EXPECT_EQ(receiver.space()[0].size(), kFirst + kMarkLen - done);
  done += receive(receiver, ConstBytes(stream).subspan(done), kFirst + kMarkLen - done);
  ASSERT_EQ(receiver.next(), Outcome::kNeedMore);
  const std::uint8_t* place = receiver.space()[0].data();
  EXPECT_EQ(receiver.space()[0].size(), 50000 - kFirst);
  receive(receiver, ConstBytes(stream).subspan(done), stream.size());
  ASSERT_EQ(receiver.next(), Outcome::kRecord);
  const Record record = receiver.take();
  EXPECT_EQ(place, record.octets().data() + kFirst);
  EXPECT_TRUE(std::ranges::equal(record.octets(), ConstBytes(stream).subspan(kMarkLen)));
}

TEST_F(RecordReceiverTest, MemoryGrowsWithWhatHasArrivedNotWithWhatIsAnnounced) {
  constexpr std::size_t kMax = 5 << 20;
  rpcrdma::BufferPool pool(pd_, kMax, 4 * kMax);
  const RecordLimits limits{.max_record = kMax};
  for (const std::uint32_t last : {kLastFragment, 0u}) {
    Octets stream;
    put_fragment(stream, last | kMax, counted(kMax));
    RecordReceiver receiver(pool, limits);
    for (std::size_t arrived = 0; arrived < stream.size();) {
      arrived += receive(receiver, ConstBytes(stream).subspan(arrived), 1000);
      const Outcome outcome = receiver.next();
      ASSERT_TRUE(outcome == Outcome::kNeedMore || arrived == stream.size());
      const std::size_t here = arrived - std::min(kMarkLen, arrived);
      const std::size_t most = here < limits.first               ? limits.first
                               : here < RecordReceiver::kMostNfs ? RecordReceiver::kMostNfs
                                                                 : 4 * here;
      ASSERT_LE(pool.in_use(), most) << here;
    }
    EXPECT_EQ(pool.in_use(), kMax);
  }
}

TEST_F(RecordReceiverTest, RecordsAreHeldInTheNameOfTheirClient) {
  Room room({.total = 80000, .per_address = 60000, .reserve = 20000, .small = 1000});
  Octets large, small;
  put_fragment(large, kLastFragment | 40000, counted(40000));
  put_fragment(small, kLastFragment | 500, counted(500));
  const RecordLimits limits{.max_record = kMaxRecord, .first = 40000};
  RecordReceiver greedy(pool_, limits, room.enter("one")), other(pool_, limits, room.enter("one"));
  std::vector<Octets> records;
  receive(greedy, large, 5);
  EXPECT_EQ(greedy.next(), Outcome::kNoRoom) << "half of what the address may have";
  RecordReceiver modest(pool_, {.max_record = kMaxRecord, .first = 20000}, room.enter("one"));
  EXPECT_EQ(receive_all(modest, ConstBytes(large).first(15000), 15000, records), Outcome::kNoRoom)
      << "it has no turn yet";
  room.serve_line();
  EXPECT_EQ(modest.next(), Outcome::kNeedMore);
  EXPECT_EQ(room.used(), 20000u);
  EXPECT_EQ(receive_all(other, small, small.size(), records), Outcome::kNeedMore);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(room.used(), 20000u);
  modest.close();
  greedy.close();
  EXPECT_EQ(room.used(), 0u);
  {
    std::size_t done = receive(other, small, small.size());
    ASSERT_EQ(done, small.size());
    ASSERT_EQ(other.next(), Outcome::kRecord);
    const Record record = other.take();
    EXPECT_EQ(room.used(), 500u);
    other.close();
    EXPECT_EQ(room.used(), 500u) << "the record lives on";
  }
  EXPECT_EQ(room.used(), 0u);
}

TEST_F(RecordReceiverTest, WithoutRoomItWaitsAndLosesNothing) {
  Octets stream;
  const Octets first = counted(100), second = counted(200);
  put_fragment(stream, kLastFragment | 100, first);
  put_fragment(stream, kLastFragment | 200, second);
  std::vector<rpcrdma::Buffer> taken;
  for (int i = 0; i < 4; ++i) taken.push_back(pool_.take(kMaxRecord));
  RecordReceiver receiver(pool_, {.max_record = kMaxRecord});
  ASSERT_EQ(receive(receiver, stream, stream.size()), stream.size());
  ASSERT_EQ(receiver.next(), Outcome::kNoRoom);
  EXPECT_TRUE(receiver.space()[0].empty() && receiver.space()[1].empty());
  taken.clear();
  ASSERT_EQ(receiver.next(), Outcome::kRecord);
  EXPECT_TRUE(std::ranges::equal(receiver.take().octets(), first));
  ASSERT_EQ(receiver.next(), Outcome::kRecord);
  EXPECT_TRUE(std::ranges::equal(receiver.take().octets(), second));
}

TEST_F(RecordReceiverTest, BoundIsExactAndOverAllTheFragments) {
  for (const bool over : {false, true}) {
    Octets stream;
    put_fragment(stream, 10, counted(10));
    put_fragment(stream, kLastFragment | (over ? 91 : 90), counted(90));
    RecordReceiver receiver(pool_, {.max_record = 100});
    std::vector<Octets> records;
    EXPECT_EQ(receive_all(receiver, stream, 1000, records), over ? Outcome::kTooLong : Outcome::kNeedMore);
    EXPECT_EQ(records.size(), over ? 0u : 1u);
    EXPECT_EQ(receiver.next(), over ? Outcome::kTooLong : Outcome::kNeedMore);
  }
}

TEST_F(RecordReceiverTest, EndlessEmptyFragmentsEnd) {
  Octets stream;
  for (std::size_t i = 0; i < kMaxFragments + 1; ++i) put_fragment(stream, 0, {});
  RecordReceiver receiver(pool_, {.max_record = 100});
  std::vector<Octets> records;
  EXPECT_EQ(receive_all(receiver, stream, 1000, records), Outcome::kTooLong);
}

TEST_F(RecordReceiverTest, KnowsWhetherARecordHasBegun) {
  Octets stream;
  put_fragment(stream, 1, counted(1));
  RecordReceiver receiver(pool_, {.max_record = 100});
  EXPECT_FALSE(receiver.is_inside());
  for (std::size_t i = 0; i < stream.size(); ++i) {
    receive(receiver, ConstBytes(stream).subspan(i), 1);
    EXPECT_EQ(receiver.next(), Outcome::kNeedMore);
    EXPECT_TRUE(receiver.is_inside()) << i;
  }
}

struct Owned : OutRecord {
  Owned(std::vector<Octets> the_octets, int& alive) : octets(std::move(the_octets)), alive_(alive) {
    ++alive_;
    for (const Octets& part : octets) parts.push_back(part);
  }
  ~Owned() override { --alive_; }
  std::vector<Octets> octets;
  int& alive_;
};

TEST(RecordSender, SendsMarksAndPartsHoweverTheSocketTakesThem) {
  const std::vector<std::vector<Octets>> messages = {{{1, 2, 3}, {}, {4}}, {}, {{5, 6}}};
  const Octets expected = {0x80, 0, 0, 4, 1, 2, 3, 4, 0x80, 0, 0, 0, 0x80, 0, 0, 2, 5, 6};
  for (std::size_t places = 1; places < 8; ++places) {
    for (std::size_t step = 1; step <= expected.size(); ++step) {
      int alive = 0;
      RecordSender sender;
      for (const auto& parts : messages) sender.push(std::make_unique<Owned>(parts, alive));
      EXPECT_EQ(sender.queued(), expected.size());
      Octets sent;
      std::vector<ConstBytes> out(places);
      while (const std::size_t num = sender.gather(out)) {
        std::size_t n = 0;
        for (std::size_t i = 0; i < num; ++i) {
          const std::size_t part = std::min(step - n, out[i].size());
          sent.insert(sent.end(), out[i].begin(), out[i].begin() + static_cast<std::ptrdiff_t>(part));
          n += part;
        }
        sender.sent(n);
        EXPECT_EQ(sender.queued(), expected.size() - sent.size());
        EXPECT_EQ(alive, (sent.size() < 8 ? 1 : 0) + (sent.size() < 12 ? 1 : 0) + (sent.size() < 18 ? 1 : 0));
      }
      EXPECT_EQ(sent, expected) << places << " places, " << step << " octets at a time";
    }
  }
}

}  // namespace
}  // namespace weft::onc_tcp
