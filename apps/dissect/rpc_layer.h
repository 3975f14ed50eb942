#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include "apps/dissect/layer_writer.h"

namespace weft::apps::dissect {

// RpcLayer writes the layer of an RPC message. Places count from the beginning of the RPC message.
class RpcLayer {
 public:
  // at: where the RPC message begins in the Send. kInChunk: it is in a chunk, whose octets are parts of other frames.
  static constexpr std::size_t kInChunk = SIZE_MAX;
  RpcLayer(Frame& frame, const Options& options, std::size_t at)
      : layer_(frame, LayerKind::kRpc, options, Source::kMessage), at_(at) {}

  template <typename Format, typename... T>
  void line(const Format& format, const T&... values) {
    layer_.line(format, values...);
  }
  void text(std::string_view text) { layer_.text(text); }
  template <typename... T>
  void field(std::string_view name, std::size_t at, std::size_t len, fmt::format_string<T...> format, T&&... values) {
    if (!layer_.wants_fields()) return;
    const bool is_here = at_ != kInChunk;
    layer_.field(name, is_here ? at_ + at : 0, is_here ? len : 0, format, std::forward<T>(values)...);
  }
  bool wants_fields() const { return layer_.wants_fields(); }

 private:
  LayerWriter layer_;
  std::size_t at_;
};

}  // namespace weft::apps::dissect
