#pragma once

// Which sanitizer watches the program. g++ says so by a macro, clang by a feature.
//   WEFT_UNDER_ASAN   AddressSanitizer
//   WEFT_UNDER_TSAN   ThreadSanitizer
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_UNDER_ASAN
#endif
#if __has_feature(thread_sanitizer)
#define WEFT_UNDER_TSAN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define WEFT_UNDER_ASAN
#endif
#if defined(__SANITIZE_THREAD__)
#define WEFT_UNDER_TSAN
#endif
