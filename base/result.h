#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace torpor {

// The reason for an error, for code that may not use Abseil (client shim, emulator).
// `Code` is the caller's own enumeration: cudaError_t, CUresult, ...
template <typename Code>
struct Failure {
  Code code;
  std::string message;  // the problem, the place and the remedy
};

// A value or a Failure: the subset of C++23's std::expected in use here. Calling value() without a
// value throws std::bad_variant_access.
template <typename T, typename Code>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}                  // NOLINT
  Result(Failure<Code> failure) : state_(std::in_place_index<1>, std::move(failure)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Failure<Code>& failure() const { return std::get<1>(state_); }

 private:
  std::variant<T, Failure<Code>> state_;
};

// Success or a Failure.
template <typename Code>
class [[nodiscard]] Result<void, Code> {
 public:
  Result() = default;
  Result(Failure<Code> failure) : failure_(std::move(failure)) {}  // NOLINT

  bool ok() const { return !failure_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Failure<Code>& failure() const { return *failure_; }

 private:
  std::optional<Failure<Code>> failure_;
};

}  // namespace torpor
