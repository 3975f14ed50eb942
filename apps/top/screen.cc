#include "apps/top/screen.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/common/output.h"
#include "apps/common/printable.h"
#include "fmt/format.h"

namespace weft::apps::top {
namespace {

constexpr std::size_t kLeastName = 12, kMostName = 40;

// The octets of the first `len` characters of printable text.
std::string cut(std::string_view text, std::size_t len) {
  std::size_t num = 0, at = 0;
  while (at < text.size() && num < len) {
    at += front_code_point(text.substr(at)).len;
    ++num;
  }
  return std::string(text.substr(0, at));
}

std::string rate_text(double bytes_per_s) {
  return bytes_per_s < 1 ? "-" : format_rate(bytes_per_s);
}

std::string time_text(double ns) {
  return ns <= 0 ? "-" : format_duration_ns(ns);
}

std::string calls_text(double calls_per_s) {
  return calls_per_s < 10 ? fmt::format("{:.1f}", calls_per_s) : fmt::format("{:.0f}", calls_per_s);
}

double of(const Row& row, Traffic traffic) {
  return row.bytes_per_s[static_cast<std::size_t>(traffic)];
}

std::string uptime_text(double seconds) {
  const auto s = static_cast<std::uint64_t>(std::clamp(seconds, 0.0, 1e9));
  if (s >= 86400) return fmt::format("{} d {} h", s / 86400, s / 3600 % 24);
  if (s >= 3600) return fmt::format("{} h {} min", s / 3600, s / 60 % 60);
  return s >= 60 ? fmt::format("{} min {} s", s / 60, s % 60) : fmt::format("{} s", s);
}

std::string amount_text(const Amount& amount) {
  const std::string used = printable(amount.name) + " " + format_octets(amount.used);
  return amount.limit > 0 ? used + " of " + format_octets(amount.limit) : used;
}

std::vector<std::string> head_lines(const View& view, const std::string& where) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("weft {} {} at {}, up {}", printable(view.program), printable(view.version), where,
                              uptime_text(view.uptime_s)));
  lines.push_back(fmt::format("clients {}  connections {} of {}  credits {}  calls under way {} ({} wait for memory)",
                              view.clients, view.all.connections, view.max_connections, view.all.credits,
                              view.all.under_way, view.all.waiting));
  lines.push_back(fmt::format("calls/s {}  p50 {}  p99 {}  errors/s {:.1f}  refused/s {:.1f}  Terminates {}",
                              calls_text(view.all.calls_per_s), time_text(view.all.p50_ns), time_text(view.all.p99_ns),
                              std::max(0.0, view.errors_per_s), view.refused_per_s, view.terminates));
  lines.push_back(fmt::format("in: Send {}, RDMA Read {}, RDMA Write {}  out: Send {}, RDMA Read {}, RDMA Write {}",
                              rate_text(of(view.all, Traffic::kSendIn)), rate_text(of(view.all, Traffic::kReadIn)),
                              rate_text(of(view.all, Traffic::kWriteIn)), rate_text(of(view.all, Traffic::kSendOut)),
                              rate_text(of(view.all, Traffic::kReadOut)), rate_text(of(view.all, Traffic::kWriteOut))));
  std::string memory = "memory";
  for (std::size_t i = 0; i < view.memory.size(); ++i) {
    memory += (i == 0 ? " " : ", ") + amount_text(view.memory[i]);
  }
  lines.push_back(memory);
  if (view.lanes.empty()) return lines;
  std::string disk = "disk";
  for (std::size_t i = 0; i < view.lanes.size(); ++i) {
    disk += fmt::format("{} {} {:.0f} of {:.0f} workers busy, {:.0f} queued", i == 0 ? "" : ";",
                        printable(view.lanes[i].name), view.lanes[i].used, view.lanes[i].limit, view.queued[i]);
  }
  lines.push_back(disk);
  return lines;
}

std::size_t name_width(const std::vector<Row>& rows) {
  std::size_t width = kLeastName;
  for (const Row& row : rows) width = std::max(width, printable(row.name).size());
  return std::min(width, kMostName);
}

std::string client_line(std::size_t width, const std::string& name, const std::array<std::string, 9>& cells) {
  return fmt::format("{:<{}} {:>9} {:>10} {:>10} {:>11} {:>11} {:>11} {:>11} {:>7} {:>6}", cut(name, width), width,
                     cells[0], cells[1], cells[2], cells[3], cells[4], cells[5], cells[6], cells[7], cells[8]);
}

