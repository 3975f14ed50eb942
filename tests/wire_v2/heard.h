#pragma once

#include <mutex>
#include <utility>

#include "tests/wire_v2/transcript.h"
#include "verbs-shim/api/testing/post_tap.h"

namespace weft::wire_v2 {

// Heard makes a transcript of what all tapped ends post from observe_posts to ignore_posts.
class Heard : public verbs::testing::PostObserver {
 public:
  void on_post(std::size_t end, const verbs::SendWr& wr) override;
  void on_connect(std::size_t /*end*/, std::span<const std::uint8_t> /*private_data*/) override {}
  void on_pair(std::size_t client, std::size_t server) override;
  void on_arrival(std::size_t end, std::span<const std::uint8_t> octets) override;

  // take: what was heard since the last time.
  Transcript take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(transcript_, {});
  }

 protected:
  // on_octets: a Send, or a message that arrived, in the thread that has it.
  virtual void on_octets(const Bytes& /*octets*/) {}

 private:
  void add(Post post);

  std::mutex mutex_;
  Transcript transcript_;
};

}  // namespace weft::wire_v2
