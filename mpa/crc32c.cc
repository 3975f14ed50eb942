#include "mpa/crc32c.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <isa-l/crc.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "mpa/crc32c_mixed.h"

namespace weft::mpa {

namespace {

// Runs of fewer octets than kMinMixedLen go to ISA-L. Runs of at most kMaxLoopLen octets go to a loop: on so few,
// ISA-L's function spends most of its time on entry and exit.
constexpr std::size_t kMinMixedLen = 448;
constexpr std::size_t kMaxLoopLen = 128;

// WEFT_CRC32C decides for measurements (bench/README.md).
bool choose_mixed(bool otherwise) {
  if (const char* wanted = std::getenv("WEFT_CRC32C")) return wanted == std::string_view("mixed") && mixed_available();
  return otherwise;
}
const bool kMixed = choose_mixed(mixed_is_fastest());
// To copy and hash at once beats memcpy and then ISA-L with AVX-512, too.
const bool kMixedCopy = choose_mixed(mixed_available());

#ifdef __x86_64__
const bool kHasAvx = __builtin_cpu_supports("avx") != 0;

// ISA-L 2.30 leaves the upper halves of the vector registers dirty. The next SSE instruction then takes 150 ns on
// processors with AVX-512.
__attribute__((target("avx"))) void clear_upper_halves() {
  _mm256_zeroupper();
}
void clean_registers() {
  if (kHasAvx) clear_upper_halves();
}

const bool kHasCrc32 = __builtin_cpu_supports("sse4.2") != 0;

__attribute__((target("sse4.2"))) std::uint32_t loop_update(std::uint32_t state, ConstBytes octets) {
  std::uint64_t crc = state;
  for (; octets.size() >= sizeof(std::uint64_t); octets = octets.subspan(sizeof(std::uint64_t))) {
    std::uint64_t word = 0;
    std::memcpy(&word, octets.data(), sizeof(word));
    crc = _mm_crc32_u64(crc, word);
  }
  for (const std::uint8_t octet : octets) crc = _mm_crc32_u8(static_cast<std::uint32_t>(crc), octet);
  return static_cast<std::uint32_t>(crc);
}
#else
constexpr bool kHasCrc32 = false;

void clean_registers() {}
std::uint32_t loop_update(std::uint32_t state, ConstBytes) {
  return state;
}
#endif

}  // namespace

void Crc32c::update(ConstBytes octets) {
  if (kHasCrc32 && octets.size() <= kMaxLoopLen) {
    state_ = loop_update(state_, octets);
    return;
  }
  if (kMixed && octets.size() >= kMinMixedLen) {
    state_ = mixed_update(state_, octets);
    return;
  }
  while (!octets.empty()) {
    const auto len = std::min<std::size_t>(octets.size(), INT_MAX);
    // ISA-L only reads, but takes a pointer to mutable octets.
    state_ = crc32_iscsi(const_cast<std::uint8_t*>(octets.data()), static_cast<int>(len), state_);
    octets = octets.subspan(len);
  }
  clean_registers();
}

void Crc32c::copy(std::uint8_t* to, ConstBytes octets) {
  if (octets.empty()) return;
  if (kMixedCopy && octets.size() >= kMinMixedLen) {
    state_ = mixed_copy(state_, to, octets);
    return;
  }
  std::memcpy(to, octets.data(), octets.size());
  update({to, octets.size()});
}

bool Crc32c::copies_in_one_pass() {
  return kMixedCopy;
}

}  // namespace weft::mpa
