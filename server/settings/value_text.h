#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/units.h"

// Text of settings' values. Errors (InvalidArgument) tell the mistake and the right form, not the
// place. Parse… reads the text of Format… as the same value.
namespace torpor::server {

// The text in quotation marks for a message: control characters become ?, long text is cut.
std::string Quoted(std::string_view text);

// "512MiB", "24 GiB", "1.5GiB", "80GB", "4096" (bytes).
absl::StatusOr<Bytes> ParseBytes(std::string_view text);
// In the largest unit of 1024 that divides the size: "512MiB", "1537".
std::string FormatBytes(Bytes bytes);

// "80ms", "1.5s", "2m", "250us". A number without a unit is an error, so that ms and s are not
// mixed up.
absl::StatusOr<Duration> ParseDuration(std::string_view text);
// In the largest unit that divides the duration, of hours, seconds and less: "2h", "75s", "1500ms".
std::string FormatDuration(Duration duration);

// Decimal or 0x hexadecimal.
absl::StatusOr<std::uint64_t> ParseUnsigned(std::string_view text);

// Indices 0 to 1023, each once: "0,2,3". Empty text gives no index.
absl::StatusOr<std::vector<int>> ParseIndexList(std::string_view text);

// Sizes, each once: "2MiB, 20MiB". Empty text gives no size.
absl::StatusOr<std::vector<Bytes>> ParseByteList(std::string_view text);

// Reads a decimal number without exponent, such as "0.98" or "3", and nothing else. Returns NaN for
// other text.
double ParseFixedNumber(std::string_view text);

}  // namespace torpor::server