void add_clients(std::vector<std::string>& lines, const std::vector<Row>& rows) {
  const std::size_t width = name_width(rows);
  lines.push_back(client_line(width, "CLIENT",
                              {"CALLS/S", "P50", "P99", "SEND IN", "SEND OUT", "READ", "WRITE", "CREDITS", "QUEUE"}));
  for (const Row& row : rows) {
    const double reads = of(row, Traffic::kReadIn) + of(row, Traffic::kReadOut);
    const double writes = of(row, Traffic::kWriteIn) + of(row, Traffic::kWriteOut);
    lines.push_back(
        client_line(width, printable(row.name),
                    {calls_text(row.calls_per_s), time_text(row.p50_ns), time_text(row.p99_ns),
                     rate_text(of(row, Traffic::kSendIn)), rate_text(of(row, Traffic::kSendOut)), rate_text(reads),
                     rate_text(writes), std::to_string(row.credits), std::to_string(row.under_way)}));
  }
}

void add_procedures(std::vector<std::string>& lines, const std::vector<Row>& rows) {
  const std::size_t width = name_width(rows);
  lines.push_back(fmt::format("{:<{}} {:>9} {:>10} {:>10}", "PROCEDURE", width, "CALLS/S", "P50", "P99"));
  for (const Row& row : rows) {
    lines.push_back(fmt::format("{:<{}} {:>9} {:>10} {:>10}", cut(printable(row.name), width), width,
                                calls_text(row.calls_per_s), time_text(row.p50_ns), time_text(row.p99_ns)));
  }
}

}  // namespace

std::string fit(std::string_view line, std::size_t width) {
  std::string fitting = cut(line, width);
  if (fitting.size() == line.size() || width == 0) return fitting;
  return cut(line, width - 1) + ">";
}

std::vector<std::string> screen_lines(const View& view, const std::string& where, const Page& page) {
  std::vector<std::string> lines = head_lines(view, where);
  lines.emplace_back();
  const std::size_t head = lines.size();
  add_clients(lines, view.rows_of_clients);
  const std::size_t rest = page.height > head ? page.height - head : 1;
  // If not all rows fit, the clients get half of the page, and more if there are few procedures.
  const std::size_t procedures = view.rows_of_procedures.size() + 2;
  const std::size_t most = std::max(rest / 2, rest > procedures ? rest - procedures : 0);
  if (page.height != 0) lines.resize(std::min(lines.size(), head + most));
  lines.emplace_back();
  add_procedures(lines, view.rows_of_procedures);
  if (page.height != 0) lines.resize(std::min(lines.size(), page.height));
  for (std::string& line : lines) line = fit(line, page.width);
  return lines;
}

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const char* type, const Row& row) {
  Json out;
  out["type"] = type;
  if (!row.name.empty()) out["name"] = row.name;
  out["calls_per_s"] = row.calls_per_s;
  out["p50_ns"] = static_cast<std::uint64_t>(row.p50_ns);
  out["p99_ns"] = static_cast<std::uint64_t>(row.p99_ns);
  return out;
}

void add_traffic(Json& out, const Row& row) {
  constexpr std::array<const char*, kNumTraffic> kNames = {"send_in",       "send_out",      "rdma_read_in",
                                                           "rdma_read_out", "rdma_write_in", "rdma_write_out"};
  for (std::size_t i = 0; i < kNumTraffic; ++i) {
    out[std::string(kNames[i]) + "_octets_per_s"] = row.bytes_per_s[i];
  }
  out["connections"] = row.connections;
  out["credits"] = row.credits;
  out["calls_under_way"] = row.under_way;
  out["calls_waiting"] = row.waiting;
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace

std::vector<std::string> json_lines(const View& view) {
  std::vector<std::string> lines;
  Json all = to_json("all", view.all);
  add_traffic(all, view.all);
  all["seconds"] = view.seconds;
  all["uptime_seconds"] = view.uptime_s;
  all["command"] = view.program;
  all["version"] = view.version;
  all["clients"] = view.clients;
  all["errors_per_s"] = std::max(0.0, view.errors_per_s);
  all["refused_per_s"] = view.refused_per_s;
  all["terminates"] = view.terminates;
  lines.push_back(dump(all));
  for (const Row& row : view.rows_of_clients) {
    Json client = to_json("client", row);
    add_traffic(client, row);
    lines.push_back(dump(client));
  }
  for (const Row& row : view.rows_of_procedures) lines.push_back(dump(to_json("procedure", row)));
  return lines;
}

}  // namespace weft::apps::top
