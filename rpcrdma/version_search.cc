#include "rpcrdma/version_search.h"

#include <utility>

#include "rpcrdma/profiles.h"

namespace weft::rpcrdma {

void VersionSearch::on_answer(Protocol spoken) {
  *this = VersionSearch{};
  spoke_newer_ = spoken != Protocol::k1;
}

VersionSearch::Next VersionSearch::on_unanswered(const Negotiation::Step& end, const Profile& asked, bool is_newer) {
  using Kind = Negotiation::Step::Kind;
  is_last_resort_ = is_unanswered_ = false;
  if (end.kind == Kind::kFailed) return Next::kPolicy;
  // One answer that is late or lost does not show that a server of a newer version became one of version 1.
  const bool may_be_newer = &asked != &profile_1() && (spoke_newer_ || range_ || is_newer);
  if (may_be_newer && !std::exchange(has_asked_again_, true)) return Next::kAskAgain;
  // A server that refused version 1 as the last resort gets no second one: the two could take turns without an end.
  is_last_resort_ = end.kind == Kind::kLastResort && !has_turned_back_;
  is_unanswered_ = !is_last_resort_;
  return is_last_resort_ ? Next::kVersion1 : Next::kPolicy;
}

void VersionSearch::turn_back(const VersionRange& named) {
  range_ = named;
  is_last_resort_ = has_asked_again_ = false;
  has_turned_back_ = true;
}

}  // namespace weft::rpcrdma
