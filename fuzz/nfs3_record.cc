// The record marking reader: one octet that bounds how the rest is cut. Records must not depend on the cuts.
#include <algorithm>
#include <cstdlib>

#include "apps/onc_tcp/record.h"

using weft::ConstBytes;
using weft::onc_tcp::RecordReader;

namespace {

constexpr std::size_t kMaxRecord = 4096;

struct Read {
  std::vector<std::vector<std::uint8_t>> records;
  bool too_long = false;
  friend bool operator==(const Read&, const Read&) = default;
};

Read read_all(weft::ConstBytes stream, std::size_t step) {
  Read read;
  RecordReader reader(kMaxRecord);
  while (!stream.empty() && !read.too_long) {
    weft::ConstBytes input = stream.first(std::min(step, stream.size()));
    stream = stream.subspan(input.size());
    while (true) {
      const RecordReader::Outcome outcome = reader.next(input);
      if (outcome == RecordReader::Outcome::kTooLong) read.too_long = true;
      if (outcome != RecordReader::Outcome::kRecord) break;
      if (reader.record().size() > kMaxRecord) std::abort();
      read.records.push_back(reader.take_record());
    }
    if (!read.too_long && !input.empty()) std::abort();
  }
  return read;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const weft::ConstBytes stream = weft::ConstBytes(data, size).subspan(1);
  const std::size_t step = std::size_t{data[0]} + 1;
  if (read_all(stream, step) != read_all(stream, std::max<std::size_t>(stream.size(), 1))) std::abort();
  return 0;
}
