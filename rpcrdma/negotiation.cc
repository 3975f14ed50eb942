#include "rpcrdma/negotiation.h"

#include <algorithm>
#include <utility>

#include "requirements/violates.h"
#include "rpcrdma/profiles.h"
#include "rpcrdma/rpc_message.h"

namespace weft::rpcrdma {

namespace {

using Step = Negotiation::Step;

std::string names_of(const Profiles& profiles) {
  std::string names;
  for (const Profile* profile : profiles) names.append(names.empty() ? "" : ",").append(profile->name);
  return names;
}

}  // namespace

Negotiation::Negotiation(Config config)
    : config_(std::move(config)), range_(config_.range), asked_(first_question()), xid_(config_.first_xid) {}

const Profile* Negotiation::first_question() const {
  if (config_.known != nullptr && may_ask(*config_.known)) return config_.known;
  const auto at = std::ranges::find_if(config_.profiles, [this](const Profile* one) { return may_ask(*one); });
  return at != config_.profiles.end() ? *at : config_.profiles.front();
}

std::size_t Negotiation::emit_probe(MutBytes out) const {
  Message probe;
  probe.xid = xid_;
  probe.version = asked_->version;
  probe.credit = config_.credits;
  xdr::XdrWriter writer(out);
  asked_->emit(writer, probe);
  emit_call_view(writer, {.xid = xid_, .cred = {}, .verf = {}});
  return writer.size();
}

// R1-7.1.4-02: a Call may have the XID of the probe.
Step Negotiation::on_message(ConstBytes message) {
  if (failed_) return {};
  const auto xid = asked_->reply_xid(message);
  if (!xid) return {};
  if (asked_->message_kind(message) == MessageKind::kCall) return {.kind = Step::Kind::kKeep};
  return xid == xid_ ? judge(message) : Step{};
}

Step Negotiation::judge(ConstBytes message) {
  // Another draft's refusal may look like an error of this one, or like none.
  if (asked_->other_draft != nullptr) {
    const std::string_view draft = asked_->other_draft(xid_, message);
    if (!draft.empty()) {
      draft_ = draft;
      return on_refused();
    }
  }
  switch (asked_->receive_reply(message, Offered{}, reply_)) {
    case ReplyVerdict::kDiscard: return {};
    case ReplyVerdict::kReply:
    case ReplyVerdict::kExternalReply:
      return {.kind = Step::Kind::kDecided, .profile = asked_, .credit = reply_.credit};
    case ReplyVerdict::kError: break;
  }
  if (reply_.error.code == TransportError::Code::kVersion) {
    range_ = VersionRange{reply_.error.low, reply_.error.high};
    refused_version_ = asked_->version;
  }
  // W2-7.4.1-2: such an error ends one RPC, and another one may succeed.
  if (reply_.error.code == TransportError::Code::kSystem && std::exchange(excused_, asked_) != asked_) {
    ++xid_;
    return {.kind = Step::Kind::kProbe};
  }
  return on_refused();
}

// Whether the server did not refuse this version.
bool Negotiation::is_open(const Profile& profile) const {
  return std::ranges::find(refused_, &profile) == refused_.end();
}

// W2-7.1.1-2, R2-8.2-2
bool Negotiation::may_ask(const Profile& profile) const {
  if (!is_open(profile)) return false;
  return !violates("W2-7.1.1-2", range_ && !range_->has(profile.version));
}

// A server of another draft may speak other versions, too, but the draft goes first. A server that refuses a version as
// such, and names it among its own, contradicts itself: its other versions go first (W2-A-03).
Step Negotiation::on_refused() {
  refused_.push_back(asked_);
  ++xid_;
  const auto next = [&](auto wanted) {
    return std::ranges::find_if(config_.profiles, [&](const Profile* one) { return may_ask(*one) && wanted(*one); });
  };
  auto at = config_.profiles.end();
  if (!draft_.empty()) at = next([this](const Profile& one) { return one.name == draft_; });
  if (at == config_.profiles.end()) at = next([this](const Profile& one) { return one.version != refused_version_; });
  if (at == config_.profiles.end()) at = next([](const Profile&) { return true; });
  if (at != config_.profiles.end()) {
    asked_ = *at;
    return {.kind = Step::Kind::kProbe};
  }
  failed_ = true;
  return {.kind = Step::Kind::kFailed, .why = "no version of RPC-over-RDMA in common: " + versions_of_both()};
}

std::string Negotiation::versions_of_both() const {
  const std::string own = names_of(config_.profiles);
  if (!range_ && draft_.empty()) return "the server refuses " + own;
  std::string server(draft_);
  if (draft_.empty()) server = std::to_string(range_->low);
  if (draft_.empty() && range_->high != range_->low) server += " to " + std::to_string(range_->high);
  const auto is_spoken = [this](const Profile* one) {
    return draft_.empty() ? range_->has(one->version) : one->name == draft_;
  };
  // It contradicts itself.
  if (std::ranges::any_of(config_.profiles, is_spoken)) return "the server speaks " + server + ", and refuses " + own;
  const std::string missing = names_of(missing_profiles());
  return "the server speaks " + server + ", and ClientConfig::protocols names " + own +
         (missing.empty() ? "" : "; add " + missing + " to it");
}

// The versions that the client could speak to this server, and does not.
Profiles Negotiation::missing_profiles() const {
  Profiles missing = profiles_of(all_protocols());
  std::erase_if(missing, [this](const Profile* one) {
    const bool is_spoken = draft_.empty() ? range_->has(one->version) : one->name == draft_;
    return !is_spoken || std::ranges::find(config_.profiles, one) != config_.profiles.end();
  });
  return missing;
}

// R2-8.2-3, R2-8.2-4, W2-4.3.2-3
Step Negotiation::on_end(const std::string& why) {
  if (std::exchange(failed_, true)) return {.kind = Step::Kind::kFailed, .why = why};
  const bool has_version_1 = std::ranges::find(config_.profiles, &profile_1()) != config_.profiles.end();
  if (has_version_1 && may_ask(profile_1())) return {.kind = Step::Kind::kLastResort};
  const char* hint = "; version 1 is the last resort, and ClientConfig::protocols does not name it";
  return {.kind = Step::Kind::kUnanswered, .why = why + (has_version_1 ? "" : hint)};
}

}  // namespace weft::rpcrdma
