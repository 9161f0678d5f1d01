#include "tools/workload/rate_file.h"

#include <charconv>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace torpor::workload {
namespace {

constexpr std::size_t kShownCharacters = 40;

// The text between two commas, and its first column.
struct Cell {
  std::string_view text;
  std::size_t column = 1;
};

// Splits at commas. An empty line is one empty cell.
std::vector<Cell> Split(std::string_view line) {
  std::vector<Cell> cells;
  std::size_t begin = 0;
  while (true) {
    const std::size_t comma = line.find(',', begin);
    cells.push_back({line.substr(begin, comma - begin), begin + 1});
    if (comma == std::string_view::npos) return cells;
    begin = comma + 1;
  }
}

// Returns InvalidArgument with line and column, both from 1.
absl::Status Invalid(std::size_t line, std::size_t column, const std::string& message) {
  return absl::InvalidArgumentError(
      absl::StrCat("line ", line, ", column ", column, ": ", message));
}

// Quotes the first kShownCharacters characters.
std::string Quoted(std::string_view text) {
  const bool whole = text.size() <= kShownCharacters;
  return absl::StrCat("'", std::string(text.substr(0, kShownCharacters)), whole ? "'" : "...'");
}

std::string MinuteName(std::size_t minute) { return absl::StrCat("minute_", minute); }

// Takes the text line by line.
class Parser {
 public:
  explicit Parser(std::string_view csv) : rest_(csv) {}

  absl::StatusOr<MinuteRates> Parse() {
    if (!NextLine()) return Invalid(1, 1, "the file is empty; its header is minute_0,minute_1,...");
    TORPOR_RETURN_IF_ERROR(ReadHeader());
    while (NextLine()) TORPOR_RETURN_IF_ERROR(ReadRow());
    if (rates_.empty()) return Invalid(number_, 1, "no function's row follows the header");
    return MinuteRates(minutes_, std::move(rates_));
  }

 private:
  // Reads the next line. Returns false at the end. The last line may lack an end; CRLF is accepted.
  bool NextLine() {
    if (rest_.empty()) return false;
    ++number_;
    const std::size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    return true;
  }

  // Requires the cells minute_0, minute_1, ... and counts the minutes.
  absl::Status ReadHeader() {
    for (const Cell& cell : Split(line_)) {
      const std::string name = MinuteName(minutes_++);
      if (cell.text == name) continue;
      return Invalid(number_, cell.column,
                     "the header has " + Quoted(cell.text) + " where " + name + " belongs");
    }
    return absl::OkStatus();
  }

  // Appends a function's rates; the row needs a cell for each minute.
  absl::Status ReadRow() {
    const std::vector<Cell> cells = Split(line_);
    if (cells.size() != minutes_) {
      return Invalid(number_, cells.size() < minutes_ ? line_.size() + 1 : cells[minutes_].column,
                     absl::StrCat(cells.size(), cells.size() == 1 ? " cell" : " cells",
                                  " where the header has ", minutes_));
    }
    for (std::size_t minute = 0; minute < minutes_; ++minute) {
      TORPOR_ASSIGN_OR_RETURN(const double rate, ReadRate(cells[minute], minute));
      rates_.push_back(rate);
    }
    return absl::OkStatus();
  }

  // Parses requests a minute, 0 to kMaxRequestsPerMinute; refuses NaN and trailing text.
  absl::StatusOr<double> ReadRate(const Cell& cell, std::size_t minute) const {
    double rate = 0;
    const char* const end = cell.text.data() + cell.text.size();
    const auto [stop, error] = std::from_chars(cell.text.data(), end, rate);
    // The negation refuses a NaN.
    if (error == std::errc() && stop == end && rate >= 0 && rate <= kMaxRequestsPerMinute) {
      return rate == 0 ? 0 : rate;  // a -0 would be written as -0
    }
    return Invalid(number_, cell.column,
                   absl::StrCat(MinuteName(minute), " is ", Quoted(cell.text),
                                ", not a number of requests (0 to 1e9)"));
  }

  std::string_view rest_;
  std::string_view line_;
  std::size_t number_ = 0;  // number of `line_`, from 1
  std::size_t minutes_ = 0;
  std::vector<double> rates_;
};

}  // namespace

absl::StatusOr<MinuteRates> ParseRates(std::string_view csv) { return Parser(csv).Parse(); }

absl::StatusOr<MinuteRates> ReadRates(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  auto rates = ParseRates(text.view());
  if (rates.ok()) return rates;
  return absl::Status(rates.status().code(),
                      absl::StrCat(path, ": ", std::string(rates.status().message())));
}

std::string FormatRates(const MinuteRates& rates) {
  std::string csv;
  for (std::size_t minute = 0; minute < rates.minutes(); ++minute) {
    absl::StrAppend(&csv, minute == 0 ? "" : ",", MinuteName(minute));
  }
  csv += '\n';
  for (std::size_t function = 0; function < rates.functions(); ++function) {
    for (std::size_t minute = 0; minute < rates.minutes(); ++minute) {
      char digits[32];
      const auto written = std::to_chars(digits, std::end(digits), rates.At(function, minute));
      if (minute > 0) csv += ',';
      csv.append(digits, written.ptr);
    }
    csv += '\n';
  }
  return csv;
}

}  // namespace torpor::workload
