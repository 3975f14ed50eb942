#include "apps/dissect/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/common/output.h"
#include "apps/common/say.h"

namespace weft::apps::dissect {

namespace {

constexpr std::size_t kMaxLines = 8;  // of a connection's beginning, and of its end

// The clocks of captures go backwards, too.
std::string duration(Timestamp time) {
  const std::string length = format_duration_ns(std::abs(static_cast<double>(time.count())));
  return time < Timestamp() ? "-" + length : length;
}

std::string_view arrow(Side side) {
  return side == Side::kClient ? ">" : "<";
}

}  // namespace

void Summary::on_connection(const Connection& connection) {
  ++num_connections_;
  open_[connection.id].names = connection;
}

void Summary::on_frame(const Frame& frame) {
  Ends& ends = open_[frame.connection];
  ++num_frames_;
  if (ends.frames++ == 0) ends.first = frame.arrival.time;
  ends.last = frame.arrival.time;
  ends.findings += num_violations(frame);
  const Facts& facts = frame.facts;
  const bool is_of_tcp = !frame.layers.empty() && frame.layers.front().kind == LayerKind::kTcp;
  const bool is_event = facts.is_startup || facts.is_terminate || is_of_tcp;
  if (is_event) {
    for (const Layer& layer : frame.layers) {
      if (!layer.line.empty()) add_line(ends, fmt::format("{} {}", arrow(frame.from), layer.line.str()));
    }
  }
  if (facts.rdma) {
    Operations& operations = ends.operations[{facts.rdma->operation, frame.from}];
    ++operations.num;
    operations.octets += facts.rdma->octets;
    operations.segments += facts.rdma->num_segments;
  }
  if (facts.credit) count_credit(ends, frame);
  if (facts.rpc) count_rpc(ends, frame);
}

void Summary::add_line(Ends& ends, std::string line) {
  if (line.size() > kMaxText) line.replace(kMaxText, std::string::npos, "...");
  if (text_len_ + line.size() > limits_.text) {
    ++ends.lines_left_out;
    return;
  }
  text_len_ += line.size();
  if (ends.first_lines.size() < kMaxLines) return ends.first_lines.push_back(std::move(line));
  ends.last_lines.push_back(std::move(line));
  if (ends.last_lines.size() <= kMaxLines) return;
  text_len_ -= ends.last_lines.front().size();
  ends.last_lines.pop_front();
  ++ends.lines_left_out;
}

void Summary::give_back(const Ends& ends) {
  for (const std::string& line : ends.first_lines) text_len_ -= line.size();
  for (const std::string& line : ends.last_lines) text_len_ -= line.size();
  num_procedures_ -= ends.procedures.size();
  for (const auto& [name, procedure] : ends.procedures) num_latencies_ -= procedure.max_latencies;
}

void Summary::count_credit(Ends& ends, const Frame& frame) {
  const std::uint32_t credit = *frame.facts.credit;
  Credits& credits = ends.credits[frame.from];
  credits.all.add({credit, credit});
  credits.last = credit;
  const Timestamp time = std::max(frame.arrival.time - ends.first, Timestamp(0));
  while (time / credits.bin_len >= static_cast<std::int64_t>(kNumBins)) {
    for (std::size_t i = 0; i < kNumBins; ++i) {
      const Range bin = std::exchange(credits.bins[i], {});
      credits.bins[i / 2].add(bin);
    }
    credits.bin_len *= 2;
  }
  credits.bins[static_cast<std::size_t>(time / credits.bin_len)].add({credit, credit});
}

void Summary::print_credits(Side side, const Credits& credits) const {
  const auto range = [](const Range& of) {
    return of.least == of.most ? fmt::format("{}", of.least) : fmt::format("{} to {}", of.least, of.most);
  };
  say(out_, "  {} credits {}, at the end {}\n", arrow(side), range(credits.all), credits.last);
  std::string text;
  Range before;
  std::size_t num_ranges = 0;
  for (std::size_t i = 0; i < kNumBins; ++i) {
    const Range& bin = credits.bins[i];
    if (bin.is_empty() || bin == before) continue;
    text += fmt::format("{} {} from {}", before.is_empty() ? "" : ",", range(bin),
                        duration(static_cast<std::int64_t>(i) * credits.bin_len));
    num_ranges += 1;
    before = bin;
  }
  if (num_ranges > 1) say(out_, "    over time:{}\n", text);
}

void Summary::count_rpc(Ends& ends, const Frame& frame) {
  const RpcFact& rpc = *frame.facts.rpc;
  std::string name(rpc.procedure.empty() ? "unknown" : rpc.procedure);
  const bool has_room = ends.procedures.size() < kMaxProcedures && num_procedures_ < limits_.procedures;
  if (!has_room && !ends.procedures.contains(name)) name = "other procedures";
  const auto [found, is_new] = ends.procedures.try_emplace(name);
  num_procedures_ += is_new ? 1 : 0;
  Procedure& procedure = found->second;
  if (!rpc.is_reply) {
    ++procedure.calls;
    return;
  }
  ++procedure.replies;
  procedure.failed += rpc.failed ? 1 : 0;
  if (!rpc.latency) return;
  if (!procedure.latencies) {
    procedure.max_latencies = num_latencies_ + kMaxLatencies <= limits_.latencies ? kMaxLatencies : kFewLatencies;
    num_latencies_ += procedure.max_latencies;
    procedure.latencies.emplace(procedure.max_latencies, Samples::Room::kAsNeeded);
  }
  procedure.latencies->add(static_cast<std::uint64_t>(std::max<std::int64_t>(0, rpc.latency->count())));
  procedure.longest = std::max(procedure.longest, *rpc.latency);
  const auto at = std::ranges::find_if(ends.slow, [&](const Slow& slow) { return slow.latency < *rpc.latency; });
  if (at == ends.slow.end() && ends.slow.size() >= kMaxSlow) return;
  ends.slow.insert(at, {*rpc.latency, frame.arrival.time - ends.first, rpc.xid, std::string(rpc.procedure)});
  if (ends.slow.size() > kMaxSlow) ends.slow.pop_back();
}

void Summary::on_connection_end(std::uint32_t connection, const TcpCounters& counters) {
  const auto ends = open_.find(connection);
  if (ends == open_.end()) return;
  print(ends->second, counters);
  give_back(ends->second);
  open_.erase(ends);
}

void Summary::print(Ends& ends, const TcpCounters& counters) {
  say(out_, "connection {}: {} to {}, {}, {} MPA frames, {} and {} sent\n", ends.names.id, ends.names.client,
      ends.names.server, duration(ends.last - ends.first), ends.frames,
      format_octets(static_cast<double>(counters.client.octets)),
      format_octets(static_cast<double>(counters.server.octets)));
  for (const std::string& line : ends.first_lines) say(out_, "  {}\n", line);
  if (ends.lines_left_out != 0) say(out_, "  ... {} left out\n", counted(ends.lines_left_out, "line"));
  for (const std::string& line : ends.last_lines) say(out_, "  {}\n", line);
  const auto lost = counters.client.lost + counters.server.lost;
  const auto cut = counters.client.cut + counters.server.cut;
  say(out_, "  TCP: {} segments sent again, {} out of order; missing in the capture: {} bytes lost, {} cut off\n",
      counters.client.retransmitted + counters.server.retransmitted,
      counters.client.out_of_order + counters.server.out_of_order, lost, cut);
  for (const auto& [key, operations] : ends.operations) {
    say(out_, "  {} {:<28} {:>9}  {:>12}  {} FPDUs\n", arrow(key.second), key.first, operations.num,
        format_octets(static_cast<double>(operations.octets)), operations.segments);
  }
  for (const auto& [side, credits] : ends.credits) {
    print_credits(side, credits);
  }
  if (!ends.procedures.empty()) {
    say(out_, "  {:<30} {:>9} {:>9} {:>8} {:>12} {:>12} {:>12}\n", "procedure", "Calls", "Replies", "failed", "median",
        "p99", "longest");
  }
  for (auto& [name, procedure] : ends.procedures) {
    const auto quantile = [&procedure = procedure](double q) {
      return procedure.latencies ? format_duration_ns(static_cast<double>(procedure.latencies->quantile(q))) : "-";
    };
    say(out_, "  {:<30} {:>9} {:>9} {:>8} {:>12} {:>12} {:>12}\n", name, procedure.calls, procedure.replies,
        procedure.failed, quantile(0.5), quantile(0.99), duration(procedure.longest));
  }
  for (const Slow& slow : ends.slow) {
    say(out_, "  slow: {} XID {:#010x} took {}, until {}\n", slow.procedure, slow.xid, duration(slow.latency),
        duration(slow.time));
  }
  if (ends.findings != 0) say(out_, "  {}: see --check\n", counted(ends.findings, "violation"));
}

void Summary::on_capture_end(const CaptureEnd&) {
  say(out_, "{}, {}\n", counted(num_connections_, "iWARP connection"), counted(num_frames_, "MPA frame"));
}

}  // namespace weft::apps::dissect
