#include "rpcrdma/call_form.h"

#include <algorithm>

#include "requirements/violates.h"
#include "rpcrdma/framing.h"
#include "rpcrdma/reply_retries.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::rpcrdma {

namespace {

// PROG_MISMATCH and RPC_MISMATCH Replies have no results but are longer than a plain header.
constexpr std::size_t kLongestErrorReply = 32;

// R1-10.2.2.2-02: with RPCSEC_GSS the length of the verifier is unknown beforehand.
std::size_t verf_room(const CallSpec& spec) {
  const bool is_gss = spec.cred != nullptr && spec.cred->flavor == static_cast<std::uint32_t>(AuthFlavor::kRpcsecGss);
  return is_gss ? kMaxAuthBody : xdr::round_up(spec.max_verf);
}

std::size_t rpc_len(const CallHeaderView& rpc) {
  return call_header_len(rpc.cred.body.size(), rpc.verf.body.size());
}

// What goes in several messages if the user sets no limit. Two messages with so many octets, and their copies, cost as
// much as a chunk with its registration and RDMA operation. A third message costs more (docs/rpcrdma-v2.md).
constexpr std::size_t kMaxInTwoMessages = 8 << 10;
constexpr std::size_t kMaxWithoutChunks = 16 << 10;

// Whether a Payload stream that is too long for one message goes in several ones. header: octets before its last part.
bool is_continued(std::size_t payload, std::size_t header, std::size_t threshold, std::optional<std::size_t> max,
                  const CallRules& rules) {
  if (max) return payload <= *max;
  if (rules.short_only) return payload <= kMaxWithoutChunks;
  const std::size_t first = (threshold - rules.part_header_len) / kLeastPart * kLeastPart;
  return payload <= kMaxInTwoMessages && header + payload <= first + threshold;
}

// Whether a Call goes in several messages because they are there sooner than a chunk. header: of its last message.
bool is_timely(std::size_t payload, std::size_t header, const CallRules& rules) {
  if (rules.max_continued_call || rules.short_only || payload > kMaxTimelyCall) return false;
  const std::size_t last = rules.call_threshold - header;
  const std::size_t each = (rules.call_threshold - rules.part_header_len) / kLeastPart * kLeastPart;
  const std::size_t before = payload > last ? payload - last : 0;
  return 1 + (before + each - 1) / each <= rules.max_timely_messages;
}

bool may_replace_chunks(std::size_t payload, std::optional<std::size_t> max, std::size_t most, const CallRules& rules) {
  return rules.may_replace_chunks && payload <= std::min(max.value_or(most), most);
}

// Octets of a header with this offer and without Read list.
std::size_t header_len(const CallSpec& spec, const ReplyOffer& offer, const CallRules& rules) {
  const HeaderLengths& lengths = rules.call_lengths;
  std::size_t len = lengths.empty;
  for (std::size_t i = 0; i < offer.num_writes; ++i) {
    len += lengths.of_write_chunk(rules.num_segments(spec.result_items[i]));
  }
  if (offer.reply_chunk_len == 0) return len;
  return len + lengths.reply_chunk +
         lengths.segment * num_segments_of(offer.reply_chunk_len, rules.chunk_terms.max_segment);
}

// Segments of the offer for the Reply.
std::size_t num_offered_segments(const CallSpec& spec, const ReplyOffer& offer, const CallRules& rules) {
  std::size_t num = num_segments_of(offer.reply_chunk_len, rules.chunk_terms.max_segment);
  for (std::size_t i = 0; i < offer.num_writes; ++i) num += rules.num_segments(spec.result_items[i]);
  return num;
}

// Segments of the offer for the Reply, and of the Read chunks of items.
std::size_t num_other_segments(const CallSpec& spec, const ReplyOffer& offer, const CallForm& form,
                               const CallRules& rules) {
  std::size_t num = num_offered_segments(spec, offer, rules);
  for (std::size_t i = 0; i < spec.items.size(); ++i) {
    if (form.is_reduced(i)) num += rules.num_read_segments(spec.items[i].data);
  }
  return num;
}

// Chooses the items that get a Read chunk so that the Call fits the threshold: the longest items first, and no more
// items than servers are known to take. `need`: octets of the Call with all items inline; on return, with the chosen
// items reduced.
void choose_reduced(const CallSpec& spec, const CallRules& rules, CallForm& form, std::size_t& need) {
  const auto& items = spec.items;
  for (std::size_t num = 0; need > rules.call_threshold && num < rules.chunks.max_read_chunks; ++num) {
    std::size_t longest = 0;
    std::size_t longest_len = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::size_t len = len_of(items[i].data);
      if (form.is_reduced(i) || len <= longest_len) continue;
      longest = i;
      longest_len = len;
    }
    if (longest_len == 0) return;
    form.reduced |= std::uint64_t{1} << longest;
    need -= xdr::round_up(longest_len);
    need += rules.call_lengths.read_segment * rules.num_read_segments(items[longest].data);
  }
}

