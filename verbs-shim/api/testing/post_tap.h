#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "verbs-shim/api/cm.h"

// A tap in the verbs API: it observes the posts of a device's users. It works with any device and any user.
namespace weft::verbs::testing {

// PostObserver hears, in the threads that post, of each request that a queue pair took. No call precedes the call about
// a post that its sender had received. An end is one side of one connection; numbers ascend in the order in which ends
// came to be, and none comes twice in a process.
class PostObserver {
 public:
  virtual ~PostObserver() = default;
  // The octets that wr.sg_list names are there to be read until on_post returns.
  virtual void on_post(std::size_t end, const SendWr& wr) = 0;
  // Private data of a connect or of an accept.
  virtual void on_connect(std::size_t end, std::span<const std::uint8_t> private_data) = 0;
  // Both ends of one connection are tapped; `client` connected to `server`. Posts may precede this.
  virtual void on_pair(std::size_t /*client*/, std::size_t /*server*/) {}
  // A Send of a peer that is not tapped arrived. Only fake queue pairs tell it.
  virtual void on_arrival(std::size_t /*end*/, std::span<const std::uint8_t> /*octets*/) {}
};

// observe_posts: from now on `observer` hears of every tapped end, until another takes its place; null: none does.
// Returns the observer before it.
PostObserver* observe_posts(PostObserver* observer);

// EndTap is one end's way to the observer.
class EndTap {
 public:
  EndTap();
  void posted(const SendWr& wr) const;
  void connects(std::span<const std::uint8_t> private_data) const;
  void pairs_with(const EndTap& server) const;
  void heard(std::span<const std::uint8_t> octets) const;

 private:
  std::size_t end_;
};

// tapped returns the same device, each of whose connections is an end. bare returns the device in it, for users whose
// posts do not concern the observer, and for functions that want the real one. A device that is not tapped is bare.
std::unique_ptr<Device> tapped(std::unique_ptr<Device> device);
Device& bare(Device& device);

}  // namespace weft::verbs::testing
