// The reassembly of RPC messages against an arbitrary peer, and against a model that joins the same parts. The input is
// two octets of settings, then operations.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "fuzz/op_stream.h"
#include "rpcrdma/reassembly.h"

namespace {

using namespace weft;
using namespace weft::rpcrdma;
using fuzz::Input;
using fuzz::must;
using Octets = std::vector<std::uint8_t>;
using Part = Reassembly::Part;
using Sequence = Reassembly::Sequence;
using Verdict = Reassembly::Verdict;

class Machine {
 public:
  explicit Machine(Input input)
      : input_(input),
        limits_{.max_octets = 1000u + 100u * input_.u8(),
                .max_parts = 2u + input_.u8() % 64,
                .max_time = std::chrono::seconds(10)},
        reassembly_(std::in_place, limits_, share()) {}

  void run() {
    while (!input_.empty()) {
      operation();
      must(reassembly_->memory() <= std::min(2 * std::max<std::size_t>(joined_.size(), 1), limits_.max_octets));
      must(reassembly_->memory() <= held() && held() <= limits_.max_octets);
      must(!under_way_ || !reassembly_->is_idle());
    }
    reassembly_.reset();
    must(held() == 0);
  }

 private:
  Reassembly::Share share() {
    return {[this](Reassembly::Direction, Lease& lease, std::size_t least, std::size_t most) {
              must(least <= most);
              if (is_short_) return false;
              if (!lease) lease = client_.lease();
              return lease.resize(lease.amount() + (takes_all_ ? most : least)) == Ledger::Verdict::kFits;
            },
            [this] { return is_wanted_; }};
  }

  std::size_t held() const { return ledger_.held(); }

  void operation() {
    const std::uint8_t op = input_.u8();
    switch (op & 7) {
      case 0: return pass_time(std::chrono::milliseconds(input_.u16()));
      case 1:
        is_short_ = (op & 8) != 0;
        is_barred_ = (op & 16) != 0;
        return;
      case 2: takes_all_ = (op & 8) != 0; return;
      case 3: is_wanted_ = (op & 8) != 0; return;
      case 4: {
        const Sequence sequence = some_sequence(op);
        if ((op & 8) != 0) {
          reassembly_->refuse(sequence.direction, sequence.xid);
        } else {
          reassembly_->on_last(sequence.direction, sequence.xid);
        }
        return end(sequence);
      }
      default: return part(op);
    }
  }

  // One of a few, so that they meet.
  static Sequence some_sequence(std::uint8_t op) {
    return {(op & 16) != 0 ? Part::Direction::kReply : Part::Direction::kCall, 0x70u + (op >> 6)};
  }
  void end(const Sequence& sequence) {
    if (under_way_ == sequence) forget();
  }
  void forget() {
    under_way_.reset();
    joined_.clear();
  }

  void part(std::uint8_t op) {
    constexpr Part::Kind kKinds[] = {Part::Kind::kMiddle,   Part::Kind::kMiddle, Part::Kind::kMiddle,
                                     Part::Kind::kMiddle,   Part::Kind::kInline, Part::Kind::kInline,
                                     Part::Kind::kExternal, Part::Kind::kExempt, Part::Kind::kOther};
    const std::uint8_t kind = input_.u8();
    const Sequence sequence = some_sequence(op);
    Octets payload(4u + (input_.u16() & 0x3ff), kind);
    const bool begins = (kind & 0x80) == 0;  // with its XID
    for (std::size_t i = 0; begins && i < 4; ++i) payload[i] = static_cast<std::uint8_t>(sequence.xid >> (24 - 8 * i));
    const Part part{
        kKinds[kind % std::size(kKinds)], sequence.direction, sequence.xid, payload, some_limit(sequence), is_barred_};
    judge(part, sequence, begins, reassembly_->on_message(part, now_));
  }

  // Some messages may be less long than others.
  std::size_t some_limit(const Sequence& sequence) const { return limits_.max_octets >> (sequence.xid & 1); }

  void judge(const Part& part, const Sequence& sequence, bool begins, Verdict verdict) {
    const bool is_part = part.kind == Part::Kind::kMiddle || part.kind == Part::Kind::kInline;
    switch (verdict) {
      case Verdict::kTaken:
      case Verdict::kWhole:
        must(is_part && (!under_way_ || under_way_ == sequence));
        must(under_way_ || (begins && verdict == Verdict::kTaken));
        under_way_ = sequence;
        joined_.insert(joined_.end(), part.payload.begin(), part.payload.end());
        must(joined_.size() <= some_limit(sequence));
        if (verdict == Verdict::kWhole) take();
        return;
      case Verdict::kAlone: must(!is_part || !under_way_); return;
      case Verdict::kInvalCont: must(under_way_.has_value() || is_barred_); return end(sequence);
      case Verdict::kTooLong: must(under_way_ == sequence || !under_way_); return end(sequence);
      case Verdict::kBadXdr: must(!under_way_ && !begins); return;
      case Verdict::kShort: must(is_short_ && is_part); return;
      case Verdict::kDiscard: return end(sequence);
    }
  }

  void take() {
    {
      const Reassembly::Joined message = reassembly_->take_message();
      must(message.octets == joined_ && message.octets.capacity() == held());
    }
    must(held() == 0);
    forget();
  }

  void pass_time(std::chrono::milliseconds time) {
    now_ += time;
    if (const auto late = reassembly_->on_time(now_)) {
      must(under_way_ == late);
      forget();
    }
    must(!reassembly_->next_timeout() || *reassembly_->next_timeout() > now_);
  }

  Input input_;
  const Reassembly::Limits limits_;
  TimePoint now_ = TimePoint{} + std::chrono::hours(1);
  bool is_short_ = false, takes_all_ = false, is_wanted_ = false, is_barred_ = false;
  Ledger ledger_{{}};
  Ledger::Client client_ = ledger_.enter("192.0.2.1");
  std::optional<Sequence> under_way_;
  Octets joined_;  // its octets so far
  std::optional<Reassembly> reassembly_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Machine(Input({data, size})).run();
  return 0;
}
