#include "apps/dissect/dissector.h"

#include <algorithm>
#include <vector>

#include "apps/dissect/connection_decoder.h"

namespace weft::apps::dissect {

Dissector::Dissector(const Options& options, Listener& listener, std::size_t max_connections)
    : options_(options), listener_(listener), max_connections_(max_connections) {}
Dissector::~Dissector() = default;

void Dissector::on_segment(const TcpSegment& segment) {
  const Key key = std::minmax(segment.src, segment.dst);
  const bool is_plain = !segment.syn && !segment.fin && !segment.rst;
  if (is_plain && last_key_ != nullptr && *last_key_ == key && !last_->has_ended()) {
    return last_->on_segment(segment);
  }
  last_key_ = nullptr;
  auto found = connections_.find(key);
  if (found != connections_.end() && found->second->is_over(segment)) {
    found->second->finish();
    connections_.erase(found);
    found = connections_.end();
  }
  if (found == connections_.end()) {
    if (connections_.size() >= max_connections_) drop_oldest();
    found =
        connections_.emplace(key, std::make_unique<ConnectionDecoder>(options_, listener_, numbers_, held_, segment))
            .first;
  }
  last_key_ = &found->first;
  last_ = found->second.get();
  const bool had_ended = last_->has_ended();
  last_->on_segment(segment);
  if (!had_ended && last_->has_ended()) on_end(key);
}

void Dissector::on_end(const Key& key) {
  ended_.push_back(key);
  if (ended_.size() <= kMaxEnded) return;
  const auto oldest = connections_.find(ended_.front());
  ended_.pop_front();
  // Another connection may have the same ends by now.
  if (oldest == connections_.end() || !oldest->second->has_ended()) return;
  if (last_key_ == &oldest->first) last_key_ = nullptr;
  oldest->second->finish();
  connections_.erase(oldest);
}

// A capture with so many connections is rare, so this may look at all of them. It makes room for many.
void Dissector::drop_oldest() {
  std::vector<Timestamp> times;
  for (const auto& [key, decoder] : connections_) times.push_back(decoder->last());
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  const Timestamp oldest_kept = *middle;
  std::erase_if(connections_, [&](auto& entry) {
    if (entry.second->last() > oldest_kept) return false;
    num_given_up_ += entry.second->id() != 0 && !entry.second->has_ended() ? 1 : 0;
    entry.second->finish();
    return true;
  });
}

void Dissector::finish() {
  std::vector<ConnectionDecoder*> decoders;
  for (auto& [key, decoder] : connections_) decoders.push_back(decoder.get());
  std::ranges::sort(decoders, {}, &ConnectionDecoder::id);
  for (ConnectionDecoder* decoder : decoders) decoder->finish();
  connections_.clear();
  last_key_ = nullptr;
}

}  // namespace weft::apps::dissect
