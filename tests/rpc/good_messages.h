#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "rpcrdma/testing/engines.h"

// Well-formed messages for tests that then spoil them: the messages of the vector file, and Calls of NFS in every
// version and every form. Each chunk has memory of its own.
namespace weft::rpcrdma::testing {

// GoodMessage is the octets of one Send, and the memory that its chunks name.
struct GoodMessage {
  std::string name;
  Octets octets;
  std::size_t header_len = 0;
  std::vector<std::unique_ptr<Octets>> readable;  // memory of its Read list, segment by segment
  std::vector<std::unique_ptr<Octets>> writable;
  std::vector<std::unique_ptr<FakeMr>> mrs;
};

// good_messages: V01 to V25, of which most are Calls, and the Calls of NFS.
std::vector<GoodMessage> good_messages(FakeMemory& memory);

// NfsAnswers serves every Call of the NFS family at once: READs with as much as their chunk takes and 3,000 octets at
// most, READDIR with more than fits 1,024 octets, everything else with a few words.
class NfsAnswers : public Service {
 public:
  void on_call(ServedCall call) override;

  Responder* responder = nullptr;
  BufferPool* pool = nullptr;
  std::size_t num_calls = 0;
};

// NfsResponder: a Responder that offers every program with a binding in nfsulb, on a queue pair without peer.
struct NfsResponder {
  NfsResponder(FakeMemory& memory, const ResponderEnd::Options& options);

  ResponderEnd end;
  NfsAnswers answers;
  std::vector<ServedProgram> programs;
};

// Mutator spoils octets in one to three ways: bits, octets, words that mean something to XDR, words lost, doubled and
// swapped, the end cut off or put on, the end of another message.
class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  Octets spoil(const Octets& octets, const Octets& other, std::size_t max_len);
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(random_() % limit); }

 private:
  void spoil_once(Octets& octets, const Octets& other);
  void spoil_word(Octets& octets, std::size_t at);

  std::mt19937_64 random_;
};

// WEFT_SEED, or the same each time.
std::uint64_t seed();

}  // namespace weft::rpcrdma::testing
