#pragma once

#include <fmt/format.h>

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "apps/dissect/append.h"
#include "apps/dissect/frame.h"

namespace weft::apps::dissect {

// number_in returns the number that a field's value begins with: the first of the values if the format begins with it,
// or digits that the format itself begins with. Text is no number, whatever it looks like.
inline std::optional<std::uint64_t> number_in(std::string_view format) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(format.data(), format.data() + format.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}
template <typename First, typename... T>
std::optional<std::uint64_t> number_in(std::string_view format, const First& first, const T&...) {
  if constexpr (std::integral<First>) {
    if constexpr (std::signed_integral<First>) {
      if (first < 0) return std::nullopt;
    }
    if (format.starts_with('{')) return static_cast<std::uint64_t>(first);
  }
  return std::nullopt;
}

// LayerWriter adds a layer to a frame. Fields cost nothing if no printer wants them.
class LayerWriter {
 public:
  LayerWriter(Frame& frame, LayerKind kind, const Options& options, Source source = Source::kWire)
      : frame_(frame), index_(frame.layers.size()), wants_fields_(options.fields), source_(source) {
    frame.layers.add(kind);
  }
  // again adds to the frame's last layer. source: that of the fields from here on.
  static LayerWriter again(Frame& frame, const Options& options, Source source) {
    return LayerWriter(frame, options, source);
  }

  // line: format is a format string that fmt has compiled (FMT_COMPILE("{}")), for append.
  template <typename Format, typename... T>
  void line(const Format& format, const T&... values) {
    append(layer().line, format, values...);
  }
  void text(std::string_view text) { layer().line += text; }
  // field: `at` and `len` in octets of the source.
  template <typename... T>
  void field(std::string_view name, std::size_t at, std::size_t len, fmt::format_string<T...> format, T&&... values) {
    if (!wants_fields_) return;
    const auto number =
        number_in(std::string_view(fmt::string_view(format).data(), fmt::string_view(format).size()), values...);
    layer().fields.push_back({.name = name,
                              .value = fmt::format(format, std::forward<T>(values)...),
                              .at = static_cast<std::uint32_t>(at),
                              .len = static_cast<std::uint32_t>(len),
                              .source = source_,
                              .number = number});
  }
  bool wants_fields() const { return wants_fields_; }

 private:
  LayerWriter(Frame& frame, const Options& options, Source source)
      : frame_(frame), index_(frame.layers.size() - 1), wants_fields_(options.fields), source_(source) {}

  Layer& layer() { return frame_.layers[index_]; }

  Frame& frame_;
  std::size_t index_;
  bool wants_fields_;
  Source source_;
};

}  // namespace weft::apps::dissect
