#include <algorithm>
#include <string>

#include "requirements/violates.h"
#include "rpcrdma/requester.h"
#include "rpcrdma/requester_state.h"

// The part of the Requester that brings the items of a Reply to the memory of the caller.
namespace weft::rpcrdma {

namespace {

void scatter(ConstBytes octets, const ScatteredBytes& room) {
  for (const MutBytes part : room) {
    const std::size_t len = std::min(part.size(), octets.size());
    std::copy_n(octets.begin(), len, part.begin());
    octets = octets.subspan(len);
  }
}

void append(std::vector<std::uint8_t>& out, ConstBytes octets) {
  out.insert(out.end(), octets.begin(), octets.end());
}

}  // namespace

// Empty if the results are as RFC 8166 and the caller want them. Otherwise the reason why the Call fails.
std::string Requester::take_results(Call& call, ConstBytes results, const ReceivedReply& received, Reply& reply) {
  const auto& rooms = call.spec.result_items;
  reply.results = results;
  call.item_lens.assign(rooms.size(), std::nullopt);
  const bool fills = !call.spec.leaves_inline_results &&
                     std::ranges::any_of(rooms, [](const ScatteredBytes& room) { return len_of(room) != 0; });
  if (fills || call.offer.num_writes != 0) {
    item_lens_.clear();
    for (std::size_t i = 0; i < call.offer.num_writes; ++i) {
      item_lens_.push_back(static_cast<std::uint32_t>(total_length(received.lists.write_list[i])));
    }
    found_results_.clear();
    const Walked walked = call.spec.binding->walk_results(call.spec.procedure, results, item_lens_, found_results_);
    if (violates("R1-8.1.1-03", walked == Walked::kGarbage)) {
      return call.offer.num_writes == 0 ? "the results do not decode"
                                        : "the results do not agree with what came by Write chunk";
    }
    if (const char* why = disagreement(call); why != nullptr) return why;
    if (fills) {
      if (std::string why = fill_rooms(call, results, walked, reply); !why.empty()) return why;
    }
  }
  reply.item_lens = call.item_lens;
  if (!call.item_lens.empty()) reply.item_len = call.item_lens.front();
  return {};
}

// Compares the results with the items that came by Write chunk (RFC 8166 section 6.1, RFC 8267 section 6.4.1). Null if
// they agree. Fills item_lens.
const char* Requester::disagreement(Call& call) {
  const auto& offered = call.message.lists.write_list;
  for (std::size_t i = 0; i < call.offer.num_writes; ++i) {
    const bool has_item = i < found_results_.size() && found_results_[i] && found_results_[i]->len != 0;
    const bool is_reduced = has_item && found_results_[i]->reduced;
    if (violates("R1-8.1.1-03", item_lens_[i] != 0 && !is_reduced)) {
      return "the Reply reduced a result that is not DDP-eligible";
    }
    // W2-6.6.4-1
    const bool is_too_long =
        has_item && link_->profile().framing != nullptr && found_results_[i]->len > total_length(offered[i]);
    if (violates("R1-8.1.1-04", !offered[i].empty() && has_item && !is_reduced && !is_too_long)) {
      return "the Reply has a result inline that a Write chunk was offered for";
    }
    if (!offered[i].empty() && !is_too_long) call.item_lens[i] = item_lens_[i];
  }
  return nullptr;
}

// Brings the items that did not come by Write chunk to their rooms, and takes them out of the results.
std::string Requester::fill_rooms(Call& call, ConstBytes results, Walked walked, Reply& reply) {
  const auto& rooms = call.spec.result_items;
  results_.clear();
  std::size_t done = 0;
  for (std::size_t i = 0; i < rooms.size(); ++i) {
    const std::size_t room = len_of(rooms[i]);
    if (room == 0) continue;
    if (i >= found_results_.size() && walked == Walked::kUnknown) {
      return "an operation that the binding does not know stands before a result that has room";
    }
    const bool has_item = i < found_results_.size() && found_results_[i] && found_results_[i]->len != 0;
    if (has_item && found_results_[i]->reduced) continue;
    call.item_lens[i] = has_item ? found_results_[i]->len : 0;
    if (!has_item) continue;
    const EligibleItem& item = *found_results_[i];
    if (item.len > room) {
      return "a result has " + std::to_string(item.len) + " bytes, and its room in CallSpec::result_items has " +
             std::to_string(room);
    }
    if (item.offset < done || item.offset > results.size() || item.len > results.size() - item.offset) {
      return "the binding finds a result that is not in the Reply";
    }
    scatter(results.subspan(item.offset, item.len), rooms[i]);
    append(results_, results.first(item.offset).subspan(done));
    done = std::min(item.offset + xdr::round_up(item.len), results.size());
  }
  if (done == 0) return {};
  append(results_, results.subspan(done));
  reply.results = results_;
  return {};
}

}  // namespace weft::rpcrdma
