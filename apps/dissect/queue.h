#pragma once

#include <boost/container/deque.hpp>

namespace weft::apps::dissect {

// Queue is a deque that holds no memory before its first element. The std::deque of libstdc++ holds 576 octets, and a
// capture has up to Dissector::kMaxConnections connections, of which most need few of their queues.
template <typename T>
using Queue = boost::container::deque<T>;

}  // namespace weft::apps::dissect