// Lays out the Payload stream of an external or continued Call as pieces: the items, and between them pieces of `head`.
// With `in_one` the whole stream is copied to the head. No piece is longer than `max_segment`.
void lay_out(const CallSpec& spec, const CallHeaderView& rpc, bool in_one, std::size_t max_segment, CallForm& form,
             std::vector<std::uint8_t>& head) {
  form.pieces.clear();
  head.resize(rpc_len(rpc));
  xdr::XdrWriter header{MutBytes(head)};
  emit_call_view(header, rpc);
  xdr::XdrWriter out(head);
  std::size_t closed = 0;  // octets of the head that are in pieces
  const auto close_head = [&] {
    for (; head.size() > closed; closed += form.pieces.back().len) {
      form.pieces.push_back({nullptr, closed, std::min(head.size() - closed, max_segment)});
    }
  };
  std::size_t done = 0;
  for (std::size_t i = 0; i < spec.items.size(); ++i) {
    if (form.is_reduced(i)) continue;
    const ArgumentItem& item = spec.items[i];
    out.raw(spec.args.subspan(done, item.position - done));
    done = item.position;
    for (const ConstBytes octets : item.data) {
      if (in_one || octets.empty()) {
        out.raw(octets);
        continue;
      }
      close_head();
      for (std::size_t at = 0; at < octets.size(); at += form.pieces.back().len) {
        form.pieces.push_back({octets.data() + at, 0, std::min(octets.size() - at, max_segment)});
      }
    }
    out.zeros(xdr::padding(len_of(item.data)));
  }
  out.raw(spec.args.subspan(done));
  close_head();
}

void choose_external(const CallSpec& spec, const CallHeaderView& rpc, const ReplyOffer& offer, std::size_t header,
                     const CallRules& rules, CallForm& form, std::vector<std::uint8_t>& head) {
  form.external = true;
  header += rules.call_lengths.call_chunk;
  if (!rules.chunks.long_calls_with_items) form.reduced = 0;
  for (std::size_t i = 0; i < spec.items.size(); ++i) {
    if (form.is_reduced(i)) header += rules.call_lengths.read_segment * rules.num_read_segments(spec.items[i].data);
  }
  const std::size_t num_other = num_other_segments(spec, offer, form, rules);
  const auto fits = [&] {
    return header + rules.call_lengths.read_segment * form.pieces.size() <= rules.call_threshold &&
           form.pieces.size() + num_other <= rules.chunk_terms.max_segments;
  };
  const std::size_t max_segment = rules.chunk_terms.max_segment;
  lay_out(spec, rpc, false, max_segment, form, head);
  if (form.pieces.size() > rules.chunks.max_segments || !fits()) lay_out(spec, rpc, true, max_segment, form, head);
  if (!fits()) form.refusal = "the chunk lists of the Call do not fit the inline threshold";
}

// Whether the Call has memory for items of its Reply.
bool has_room(const CallSpec& spec) {
  return std::ranges::any_of(spec.result_items, [](const ScatteredBytes& item) { return len_of(item) != 0; });
}

}  // namespace

std::size_t CallRules::num_read_segments(const GatheredBytes& data) const {
  const std::size_t num = num_segments(data);
  const bool has_pad = chunks.roundup_in_read_chunks && xdr::padding(len_of(data)) != 0;
  return num + (has_pad && num < chunks.max_segments ? 1 : 0);
}

