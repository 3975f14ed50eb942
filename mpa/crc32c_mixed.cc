#include "mpa/crc32c_mixed.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace weft::mpa {

#ifdef __x86_64__

namespace mixed {
namespace {

// A polynomial of degree below 32 over GF(2), as the instructions have it: bit 31 - i is the coefficient of x^i.
using Residue = std::uint32_t;

constexpr Residue reflected(std::uint32_t coefficients) {
  Residue residue = 0;
  for (int i = 0; i < 32; ++i) residue |= (coefficients >> i & 1) << (31 - i);
  return residue;
}
constexpr Residue kPolynomial = reflected(0x1edc6f41);  // without its x^32 (RFC 7143 section 13.1)

// multiply returns a * b modulo the polynomial.
constexpr Residue multiply(Residue a, Residue b) {
  Residue product = 0;
  for (int i = 31; i >= 0; --i) {
    if ((a >> i & 1) != 0) product ^= b;
    b = b >> 1 ^ ((b & 1) != 0 ? kPolynomial : 0);
  }
  return product;
}

// power returns x^n modulo the polynomial.
constexpr Residue power(unsigned n) {
  Residue result = reflected(1);
  for (Residue square = reflected(2); n != 0; n >>= 1, square = multiply(square, square)) {
    if ((n & 1) != 0) result = multiply(result, square);
  }
  return result;
}

// Of two reflected operands the instruction gives x times their product, and a Residue in the low half of a 64-bit
// operand counts as x^32 times itself. So each constant below has 33 taken from its exponent.

// A block is `rounds` rounds long. Its first rounds * kVectorLen octets go through four accumulators of 32 octets each.
// The rest are three streams of rounds * kStreamLen octets for the instruction crc32, whose latency is three cycles.
constexpr std::size_t kVectorLen = 4 * 32;
constexpr std::size_t kStreamLen = 32;
constexpr std::size_t kRoundLen = kVectorLen + 3 * kStreamLen;
constexpr std::size_t kMaxRounds = 32;

// kShifts[n] moves a CRC on by n * kStreamLen octets.
constexpr auto kShifts = [] {
  std::array<Residue, kRoundLen / kStreamLen* kMaxRounds + 1> shifts = {};
  shifts[1] = power(8 * kStreamLen - 33);
  for (std::size_t n = 2; n < shifts.size(); ++n) shifts[n] = multiply(shifts[n - 1], power(8 * kStreamLen));
  return shifts;
}();
static_assert(kRoundLen % kStreamLen == 0);

#define WEFT_MIXED __attribute__((target("sse4.2,avx2,pclmul,vpclmulqdq")))
#define WEFT_MIXED_INLINE __attribute__((target("sse4.2,avx2,pclmul,vpclmulqdq"), always_inline)) inline

// The factors that move the lower half of a 16-octet register, whose octets come first, and the upper half on by kLen.
template <std::size_t kLen>
WEFT_MIXED_INLINE __m128i factors() {
  constexpr Residue kLower = power(8 * kLen + 64 - 33);
  constexpr Residue kUpper = power(8 * kLen - 33);
  return _mm_set_epi64x(kUpper, kLower);
}

// fold moves the octets of `from` on by kLen and adds them to the octets that lie there.
template <std::size_t kLen>
WEFT_MIXED_INLINE __m128i fold(__m128i from, __m128i to) {
  const __m128i by = factors<kLen>();
  return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(from, by, 0x00), _mm_clmulepi64_si128(from, by, 0x11)), to);
}
template <std::size_t kLen>
WEFT_MIXED_INLINE __m256i fold(__m256i from, __m256i to) {
  const __m256i by = _mm256_broadcastsi128_si256(factors<kLen>());
  return _mm256_xor_si256(
      _mm256_xor_si256(_mm256_clmulepi64_epi128(from, by, 0x00), _mm256_clmulepi64_epi128(from, by, 0x11)), to);
}

