#pragma once

#include <array>
#include <cstdio>
#include <memory>
#include <string>

namespace weft::apps::dissect::testing {

// Printed: a file that a listener writes to, and its text.
class Printed {
 public:
  std::FILE* file() { return file_.get(); }
  std::string text() {
    std::rewind(file());
    std::string all;
    std::array<char, 4096> part;
    while (const std::size_t len = std::fread(part.data(), 1, part.size(), file())) all.append(part.data(), len);
    return all;
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_{std::tmpfile()};
};

}  // namespace weft::apps::dissect::testing
