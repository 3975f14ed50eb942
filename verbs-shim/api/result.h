#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace weft::verbs {

// Error is the value that libibverbs leaves in errno, and a sentence that names the failed step and the remedy.
struct Error {
  int errno_value = 0;
  std::string message;
};

template <typename T>
using Result = weft::Result<T, Error>;

// Status is the Result without a value.
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
