#pragma once

#include <cctype>
#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include "rpcrdma/xdr/xdr.h"

namespace weft::nfsulb::testing {

// Formula evaluates the sizes in nfsulb-eligibility.tsv: sums and products of numbers, names and round4(...). The
// product sign may be left out before a name ("4n").
class Formula {
 public:
  Formula(std::string_view text, const std::map<std::string, std::size_t>& names) : text_(text), names_(names) {}

  std::size_t value() {
    const std::size_t result = sum();
    if (!text_.empty()) throw std::invalid_argument("left over: " + std::string(text_));
    return result;
  }

 private:
  bool accept(char sign) {
    while (text_.starts_with(' ')) text_.remove_prefix(1);
    if (!text_.starts_with(sign)) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool at_factor() const {
    return !text_.empty() && (text_[0] == '(' || std::isalnum(static_cast<unsigned char>(text_[0])));
  }

  std::size_t sum() {
    std::size_t result = product();
    while (accept('+')) result += product();
    return result;
  }
  std::size_t product() {
    std::size_t result = factor();
    while (accept('*') || at_factor()) result *= factor();
    return result;
  }
  std::size_t factor() {
    if (accept('(')) return closed(sum());
    std::size_t len = 0;
    if (std::isdigit(static_cast<unsigned char>(text_.empty() ? ' ' : text_[0]))) {
      const std::size_t number = std::stoul(std::string(text_), &len);
      text_.remove_prefix(len);
      return number;
    }
    while (len < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[len])) || text_[len] == '_')) ++len;
    const std::string name(text_.substr(0, len));
    text_.remove_prefix(len);
    if (name == "round4" && accept('(')) return rpcrdma::xdr::round_up(closed(sum()));
    if (!names_.contains(name))
      throw std::invalid_argument("no such name: '" + name + "' before " + std::string(text_));
    return names_.at(name);
  }
  std::size_t closed(std::size_t value) {
    if (!accept(')')) throw std::invalid_argument("no ')' before " + std::string(text_));
    return value;
  }

  std::string_view text_;
  const std::map<std::string, std::size_t>& names_;
};

}  // namespace weft::nfsulb::testing
