"""Writes faults into the text of a file, each behind its switch, without moving a line."""

import re

HEADER = """// Written by scripts/faults: fault K acts where the environment says WEFT_FAULT=K.
#pragma once
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <type_traits>

namespace weft_faults {

inline constexpr std::size_t kNumFaults = @NUM@;  // plus one, for fault 0, which is none
inline constexpr std::size_t kMaxRows = 8192;     // one for each test, the first for what runs outside of tests

struct State {
  unsigned active = 0;
  unsigned char* reached = nullptr;  // a row number, then rows: shared with every process of the test

  State() {
    if (const char* fault = std::getenv("WEFT_FAULT")) active = static_cast<unsigned>(std::strtoul(fault, nullptr, 10));
    const char* path = std::getenv("WEFT_FAULTS_REACHED");
    if (path == nullptr) return;
    const std::size_t len = sizeof(unsigned) + kNumFaults * kMaxRows;
    const int fd = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(len)) != 0) std::abort();
    void* at = ::mmap(nullptr, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (at == MAP_FAILED) std::abort();
    reached = static_cast<unsigned char*>(at);
  }
  unsigned* row() const { return reinterpret_cast<unsigned*>(reached); }
};

inline const State& state() {
  static const State made;
  return made;
}

inline bool is_on(unsigned k) {
  const State& s = state();
  if (s.reached != nullptr) {
    const std::size_t row = __atomic_load_n(s.row(), __ATOMIC_RELAXED);
    if (row < kMaxRows) __atomic_store_n(s.reached + sizeof(unsigned) + row * kNumFaults + k, 1, __ATOMIC_RELAXED);
  }
  return s.active == k;
}

constexpr bool on(unsigned k) {
  if (std::is_constant_evaluated()) return false;
  return is_on(k);
}

template <class T>
constexpr T shift(unsigned k, T value, int by) {
  if (on(k)) return static_cast<T>(by > 0 ? value + T(1) : value - T(1));
  return value;
}

}  // namespace weft_faults
"""

LISTENER = """// Written by scripts/faults: gives each test a row of its own in the record of which faults were reached.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "weft_faults.h"

namespace {
class Rows : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    std::FILE* names = std::fopen((std::string(std::getenv("WEFT_FAULTS_REACHED")) + ".names").c_str(), "a");
    if (names == nullptr) std::abort();
    std::fprintf(names, "%s.%s\\n", test.test_suite_name(), test.name());
    std::fclose(names);
    __atomic_store_n(weft_faults::state().row(), ++last_, __ATOMIC_SEQ_CST);
  }
  void OnTestEnd(const testing::TestInfo&) override {
    __atomic_store_n(weft_faults::state().row(), 0, __ATOMIC_SEQ_CST);
  }
  unsigned last_ = 0;
};

const bool kAdded = [] {
  if (weft_faults::state().reached != nullptr) testing::UnitTest::GetInstance()->listeners().Append(new Rows);
  return true;
}();
}  // namespace
"""

# At the end of the root's list: mutated sources compile without warnings and soon, test programs tell which test runs.
CMAKE = """
add_library(weft_faults_listener OBJECT ${PROJECT_SOURCE_DIR}/weft_faults_listener.cc)
target_include_directories(weft_faults_listener PRIVATE ${PROJECT_SOURCE_DIR})
function(weft_faults_directory folder)
  set_source_files_properties(@FILES@ DIRECTORY ${folder} PROPERTIES COMPILE_OPTIONS "-w;-O0;-g0")
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    get_target_property(links ${target} LINK_LIBRARIES)
    if(type STREQUAL EXECUTABLE AND links MATCHES "GTest::")
      target_link_libraries(${target} PRIVATE weft_faults_listener)
    endif()
  endforeach()
  get_property(below DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(each IN LISTS below)
    weft_faults_directory(${each})
  endforeach()
endfunction()
weft_faults_directory(${PROJECT_SOURCE_DIR})
"""


def fits(fault, others):
    """False where it would be twice the same, or cross another one's bounds."""
    for other in others:
        if other.file != fault.file:
            continue
        if (other.start, other.end, other.plain()) == (fault.start, fault.end, fault.plain()):
            return False
        apart = fault.end <= other.start or other.end <= fault.start
        inside = (fault.start <= other.start and other.end <= fault.end
                  or other.start <= fault.start and fault.end <= other.end)
        if not apart and not inside:
            return False
    return True


def one_line(text):
    return " ".join(re.sub(r"//[^\n]*", "", text).split())


def switched(number, fault, inner):
    """inner: the text as it is, with the faults that lie within."""
    on = f"::weft_faults::on({number})"
    if fault.form == "negation":
        return f"({on} != static_cast<bool>({inner}))"
    if fault.form == "value":
        return f"({on} ? ({one_line(fault.change)}) : ({inner}))"
    if fault.form == "shift":
        return f"::weft_faults::shift({number}, {inner}, {fault.change})"
    if fault.form == "statement":
        return f"{{ if (!{on}) {inner} }}"
    return f" if ({on}) {fault.change} "


def plant(source, numbered):
    """source, as bytes, with each (number, fault) of this file behind its switch."""
    def render(start, end, faults):
        out, at = [], start
        while faults:
            number, fault = faults[0]
            within = [f for f in faults[1:] if f[1].end <= fault.end and f[1].start < fault.end]
            faults = [f for f in faults[1:] if f not in within]
            out += [source[at:fault.start].decode("utf-8"),
                    switched(number, fault, render(fault.start, fault.end, within))]
            at = fault.end
        return "".join(out) + source[at:end].decode("utf-8")

    ordered = sorted(numbered, key=lambda f: (f[1].start, -f[1].end, f[0]))
    return render(0, len(source), ordered).encode("utf-8")


def whole_file(name, source, numbered):
    """The file as it is compiled. A header counts as a system's: then no warning of it is an error."""
    head = "#pragma GCC system_header\n" if name.endswith(".h") else ""
    return (head + '#include "weft_faults.h"\n#line 1\n').encode() + plant(source, numbered)


def difference(source, fault):
    """The change as lines of a diff."""
    first = source.rfind(b"\n", 0, fault.start) + 1
    last = source.find(b"\n", max(fault.end - 1, fault.start))
    last = len(source) if last < 0 else last
    old = source[first:last].decode("utf-8")
    changed = source[first:fault.start].decode("utf-8") + fault.plain() + source[fault.end:last].decode("utf-8")
    without = re.compile(r"\s*;?\s*(//.*)?")  # the line of a statement that is not there
    return ([f"-{line}" for line in old.splitlines()]
            + [f"+{line}" for line in changed.splitlines() if not without.fullmatch(line)])
