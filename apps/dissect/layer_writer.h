#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "apps/dissect/frame.h"

namespace weft::apps::dissect {

// LayerWriter adds a layer to a frame. Fields cost nothing if no printer wants them.
class LayerWriter {
 public:
  LayerWriter(Frame& frame, LayerKind kind, const Options& options, Source source = Source::kWire)
      : frame_(frame), index_(frame.layers.size()), wants_fields_(options.fields), source_(source) {
    frame.layers.push_back({.kind = kind});
  }

  template <typename... T>
  void line(fmt::format_string<T...> format, T&&... values) {
    fmt::format_to(std::back_inserter(layer().line), format, std::forward<T>(values)...);
  }
  // field: `at` and `len` in octets of the source.
  template <typename... T>
  void field(std::string_view name, std::size_t at, std::size_t len, fmt::format_string<T...> format, T&&... values) {
    if (!wants_fields_) return;
    layer().fields.push_back({.name = name,
                              .value = fmt::format(format, std::forward<T>(values)...),
                              .at = static_cast<std::uint32_t>(at),
                              .len = static_cast<std::uint32_t>(len),
                              .source = source_});
  }
  bool wants_fields() const { return wants_fields_; }

 private:
  Layer& layer() { return frame_.layers[index_]; }

  Frame& frame_;
  std::size_t index_;
  bool wants_fields_;
  Source source_;
};

}  // namespace weft::apps::dissect
