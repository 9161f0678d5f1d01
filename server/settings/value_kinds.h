#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/units.h"
#include "server/settings/value_text.h"
#include "server/settings/words.h"

// Kinds of settings' values. A kind has a type (Value); reads text and checks the range (Parse;
// errors are InvalidArgument and tell the right form); writes text for Parse (Format); and has a
// name for help (value_name).
namespace torpor::server {

struct TextKind {
  using Value = std::string;
  static constexpr bool kIsPath = false;
  std::string name = "TEXT";

  absl::StatusOr<Value> Parse(std::string_view text) const { return std::string(text); }
  std::string Format(const Value& value) const { return value; }
  std::string value_name() const { return name; }
};

// A path; a relative one in a configuration file is relative to the file's folder.
struct PathKind : TextKind {
  static constexpr bool kIsPath = true;
};

struct FlagKind {
  using Value = bool;
  static constexpr bool kIsPath = false;

  absl::StatusOr<Value> Parse(std::string_view text) const;
  std::string Format(Value value) const { return value ? "true" : "false"; }
  std::string value_name() const { return "BOOL"; }
};

struct SizeKind {
  using Value = Bytes;
  static constexpr bool kIsPath = false;
  Bytes min = 0;
  Bytes max = std::numeric_limits<Bytes>::max();

  absl::StatusOr<Value> Parse(std::string_view text) const;
  std::string Format(Value value) const { return FormatBytes(value); }
  std::string value_name() const { return "SIZE"; }
};

// A size from min to max, or "auto", which is 0.
struct SizeOrAutoKind {
  using Value = Bytes;
  static constexpr bool kIsPath = false;
  Bytes min = 0;
  Bytes max = std::numeric_limits<Bytes>::max();

  absl::StatusOr<Value> Parse(std::string_view text) const;
  std::string Format(Value value) const { return value == 0 ? "auto" : FormatBytes(value); }
  std::string value_name() const { return "SIZE"; }
};

// A size, or a share of what there is: one of both is 0.
struct SizeOrShare {
  Bytes bytes = 0;
  int percent = 0;

  // In bytes, of `all`.
  Bytes Of(Bytes all) const;
  bool operator==(const SizeOrShare&) const = default;
};

// "64GiB", of at least `min`, or "80%".
struct SizeOrShareKind {
  using Value = SizeOrShare;
  static constexpr bool kIsPath = false;
  Bytes min = 1;

  absl::StatusOr<Value> Parse(std::string_view text) const;
  std::string Format(const Value& value) const;
  std::string value_name() const { return "SIZE|PERCENT"; }
};

// A positive multiple of `unit`.
struct MultipleKind {
  using Value = Bytes;
  static constexpr bool kIsPath = false;
  Bytes unit = 1;

  absl::StatusOr<Value> Parse(std::string_view text) const;
  std::string Format(Value value) const { return FormatBytes(value); }
  std::string value_name() const { return "SIZE"; }
};

// As MultipleKind, or "auto", which is 0.
struct MultipleOrAutoKind : MultipleKind {
  absl::StatusOr<Value> Parse(std::string_view text) const {
    return text == "auto" ? Value{0} : MultipleKind::Parse(text);
  }
  std::string Format(Value value) const { return value == 0 ? "auto" : FormatBytes(value); }
};

// A positive duration.
struct DurationKind {
  using Value = Duration;
  static constexpr bool kIsPath = false;
  Duration min{1};

  absl::StatusOr<Value> Parse(std::string_view text) const;
  std::string Format(Value value) const { return FormatDuration(value); }
  std::string value_name() const { return "DURATION"; }
};

// A positive duration, or "off", which is 0.
struct DurationOrOffKind {
  using Value = Duration;
  static constexpr bool kIsPath = false;

  absl::StatusOr<Value> Parse(std::string_view text) const;
  std::string Format(Value value) const {
    return value == Duration::zero() ? "off" : FormatDuration(value);
  }
  std::string value_name() const { return "DURATION"; }
};

// A whole number from min to max.
struct CountKind {
  using Value = int;
  static constexpr bool kIsPath = false;
  int min = 1;
  int max = std::numeric_limits<int>::max();

  absl::StatusOr<Value> Parse(std::string_view text) const;
  std::string Format(Value value) const { return std::to_string(value); }
  std::string value_name() const { return "COUNT"; }
};

// A whole number from 1 to max, or "auto", which is 0.
struct CountOrAutoKind {
  using Value = int;
  static constexpr bool kIsPath = false;
  int max = std::numeric_limits<int>::max();

  absl::StatusOr<Value> Parse(std::string_view text) const;
  std::string Format(Value value) const { return value == 0 ? "auto" : std::to_string(value); }
  std::string value_name() const { return "COUNT"; }
};

// A limit from 1 to a million, or 0 for any number.
struct LimitKind {
  using Value = int;
  static constexpr bool kIsPath = false;

  absl::StatusOr<Value> Parse(std::string_view text) const;
  std::string Format(Value value) const { return std::to_string(value); }
  std::string value_name() const { return "COUNT"; }
};

// Any 64-bit number, decimal or 0x hexadecimal.
struct NumberKind {
  using Value = std::uint64_t;
  static constexpr bool kIsPath = false;

  absl::StatusOr<Value> Parse(std::string_view text) const { return ParseUnsigned(text); }
  std::string Format(Value value) const { return std::to_string(value); }
  std::string value_name() const { return "NUMBER"; }
};

// Permissions of a file, in octal digits.
struct FileModeKind {
  using Value = unsigned;
  static constexpr bool kIsPath = false;

  absl::StatusOr<Value> Parse(std::string_view text) const;
  std::string Format(Value value) const;
  std::string value_name() const { return "MODE"; }
};

// Indices, each once: "0,2".
struct IndexListKind {
  using Value = std::vector<int>;
  static constexpr bool kIsPath = false;

  absl::StatusOr<Value> Parse(std::string_view text) const { return ParseIndexList(text); }
  std::string Format(const Value& value) const;
  std::string value_name() const { return "LIST"; }
};

// One of the words of an enum (server/settings/words.h).
template <typename Enum>
struct ChoiceKind {
  using Value = Enum;
  static constexpr bool kIsPath = false;

  absl::StatusOr<Value> Parse(std::string_view text) const {
    if (const auto value = FindWord<Enum>(text)) return *value;
    return absl::InvalidArgumentError("unknown value " + Quoted(text) + "; expected " +
                                      ListWords(kWordsOf<Enum>, &Word<Enum>::word));
  }
  std::string Format(Value value) const { return std::string(WordOf(value)); }
  std::string value_name() const {
    std::string name;
    for (const Word<Enum>& known : kWordsOf<Enum>) {
      if (!name.empty()) name += '|';
      name += known.word;
    }
    return name;
  }
};

}  // namespace torpor::server
