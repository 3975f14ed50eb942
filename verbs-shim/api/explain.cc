#include "verbs-shim/api/explain.h"

#include <array>
#include <cstdint>
#include <cstdio>

namespace weft::verbs {
namespace {

constexpr WcHint kHints[] = {
    {WcStatus::kLocLenErr, "a message was longer than the memory of the Receive that it met, or than a message may be",
     "longer Receives: for RPC-over-RDMA the same ClientConfig::inline_threshold at both ends"},
    {WcStatus::kLocQpOpErr, "the queue pair cannot do this: an RDMA Read or Atomic where the peer serves none (IRD 0)",
     "a larger SoftConfig::ord here and a larger SoftConfig::ird at the peer, and MPA revision 2, which tells them"},
    {WcStatus::kLocProtErr,
     "a work request named memory that is not registered, is registered in another Protection Domain, or is too short",
     "keep memory registered until the work request has completed; lkey and length of each sge"},
    {WcStatus::kWrFlushErr, "the connection ended before this work request was carried out",
     "the reason that the connection gives, or the first completion that failed for another reason"},
    {WcStatus::kMwBindErr, "a memory window was bound or invalidated in a way that is not allowed",
     "invalidate before binding anew; bind within the region, which needs the right to bind windows"},
    {WcStatus::kBadRespErr, "the peer's answer to an RDMA Read or Atomic is not what was asked for",
     "the peer's version; a capture of the connection"},
    {WcStatus::kLocAccessErr, "the peer wrote to, or an RDMA Read answered into, memory without the right for it",
     "register the memory with local and remote write"},
    {WcStatus::kRemInvReqErr, "the peer asked for what it may not: to invalidate an STag that is not its own",
     "the peer's version; memory windows for what the peer is to invalidate"},
    {WcStatus::kRemAccessErr,
     "the peer refused access to its memory: the rkey is wrong or was invalidated, the range is outside the memory, or "
     "the right is missing (Linux siw says a missing right and a wrong STag in the same way)",
     "rkey, address and length against what the peer advertised, and whether it has taken that back"},
    {WcStatus::kRemOpErr, "the peer could not carry it out: no Receive posted, or an operation that it does not know",
     "the peer's log; fewer requests at once (ClientConfig::credits, SoftConfig::ord)"},
    {WcStatus::kFatalErr, "the device failed", "the device's or kernel's log (dmesg); open the device anew"},
    {WcStatus::kGeneralErr, "the device gave no reason", "the device's or kernel's log (dmesg)"},
    {WcStatus::kRetryExcErr, "the peer acknowledged nothing: its host is down, or the network loses everything",
     "whether the peer still runs and can be reached; cables, MTU and flow control where the network is RoCE"},
    {WcStatus::kRnrRetryExcErr, "the peer had no Receive posted for longer than the device waits",
     "fewer messages at once (ClientConfig::credits), or a peer that posts Receives earlier"},
};

// Layer, etype and code as the soft RNIC packs them (Wc::vendor_err). Other devices have numbers of their own, some of
// them small. A completion does not say which device made it.
std::string vendor_words(std::uint32_t vendor_err) {
  constexpr std::uint32_t kTerminateEnd = 0x3000;  // the layers are 0 to 2
  if (vendor_err == 0) return {};
  std::array<char, 80> text{};
  if (vendor_err < kTerminateEnd) {
    std::snprintf(text.data(), text.size(), " (vendor_err 0x%04x; from the soft RNIC that is Terminate %u/%u/%02x)",
                  vendor_err, vendor_err >> 12, vendor_err >> 8 & 0x0f, vendor_err & 0xff);
  } else {
    std::snprintf(text.data(), text.size(), " (vendor_err 0x%08x)", vendor_err);
  }
  return text.data();
}

}  // namespace

std::span<const WcHint> wc_hints() {
  return kHints;
}

std::string explain(const Wc& wc, std::string_view words) {
  if (wc.status == WcStatus::kSuccess) return wc_status_str(wc.status);
  // A flush says only that the connection ended. The connection's own words say so, too.
  if (!words.empty() && wc.status == WcStatus::kWrFlushErr) return std::string(words);
  std::string text = wc_status_str(wc.status);
  if (!words.empty()) {
    text += ": ";
    text += words;
    return text;
  }
  text += vendor_words(wc.vendor_err);
  for (const WcHint& hint : kHints) {
    if (hint.status != wc.status) continue;
    text += ". Likely cause: ";
    text += hint.cause;
    text += ". Try: ";
    text += hint.advice;
  }
  return text;
}

}  // namespace weft::verbs
