#include "apps/dissect/fault_log.h"

#include <algorithm>

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

}  // namespace

void FaultLog::on_findings(Frame& frame) {
  std::vector<Fault>& own = faults_[static_cast<std::size_t>(frame.from)];
  bool has_earlier = false;
  for (Finding& finding : frame.findings) {
    if (finding.is_blame) {
      has_earlier |= join(frame, finding);
      continue;
    }
    if (own.size() == kMaxFaults) own.erase(own.begin());
    own.push_back({{frame.number, frame.arrival.packet}, finding.requirement, finding.effect, header_of(frame.ulpdu)});
  }
  if (!has_earlier) return;
  frame.findings.push_back({"RDMAP-7.1-05",
                            "the Terminate describes a message, and an earlier one has the same fault",
                            "the receiver looks for the fault in the wrong message",
                            {Source::kMessage, 0, rdmap::kTerminateControlLen}});
}

// A Terminate names its message by the terminated header. Without one, it has to be what the finding says that a
// receiver does, or the rule has to be the same. siw may write any MSN into the header.
bool FaultLog::join(const Frame& frame, Finding& blame) const {
  constexpr std::size_t kBeforeMsn = 10;
  const auto message = rdmap::parse_terminate(frame.message);
  if (!message) return false;
  std::string header = octets_str(message->ddp());
  if (message->siw && header.size() == ddp::kUntaggedHeaderLen) header.resize(kBeforeMsn);
  const std::string due = terminated(message->siw.value_or(message->what));
  const std::vector<Fault>& faults = faults_[static_cast<std::size_t>(culprit(frame, blame))];
  const auto fault = std::find_if(faults.rbegin(), faults.rend(), [&](const Fault& one) {
    if (!header.empty()) return one.header.starts_with(header);
    return one.effect == due || one.requirement == blame.requirement;
  });
  if (fault == faults.rend()) return false;
  blame.confirms = fault->where;
  // RFC 5040 section 7.1, case 4. siw's headers do not name one message.
  const auto first = std::ranges::find(faults, due, &Fault::effect);
  return !header.empty() && !message->siw && fault->effect == due && first->where.frame < fault->where.frame;
}

}  // namespace weft::apps::dissect