WEFT_MIXED_INLINE __m128i shift(std::uint64_t crc, std::size_t num_streams) {
  return _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(crc)),
                              _mm_cvtsi32_si128(static_cast<int>(kShifts[num_streams])), 0);
}

template <typename Word>
WEFT_MIXED_INLINE Word load(const std::uint8_t* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

// take loads what is hashed next, and stores it at `to` if it is copied as well. The asm statement hides its origin
// from the compiler, which would else be free to load it twice. Without a copy `to` is null.
template <bool kCopy>
WEFT_MIXED_INLINE __m256i take_vector(const std::uint8_t* from, std::uint8_t* to, std::size_t at) {
  __m256i octets = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at));
  if constexpr (kCopy) {
    asm("" : "+x"(octets));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + at), octets);
  }
  return octets;
}
template <typename Word, bool kCopy>
WEFT_MIXED_INLINE Word take(const std::uint8_t*& from, std::uint8_t*& to) {
  Word word = load<Word>(from);
  from += sizeof word;
  if constexpr (kCopy) {
    asm("" : "+r"(word));
    std::memcpy(to, &word, sizeof word);
    to += sizeof word;
  }
  return word;
}

struct Streams {
  template <bool kCopy>
  WEFT_MIXED_INLINE void round(const std::uint8_t* from, std::uint8_t* to, std::size_t len) {
    if constexpr (kCopy) {
      take_vector<true>(from, to, 0);
      take_vector<true>(from, to, len);
      take_vector<true>(from, to, 2 * len);
      from = to;  // the copy is hashed: three stores of 32 octets cost less than twelve of eight
    }
    step(from, len);
    step(from + 8, len);
    step(from + 16, len);
    step(from + 24, len);
  }
  WEFT_MIXED_INLINE void step(const std::uint8_t* from, std::size_t len) {
    a = _mm_crc32_u64(a, load<std::uint64_t>(from));
    b = _mm_crc32_u64(b, load<std::uint64_t>(from + len));
    c = _mm_crc32_u64(c, load<std::uint64_t>(from + 2 * len));
  }

  std::uint64_t a = 0;
  std::uint64_t b = 0;
  std::uint64_t c = 0;
};

// The processor prefetches what lies behind a stream. It cannot know where the streams of the next block begin, which
// is most often the next FPDU where this one ends. To prefetch what is not there does no harm.
// The address is a number: a pointer may not leave its array.
WEFT_MIXED_INLINE void prefetch_round(std::uintptr_t from) {
  for (std::size_t line = 0; line < kRoundLen; line += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(from + line), _MM_HINT_T0);
  }
}

