#pragma once

// Static probes (USDT) for tracers such as bpftrace; docs/probes.md lists the probes of Weft. A probe is one nop in the
// code, behind a counter that a tracer raises while it listens. Until then a probe costs one comparison, and its
// arguments are not computed. Without systemtap's header (Debian package systemtap-sdt-dev) at build time, or with
// -DWEFT_PROBES=OFF, there is no code at all.
//
//   WEFT_DECLARE_PROBE(name)     in a header, outside of namespaces
//   WEFT_DEFINE_PROBE(name)      in one source file, outside of namespaces
//   WEFT_PROBE(name, args...)    at the place; args are numbers and pointers, at most 12
//   WEFT_PROBE_IS_ARMED(name)    whether a tracer listens, for places that must prepare arguments

#ifdef WEFT_HAVE_SDT

#define SDT_USE_VARIADIC 1
#define _SDT_HAS_SEMAPHORES 1  // NOLINT: the header's name
#include <sys/sdt.h>

// The linker fills in the counter's address, so each library or program has counters of its own.
#define WEFT_DECLARE_PROBE(name) \
  extern "C" __attribute__((visibility("hidden"))) volatile unsigned short weft_##name##_semaphore
#define WEFT_DEFINE_PROBE(name)                                                                                  \
  extern "C" {                                                                                                   \
  __attribute__((section(".probes"), visibility("hidden"))) volatile unsigned short weft_##name##_semaphore = 0; \
  }                                                                                                              \
  static_assert(true)
#define WEFT_PROBE_IS_ARMED(name) (__builtin_expect(weft_##name##_semaphore != 0, 0) != 0)
#define WEFT_PROBE(name, ...)                                            \
  do {                                                                   \
    if (WEFT_PROBE_IS_ARMED(name)) STAP_PROBEV(weft, name, __VA_ARGS__); \
  } while (false)

#else

namespace weft {
// Takes the arguments of probes that are not built, so that they count as used.
template <typename... Args>
constexpr void no_probe(const Args&...) {}
}  // namespace weft

#define WEFT_DECLARE_PROBE(name) static_assert(true)
#define WEFT_DEFINE_PROBE(name) static_assert(true)
#define WEFT_PROBE_IS_ARMED(name) false
#define WEFT_PROBE(name, ...)                 \
  do {                                        \
    if (false) ::weft::no_probe(__VA_ARGS__); \
  } while (false)

#endif
