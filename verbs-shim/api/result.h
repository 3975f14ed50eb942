#pragma once

#include <string>
#include <utility>
#include <variant>

namespace weft::verbs {

// Error is the value that libibverbs leaves in errno, and a sentence that names the failed step and the remedy.
struct Error {
  int errno_value = 0;
  std::string message;
};

// Result holds a value or an Error. value(), * and -> need ok(), and error() needs !ok(). Otherwise they throw
// std::bad_variant_access. Status is the Result without a value.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: conversion is the point
  Result(Error error) : held_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return held_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return std::get<0>(held_); }
  const T& value() const& { return std::get<0>(held_); }
  T&& value() && { return std::get<0>(std::move(held_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const { return std::get<1>(held_); }

 private:
  std::variant<T, Error> held_;
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)), ok_(false) {}  // NOLINT: conversion is the point

  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }
  const Error& error() const { return error_; }

 private:
  Error error_;
  bool ok_ = true;
};

}  // namespace weft::verbs
