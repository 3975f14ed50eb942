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
  for (Finding& finding : frame.findings) {
    if (finding.is_blame) {
      join(frame, finding);
      continue;
    }
    if (own.size() == kMaxFaults) own.erase(own.begin());
    own.push_back({{frame.number, frame.arrival.packet}, finding.requirement, finding.effect, header_of(frame.ulpdu)});
  }
}

// A Terminate names its message by the terminated header. Without one, it has to be what the finding says that a
// receiver does, or the rule has to be the same. siw may write any MSN into the header.
void FaultLog::join(const Frame& frame, Finding& blame) const {
  constexpr std::size_t kBeforeMsn = 10;
  const auto message = rdmap::parse_terminate(frame.message);
  if (!message) return;
  std::string header = octets_str(message->ddp());
  if (message->siw && header.size() == ddp::kUntaggedHeaderLen) header.resize(kBeforeMsn);
  const std::string due = terminated(message->siw.value_or(message->what));
  const std::vector<Fault>& faults = faults_[static_cast<std::size_t>(culprit(frame, blame))];
  const auto fault = std::find_if(faults.rbegin(), faults.rend(), [&](const Fault& one) {
    if (!header.empty()) return one.header.starts_with(header);
    return one.effect == due || one.requirement == blame.requirement;
  });
  if (fault != faults.rend()) blame.confirms = fault->where;
}

}  // namespace weft::apps::dissect
