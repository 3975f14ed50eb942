// An end of a connection on the public verbs API, for captures: it has few Receives, memory under known STags, and does
// what its arguments say.
#include <cstdio>
#include <exception>

#include "tests/dissect/ends/end.h"

int main(int argc, char** argv) {
  const auto options = weft::ends::parse(argc, argv);
  try {
    weft::ends::End(options).run();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "plain_end: %s\n", e.what());
    return 1;
  }
}
