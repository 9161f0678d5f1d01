#include "server/settings/value_kinds.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <system_error>

#include "base/status_macros.h"

namespace torpor::server {

absl::StatusOr<bool> FlagKind::Parse(std::string_view text) const {
  if (text != "true" && text != "false") {
    return absl::InvalidArgumentError(
        fmt::format("unknown value {}; expected true or false", Quoted(text)));
  }
  return text == "true";
}

absl::StatusOr<Bytes> SizeKind::Parse(std::string_view text) const {
  TORPOR_ASSIGN_OR_RETURN(const Bytes bytes, ParseBytes(text));
  if (bytes < min) {
    return absl::InvalidArgumentError(
        fmt::format("{} is too small; use at least {} bytes", text, min));
  }
  if (bytes > max) {
    return absl::InvalidArgumentError(
        fmt::format("{} is too large; use at most {} bytes", text, max));
  }
  return bytes;
}

absl::StatusOr<Bytes> SizeOrAutoKind::Parse(std::string_view text) const {
  if (text == "auto") return Bytes{0};
  if (!ParseBytes(text).ok()) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is not a size; write auto, or a number and a unit, for example 2MiB", Quoted(text)));
  }
  return SizeKind{.min = min, .max = max}.Parse(text);
}

Bytes SizeOrShare::Of(Bytes all) const {
  const auto share = static_cast<Bytes>(percent);
  return percent == 0 ? bytes : all / 100 * share + all % 100 * share / 100;
}

absl::StatusOr<SizeOrShare> SizeOrShareKind::Parse(std::string_view text) const {
  if (text.ends_with('%')) {
    const absl::StatusOr<int> percent =
        CountKind{.min = 1, .max = 100}.Parse(text.substr(0, text.size() - 1));
    if (percent.ok()) return SizeOrShare{.percent = *percent};
    return absl::InvalidArgumentError(
        fmt::format("{} is not a percentage; use 1% to 100%", Quoted(text)));
  }
  if (!ParseBytes(text).ok()) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is not a size; write a number and a unit, for example 64GiB, or 80%", Quoted(text)));
  }
  TORPOR_ASSIGN_OR_RETURN(const Bytes bytes, SizeKind{.min = min}.Parse(text));
  return SizeOrShare{.bytes = bytes};
}

std::string SizeOrShareKind::Format(const SizeOrShare& value) const {
  return value.percent > 0 ? fmt::format("{}%", value.percent) : FormatBytes(value.bytes);
}

absl::StatusOr<Bytes> MultipleKind::Parse(std::string_view text) const {
  TORPOR_ASSIGN_OR_RETURN(const Bytes bytes, ParseBytes(text));
  if (bytes == 0 || bytes % unit != 0) {
    return absl::InvalidArgumentError(
        fmt::format("{} does not fit; use a multiple of {} bytes", text, unit));
  }
  return bytes;
}

absl::StatusOr<Duration> DurationKind::Parse(std::string_view text) const {
  TORPOR_ASSIGN_OR_RETURN(const Duration duration, ParseDuration(text));
  if (duration >= min) return duration;
  return absl::InvalidArgumentError(
      min == Duration(1)
          ? fmt::format("{} is too short; use more than 0", text)
          : fmt::format("{} is too short; use at least {}", text, FormatDuration(min)));
}

absl::StatusOr<Duration> DurationOrOffKind::Parse(std::string_view text) const {
  if (text == "off") return Duration::zero();
  absl::StatusOr<Duration> duration = DurationKind().Parse(text);
  if (duration.ok()) return duration;
  return absl::InvalidArgumentError(
      fmt::format("{}, or off", std::string(duration.status().message())));
}

absl::StatusOr<int> CountKind::Parse(std::string_view text) const {
  TORPOR_ASSIGN_OR_RETURN(const std::uint64_t count, ParseUnsigned(text));
  if (count < static_cast<std::uint64_t>(min) || count > static_cast<std::uint64_t>(max)) {
    return absl::InvalidArgumentError(
        fmt::format("{} is out of range; use {} to {}", count, min, max));
  }
  return static_cast<int>(count);
}

absl::StatusOr<int> CountOrAutoKind::Parse(std::string_view text) const {
  if (text == "auto") return 0;
  const absl::StatusOr<int> count = CountKind{.min = 1, .max = max}.Parse(text);
  if (count.ok()) return count;
  return absl::InvalidArgumentError(
      fmt::format("{} is no number from 1 to {}; write such a number, or auto", Quoted(text), max));
}

absl::StatusOr<int> LimitKind::Parse(std::string_view text) const {
  constexpr std::uint64_t kMax = 1'000'000;
  TORPOR_ASSIGN_OR_RETURN(const std::uint64_t limit, ParseUnsigned(text));
  if (limit > kMax) {
    return absl::InvalidArgumentError(
        fmt::format("{} is out of range; use 1 to {}, or 0 for any number", limit, kMax));
  }
  return static_cast<int>(limit);
}

absl::StatusOr<unsigned> FileModeKind::Parse(std::string_view text) const {
  const char* const end = text.data() + text.size();
  unsigned mode = 0;
  const auto [rest, error] = std::from_chars(text.data(), end, mode, 8);
  if (error != std::errc() || rest != end || mode > 0777) {
    return absl::InvalidArgumentError(
        fmt::format("{} is not a file mode; use octal digits, for example 0660", Quoted(text)));
  }
  return mode;
}

std::string FileModeKind::Format(unsigned value) const { return fmt::format("{:04o}", value); }

std::string IndexListKind::Format(const std::vector<int>& value) const {
  return fmt::format("{}", fmt::join(value, ","));
}

}  // namespace torpor::server