// Returns the CRC of `before`, the state before a block, and the block.
template <bool kCopy>
WEFT_MIXED_INLINE std::uint32_t block(std::uint32_t before, const std::uint8_t* from, std::uint8_t* to,
                                      std::size_t rounds) {
  const std::size_t stream_len = rounds * kStreamLen;
  const std::uint8_t* const vectors_end = from + rounds * kVectorLen;
  const std::uint8_t* streams_from = vectors_end;
  std::uint8_t* streams_to = kCopy ? to + rounds * kVectorLen : nullptr;
  std::uintptr_t ahead = reinterpret_cast<std::uintptr_t>(from) + rounds * kRoundLen;
  Streams streams;
  __m256i v0 = take_vector<kCopy>(from, to, 0);
  __m256i v1 = take_vector<kCopy>(from, to, 32);
  __m256i v2 = take_vector<kCopy>(from, to, 64);
  __m256i v3 = take_vector<kCopy>(from, to, 96);
  while (true) {
    prefetch_round(ahead);
    ahead += kRoundLen;
    streams.round<kCopy>(streams_from, streams_to, stream_len);
    from += kVectorLen;
    if (from == vectors_end) break;
    streams_from += kStreamLen;
    if constexpr (kCopy) {
      to += kVectorLen;
      streams_to += kStreamLen;
    }
    const __m256i x0 = take_vector<kCopy>(from, to, 0);
    const __m256i x1 = take_vector<kCopy>(from, to, 32);
    const __m256i x2 = take_vector<kCopy>(from, to, 64);
    const __m256i x3 = take_vector<kCopy>(from, to, 96);
    v0 = fold<kVectorLen>(v0, x0);
    v1 = fold<kVectorLen>(v1, x1);
    v2 = fold<kVectorLen>(v2, x2);
    v3 = fold<kVectorLen>(v3, x3);
  }
  const __m256i last = fold<32>(fold<64>(v0, v2), fold<64>(v1, v3));
  const __m128i v = fold<16>(_mm256_castsi256_si128(last), _mm256_extracti128_si256(last, 1));
  std::uint64_t vectors = _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(v)));
  vectors = _mm_crc32_u64(vectors, static_cast<std::uint64_t>(_mm_extract_epi64(v, 1)));
  const __m128i shifted =
      _mm_xor_si128(_mm_xor_si128(shift(before, kRoundLen / kStreamLen * rounds), shift(vectors, 3 * rounds)),
                    _mm_xor_si128(shift(streams.a, 2 * rounds), shift(streams.b, rounds)));
  return static_cast<std::uint32_t>(streams.c ^
                                    _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(shifted))));
}

// What does not fill a round comes first, octet by octet: the blocks do not wait for its CRC.
template <bool kCopy>
WEFT_MIXED_INLINE std::uint32_t hash(std::uint32_t state, const std::uint8_t* from, std::uint8_t* to, std::size_t len) {
  std::size_t rounds = len / kRoundLen;
  len -= rounds * kRoundLen;
  std::uint64_t crc = state;
  for (; len >= 8; len -= 8) crc = _mm_crc32_u64(crc, take<std::uint64_t, kCopy>(from, to));
  state = static_cast<std::uint32_t>(crc);
  if ((len & 4) != 0) state = _mm_crc32_u32(state, take<std::uint32_t, kCopy>(from, to));
  if ((len & 2) != 0) state = _mm_crc32_u16(state, take<std::uint16_t, kCopy>(from, to));
  if ((len & 1) != 0) state = _mm_crc32_u8(state, take<std::uint8_t, kCopy>(from, to));
  while (rounds != 0) {
    const std::size_t in_block = std::min(rounds, kMaxRounds);
    state = block<kCopy>(state, from, to, in_block);
    from += in_block * kRoundLen;
    if constexpr (kCopy) to += in_block * kRoundLen;
    rounds -= in_block;
  }
  _mm256_zeroupper();
  return state;
}

}  // namespace
}  // namespace mixed

bool mixed_available() {
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("avx2") &&
         __builtin_cpu_supports("vpclmulqdq");
}

bool mixed_is_fastest() {
  // A processor with VPCLMULQDQ and AVX-512 has all the parts of AVX-512 that ISA-L asks for.
  return mixed_available() && !__builtin_cpu_supports("avx512vl");
}

WEFT_MIXED std::uint32_t mixed_update(std::uint32_t state, ConstBytes octets) {
  return mixed::hash<false>(state, octets.data(), nullptr, octets.size());
}

WEFT_MIXED std::uint32_t mixed_copy(std::uint32_t state, std::uint8_t* to, ConstBytes octets) {
  return mixed::hash<true>(state, octets.data(), to, octets.size());
}

#else

bool mixed_available() {
  return false;
}
bool mixed_is_fastest() {
  return false;
}
std::uint32_t mixed_update(std::uint32_t state, ConstBytes) {
  assert(false);
  return state;
}
std::uint32_t mixed_copy(std::uint32_t state, std::uint8_t*, ConstBytes) {
  assert(false);
  return state;
}

#endif

}  // namespace weft::mpa
