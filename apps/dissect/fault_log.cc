#include "apps/dissect/fault_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "apps/dissect/effect.h"
#include "ddp/segment.h"
#include "rdmap/terminate.h"

namespace weft::apps::dissect {

namespace {

std::string octets_str(ConstBytes octets) {
  return {octets.begin(), octets.end()};
}

// The header of DDP at the front of a ULPDU.
std::string header_of(ConstBytes ulpdu) {
  constexpr std::uint8_t kTagged = 0x80;
  if (ulpdu.empty()) return "";
  const std::size_t len = (ulpdu.front() & kTagged) != 0 ? ddp::kTaggedHeaderLen : ddp::kUntaggedHeaderLen;
  return octets_str(ulpdu.first(std::min(len, ulpdu.size())));
}

// Whether a receiver may answer a finding with this Terminate. One that has asked for no RDMA Read Response may say
// that nothing awaits the opcode.
bool can_answer(std::string_view requirement, const Ending& ending, const rdmap::Terminate& what) {
  return ending == Ending::by(what) || (requirement == "RDMAP-5.2.2-05" && what == rdmap::kUnexpectedOpcode);
}

// Whether a Terminate says that a tagged segment has no right place at its receiver.
bool is_about_place(const rdmap::Terminate& what) {
  constexpr std::uint8_t kTagged = 1, kNotAssociated = 0x02;
  return what.layer == rdmap::Layer::kDdp && what.etype == kTagged && what.code <= kNotAssociated;
}

// What the message that a Terminate names says against it. Empty: nothing.
std::string named_refutation(const rdmap::TerminateMessage& message, const Facts& facts) {
  if (facts.names_unsent) return "it names a message that the other side has not sent";
  if (!facts.misnamed.empty()) return fmt::format("it names {}, which the other side has not sent", facts.misnamed);
  if (facts.names_asked && is_about_place(message.what)) return "its own RDMA Read Request names this place";
  return "";
}

Finding refuted(const rdmap::TerminateMessage& message, std::string_view requirement, std::string_view why) {
  return {.requirement = requirement,
          .what = fmt::format("this Terminate says: {}; the capture refutes it: {}",
                              rdmap::describe(message.siw.value_or(message.what)), why),
          .effect = may_end("the connection ends, and the other side is blamed for it"),
          .place = {Source::kMessage, 0, rdmap::kTerminateControlLen},
          .verdict = Verdict::kRefuted};
}

}  // namespace

bool FaultLog::Half::has_shown(const rdmap::Terminate& fault) const {
  return std::ranges::find(terminates, fault) != terminates.end() ||
         (start && fault == rdmap::to_terminate(mpa::Error::kStartupFrame));
}

void FaultLog::Half::add_terminate(const rdmap::Terminate& terminate) {
  const bool is_known = std::ranges::find(terminates, terminate) != terminates.end();
  if (!is_known && terminates.size() < kMaxTerminates) terminates.push_back(terminate);
}

void FaultLog::on_frame(Frame& frame, const Record& accused) {
  if (frame.facts.is_terminate) weigh(frame, accused);
  for (const Finding& finding : frame.findings) {
    if (!finding.is_blame) keep(frame, finding);
  }
}

void FaultLog::keep(const Frame& frame, const Finding& finding) {
  Half& own = halves_[static_cast<std::size_t>(frame.from)];
  const EarlierFrame where{frame.number, frame.arrival.packet};
  if (own.faults.size() == kMaxFaults) own.faults.erase(own.faults.begin());
  const Ending& ending = finding.effect.ending;
  own.faults.push_back({where, finding.requirement, ending, header_of(frame.ulpdu)});
  own.has_fatal |= ending.is_fatal();
  if (ending.kind == Ending::Kind::kTerminate) own.add_terminate(ending.terminate);
  if (ending.kind == Ending::Kind::kClosesTcp && frame.ulpdu.empty() && !own.start) own.start = where;
}

// Startup frames can be legal, and the initiator may give up all the same: only a refuted error is a violation.
void FaultLog::weigh_setup(const rdmap::TerminateMessage& message, Frame& frame, const Record& accused) const {
  constexpr std::uint8_t kIrd = 0x06, kRtr = 0x07;
  const rdmap::Terminate what = message.siw.value_or(message.what);
  if (what.layer != rdmap::Layer::kLlp || what.etype != 0 || (what.code != kIrd && what.code != kRtr)) return;
  const std::string why = refutation_of(message, accused, halves_[static_cast<std::size_t>(other(frame.from))]);
  frame.facts.verdict = !why.empty() ? Verdict::kRefuted : accused.is_complete ? Verdict::kConfirmed : Verdict::kUnseen;
  if (!why.empty()) frame.findings.push_back(refuted(message, what.code == kIrd ? "MPA2-9.1-13" : "MPA2-9.2-10", why));
}

void FaultLog::weigh(Frame& frame, const Record& accused) {
  const auto message = rdmap::parse_terminate(frame.message);
  if (!message) return;
  const Half& other_half = halves_[static_cast<std::size_t>(other(frame.from))];
  const auto blame = std::ranges::find(frame.findings, true, &Finding::is_blame);
  if (blame == frame.findings.end()) {
    return weigh_setup(*message, frame, accused);
  }
  const Joined joined = join(*message, other_half, *blame);
  std::string why = joined.has_code ? "" : named_refutation(*message, frame.facts);
  if (why.empty() && !joined.has_code) why = refutation_of(*message, accused, other_half);
  if (!why.empty()) blame->confirms.reset();
  blame->verdict = blame->confirms ? Verdict::kConfirmed : why.empty() ? Verdict::kUnseen : Verdict::kRefuted;
  frame.facts.verdict = blame->verdict;
  if (blame->verdict == Verdict::kRefuted) {
    *blame = refuted(*message, blame->requirement, why);
    // The rule on the header says the same.
    if (frame.facts.names_unsent) frame.findings.erase(blame);
  }
  if (!joined.has_earlier) return;
  frame.findings.push_back({"RDMAP-7.1-05",
                            "the Terminate describes a message, and an earlier one has the same fault",
                            "the receiver looks for the fault in the wrong message",
                            {Source::kMessage, 0, rdmap::kTerminateControlLen}});
}

// A Terminate names its message by the terminated header. Without one, it has to be what the finding says that a
// receiver does, or the rule has to be the same. siw may write any MSN into the header.
FaultLog::Joined FaultLog::join(const rdmap::TerminateMessage& message, const Half& accused, Finding& blame) const {
  constexpr std::size_t kBeforeMsn = 10;
  const rdmap::Terminate what = message.siw.value_or(message.what);
  std::string header = octets_str(message.ddp());
  if (message.siw && header.size() == ddp::kUntaggedHeaderLen) header.resize(kBeforeMsn);
  const Ending due = Ending::by(what);
  const auto last = [&](auto&& is_it) { return std::find_if(accused.faults.rbegin(), accused.faults.rend(), is_it); };
  const auto is_named = [&](const Fault& one) { return one.header.starts_with(header) && one.ending.is_fatal(); };
  // A message can have several faults.
  auto fault = last([&](const Fault& one) {
    const bool has_ending = can_answer(one.requirement, one.ending, what);
    return header.empty() ? has_ending || one.requirement == blame.requirement : is_named(one) && has_ending;
  });
  const bool has_code = fault != accused.faults.rend();
  if (!has_code && !header.empty()) fault = last(is_named);
  if (fault == accused.faults.rend()) {
    const bool is_start = accused.start && what == rdmap::to_terminate(mpa::Error::kStartupFrame);
    if (is_start) blame.confirms = accused.start;
    return {.has_code = is_start};
  }
  blame.confirms = fault->where;
  // RFC 5040 section 7.1, case 4. siw's headers do not name one message.
  const auto first = std::ranges::find(accused.faults, due, &Fault::ending);
  return {.has_code = has_code,
          .has_earlier = !header.empty() && !message.siw && fault->ending == due && !is_named(*first)};
}

}  // namespace weft::apps::dissect
