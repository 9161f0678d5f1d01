#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

// Kinds of values (server/settings/value_kinds.h) that only torpord's configuration has.
namespace torpor::server {

// host:port, or empty.
struct AddressKind {
  using Value = std::string;
  static constexpr bool kIsPath = false;

  absl::StatusOr<Value> Parse(std::string_view text) const;
  std::string Format(const Value& value) const { return value; }
  std::string value_name() const { return "HOST:PORT"; }
};

// The name of a function or of a tenant.
struct NameKind {
  using Value = std::string;
  static constexpr bool kIsPath = false;
  bool may_be_empty = false;

  absl::StatusOr<Value> Parse(std::string_view text) const;
  std::string Format(const Value& value) const { return value; }
  std::string value_name() const { return "NAME"; }
};

// The name of a scheduling policy that evicts. A program's allocations must be given room: an
// allocation cannot be refused as a request can.
struct PolicyKind {
  using Value = std::string;
  static constexpr bool kIsPath = false;

  absl::StatusOr<Value> Parse(std::string_view text) const;
  std::string Format(const Value& value) const { return value; }
  std::string value_name() const { return "NAME"; }
};

// A device address, at a multiple of 1 GiB in user space.
struct AddressBaseKind {
  using Value = std::uint64_t;
  static constexpr bool kIsPath = false;

  absl::StatusOr<Value> Parse(std::string_view text) const;
  std::string Format(Value value) const;
  std::string value_name() const { return "ADDRESS"; }
};

// The percentile of an objective, in (0, 1).
struct PercentileKind {
  using Value = double;
  static constexpr bool kIsPath = false;

  absl::StatusOr<Value> Parse(std::string_view text) const;
  std::string Format(Value value) const;
  std::string value_name() const { return "SHARE"; }
};

// The weight of a tenant.
struct WeightKind {
  using Value = double;
  static constexpr bool kIsPath = false;

  absl::StatusOr<Value> Parse(std::string_view text) const;
  std::string Format(Value value) const;
  std::string value_name() const { return "NUMBER"; }
};

// A number from `min` to `max`.
struct RealKind {
  using Value = double;
  static constexpr bool kIsPath = false;
  double min = 0;
  double max = 0;

  absl::StatusOr<Value> Parse(std::string_view text) const;
  std::string Format(Value value) const;
  std::string value_name() const { return "NUMBER"; }
};

// Words, such as a command's: a JSON array of strings or, if none has blanks, words between blanks.
struct WordsKind {
  using Value = std::vector<std::string>;
  static constexpr bool kIsPath = false;
  static constexpr bool kIsWords = true;

  absl::StatusOr<Value> Parse(std::string_view text) const;
  std::string Format(const Value& value) const;
  std::string value_name() const { return "WORDS"; }
};

// NAME, NAME:GROUP, or empty. Numbers stand for users and groups, too.
struct UserKind {
  using Value = std::string;
  static constexpr bool kIsPath = false;

  absl::StatusOr<Value> Parse(std::string_view text) const;
  std::string Format(const Value& value) const { return value; }
  std::string value_name() const { return "USER[:GROUP]"; }
};

// The priority of a function's requests.
struct PriorityKind {
  using Value = int;
  static constexpr bool kIsPath = false;

  absl::StatusOr<Value> Parse(std::string_view text) const;
  std::string Format(Value value) const { return std::to_string(value); }
  std::string value_name() const { return "NUMBER"; }
};

}  // namespace torpor::server
