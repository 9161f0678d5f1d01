#include "tools/loadgen/answers.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace torpor::loadgen {
namespace {

using nlohmann::json;

// Returns DataLoss with the JSON pointer and both values, cut to 80 characters each.
absl::Status Different(const std::string& where, const json& expected, const json& answer) {
  const auto text = [](const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 80);
  };
  return absl::DataLossError(absl::StrCat("at ", where.empty() ? "/" : where, ": expected ",
                                          text(expected), ", got ", text(answer)));
}

bool Near(double expected, double answer, double tolerance) {
  // A NaN is never near.
  return std::abs(answer - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

// Compares recursively. The answer may have members beyond the expected; arrays need equal lengths.
// Expected floating-point numbers match within `tolerance`, relative above 1.
absl::Status Compare(const json& expected, const json& answer, double tolerance,
                     const std::string& where) {
  if (expected.is_object() && answer.is_object()) {
    for (const auto& [name, value] : expected.items()) {
      const std::string member = absl::StrCat(where, "/", name);
      if (!answer.contains(name)) return Different(member, value, nullptr);
      TORPOR_RETURN_IF_ERROR(Compare(value, answer.at(name), tolerance, member));
    }
    return absl::OkStatus();
  }
  if (expected.is_array() && answer.is_array() && expected.size() == answer.size()) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      TORPOR_RETURN_IF_ERROR(
          Compare(expected[i], answer[i], tolerance, absl::StrCat(where, "/", i)));
    }
    return absl::OkStatus();
  }
  const bool same = expected.is_number_float() && answer.is_number()
                        ? Near(expected.get<double>(), answer.get<double>(), tolerance)
                        : expected == answer;
  return same ? absl::OkStatus() : Different(where, expected, answer);
}

}  // namespace

absl::StatusOr<Exchange> ParseExchange(std::string_view line) {
  const json parsed = json::parse(line, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("request") || !parsed.contains("expected")) {
    return absl::InvalidArgumentError(R"(not a JSON object with "request" and "expected")");
  }
  const auto tolerance = parsed.find("tolerance");
  if (tolerance != parsed.end() && !tolerance->is_number()) {
    return absl::InvalidArgumentError(R"("tolerance" is not a number)");
  }
  const json& request = parsed["request"];
  return Exchange{
      request.is_string() ? request.get<std::string>() : request.dump(),
      parsed["expected"].dump(),
      tolerance == parsed.end() ? 0 : tolerance->get<double>(),
  };
}

absl::StatusOr<std::vector<Exchange>> ReadExchanges(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  std::vector<Exchange> exchanges;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    absl::StatusOr<Exchange> exchange = ParseExchange(line);
    if (!exchange.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", number, ": ", exchange.status().message()));
    }
    exchanges.push_back(*std::move(exchange));
  }
  if (exchanges.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": is empty"));
  return exchanges;
}

absl::Status CheckAnswer(const Exchange& exchange, std::string_view answer) {
  if (exchange.expected.empty()) return absl::OkStatus();
  const json parsed = json::parse(answer, nullptr, false);
  if (parsed.is_discarded()) return absl::DataLossError("the answer is not JSON");
  return Compare(json::parse(exchange.expected), parsed, exchange.tolerance, "");
}

}  // namespace torpor::loadgen