// The choice follows from the bound of the Reply.
ReplyOffer choose_reply_offer(const CallSpec& spec, std::size_t min_reply_chunk, const CallRules& rules) {
  ReplyOffer offer;
  std::size_t whole = std::max(kPlainReplyHeader + verf_room(spec) + spec.max_results, kLongestErrorReply);
  for (const ScatteredBytes& item : spec.result_items) whole += xdr::round_up(len_of(item));
  offer.max_reply = whole;
  if (rules.short_only) return offer;
  std::size_t transport = rules.reply_lengths.empty, payload = whole;
  const auto is_long = [&] { return transport + payload > rules.reply_threshold; };
  const auto is_too_long = [&] {
    return is_long() && !is_continued(payload, transport, rules.reply_threshold, rules.max_continued_reply, rules);
  };
  const bool prefers_writes = !rules.max_continued_reply && has_room(spec);
  // A retry always has a Reply chunk. If the Reply chunk excludes Write chunks, all results come in it.
  const bool all_in_reply_chunk = min_reply_chunk != 0 && !rules.chunks.write_list_with_reply_chunk;
  if ((is_too_long() || (prefers_writes && is_long())) && !all_in_reply_chunk) {
    // R1-4.4.6.2-06: no Write list if no result comes through it.
    std::size_t num = std::min(spec.result_items.size(), rules.chunks.max_write_chunks);
    while (num > 0 && len_of(spec.result_items[num - 1]) == 0) --num;
    offer.num_writes = num;
    for (std::size_t i = 0; i < num; ++i) {
      transport += rules.reply_lengths.of_write_chunk(rules.num_segments(spec.result_items[i]));
      payload -= xdr::round_up(len_of(spec.result_items[i]));
    }
    if (is_too_long() && !rules.chunks.write_list_with_reply_chunk) {
      offer.num_writes = 0;
      transport = rules.reply_lengths.empty;
      payload = whole;
    }
  }
  // R1-5.3.3-01: strictly larger than the threshold, transport header included. W2-A.2-1: a Reply that is seldom as
  // long as its bound comes in several messages then.
  const bool needs_chunk = is_too_long() && (payload > rules.max_unpredictable_reply || !is_unpredictable(spec));
  offer.reply_chunk_len = std::max(needs_chunk ? xdr::round_up(payload) : 0, min_reply_chunk);
  const bool has_too_many = num_offered_segments(spec, offer, rules) > rules.chunk_terms.max_segments;
  if (has_too_many && may_replace_chunks(whole, rules.max_continued_reply, rules.max_unpredictable_reply, rules)) {
    offer.num_writes = offer.reply_chunk_len = 0;
  }
  return offer;
}

CallForm choose_call_form(const CallSpec& spec, const CallHeaderView& rpc, const ReplyOffer& offer,
                          const CallRules& rules, std::vector<std::uint8_t>& head) {
  CallForm form;
  const std::size_t header = header_len(spec, offer, rules);
  std::size_t need = header + rpc_len(rpc) + spec.args.size();
  for (const ArgumentItem& item : spec.items) need += xdr::round_up(len_of(item.data));
  const std::size_t payload = need - header;
  const bool may_be_continued = need > rules.call_threshold && header + kLeastLast <= rules.call_threshold;
  const auto continued = [&] {
    CallForm parts;
    parts.continued = true;
    lay_out(spec, rpc, false, payload, parts, head);
    return parts;
  };
  if (may_be_continued && (is_continued(payload, header, rules.call_threshold, rules.max_continued_call, rules) ||
                           is_timely(payload, header, rules))) {
    return continued();
  }
  if (rules.short_only && need > rules.call_threshold) {
    form.refusal = "the Call does not fit the inline threshold, and the peer takes no chunks";
    return form;
  }
  choose_reduced(spec, rules, form, need);
  if (need > rules.call_threshold) choose_external(spec, rpc, offer, header, rules, form, head);
  const std::size_t num_segments = num_other_segments(spec, offer, form, rules) + form.pieces.size();
  if (!violates("W2-5.2-4", num_segments > rules.chunk_terms.max_segments)) return form;
  if (may_be_continued && may_replace_chunks(payload, rules.max_continued_call, kMaxContinued, rules))
    return continued();
  if (form.refusal.empty()) form.refusal = "the chunks of the Call have more segments than the peer takes";
  return form;
}

}  // namespace weft::rpcrdma
