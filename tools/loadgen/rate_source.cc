#include "tools/loadgen/rate_source.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/workload/rate_file.h"

namespace torpor::loadgen {
namespace {

using workload::MinuteRates;

constexpr std::string_view kGammaPrefix = "gamma:";

std::vector<double> PerMinute(std::vector<double> per_second) {
  for (double& rate : per_second) rate *= 60;
  return per_second;
}

std::size_t MinutesOf(Duration duration) {
  return static_cast<std::size_t>(std::max(1.0, std::ceil(ToSeconds(duration) / 60)));
}

absl::StatusOr<MinuteRates> FromFile(const std::string& file, std::size_t functions,
                                     std::uint64_t seed) {
  TORPOR_ASSIGN_OR_RETURN(MinuteRates table, workload::ReadRates(file));
  if (functions > table.functions()) return workload::DrawRows(table, functions, seed);
  std::vector<std::size_t> rows(functions);
  std::iota(rows.begin(), rows.end(), 0U);
  return MinuteRates(table, rows);
}

}  // namespace

absl::StatusOr<RateSource> ParseRateSource(const std::string& text, const std::string& folder) {
  using Kind = RateSource::Kind;
  if (text.empty()) return absl::InvalidArgumentError("the rates have no file's name");
  if (text == "trace-like") return RateSource{Kind::kTraceLike, "", 0};
  if (!text.starts_with(kGammaPrefix)) {
    return RateSource{Kind::kFile, (std::filesystem::path(folder) / text).string(), 0};
  }
  double shape = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + kGammaPrefix.size(), end, shape);
  if (error == std::errc() && stop == end && shape >= 0.01 && shape <= 1e6) {
    return RateSource{Kind::kGamma, "", shape};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the shape in '", text, "' is not a number from 0.01 to 1e6"));
}

absl::StatusOr<MinuteRates> MakeRates(const RateSource& source,
                                      const std::vector<double>& per_second, Duration duration,
                                      std::uint64_t seed) {
  switch (source.kind) {
    case RateSource::Kind::kFile:
      return FromFile(source.file, per_second.size(), seed);
    case RateSource::Kind::kTraceLike:
      return workload::TraceLikeRates(per_second.size(), seed);
    case RateSource::Kind::kGamma:
      return workload::GammaRates(PerMinute(per_second), MinutesOf(duration), source.shape, seed);
    case RateSource::Kind::kFunctions:
      break;
  }
  return workload::ConstantRates(PerMinute(per_second));
}

}  // namespace torpor::loadgen
