#pragma once

#include <cstddef>

namespace weft::verbs {

// Descriptors of each thread of SoftConfig::num_workers beside those that the bounds of SoftConfig cover: three of its
// own, a connection that says nothing and one that is closing, whatever the bounds are, and 16 connections on their way
// to it (soft::Listener::kMaxComing).
inline constexpr std::size_t kDescriptorsOfWorker = 21;

}  // namespace weft::verbs
