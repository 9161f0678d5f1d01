#include "emulator/exec/runtime/device_print.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

namespace torpor::emulator {
namespace {

constexpr std::size_t kMaxCharacters = 1 << 20;
constexpr int kMaxColumns = 4096;

// snprintf with a format of a single conversion.
template <typename... Values>
void Append(std::string& out, const std::string& conversion, Values... values) {
  char small[256];
  const int length = std::snprintf(small, sizeof(small), conversion.c_str(), values...);
  if (length < 0) return;
  if (static_cast<std::size_t>(length) < sizeof(small)) {
    out.append(small, static_cast<std::size_t>(length));
    return;
  }
  std::string large(static_cast<std::size_t>(length) + 1, '\0');
  std::snprintf(large.data(), large.size(), conversion.c_str(), values...);
  out.append(large.data(), static_cast<std::size_t>(length));
}

// State of a printf call. The first unreadable address ends the call.
class Printer {
 public:
  Printer(const DeviceReader& reader, std::string_view format, std::uint64_t arguments)
      : reader_(reader), rest_(format), arguments_(arguments) {}

  ExecResult<int> Run() {
    while (!rest_.empty() && !failed_ && out_.size() < kMaxCharacters) {
      const std::size_t plain = std::min(rest_.find('%'), rest_.size());
      out_ += rest_.substr(0, plain);
      rest_.remove_prefix(plain);
      if (!rest_.empty()) PrintConversion();
    }
    if (failed_) {
      return Failure<ExecError>{ExecError::kIllegalAddress, "illegal address " + Hex(bad_address_)};
    }
    std::fwrite(out_.data(), 1, std::min(out_.size(), kMaxCharacters), stdout);
    return count_;
  }

 private:
  void PrintConversion() {
    rest_.remove_prefix(1);
    std::string conversion = "%";
    conversion += TakeAll("-+ #0");
    TakeWidth(conversion);
    if (rest_.starts_with('.')) TakePrecision(conversion);
    const std::string_view length = TakeAll("hlLqjzt");
    if (rest_.empty()) return;
    const char letter = rest_.front();
    rest_.remove_prefix(1);
    if (letter == '%') {
      out_ += '%';
    } else {
      const bool is_long = length.find_first_not_of('h') != std::string_view::npos;
      Convert(conversion, letter, is_long);
    }
  }

  void TakeWidth(std::string& conversion) {
    const int width = TakeNumber();
    if (width < 0) conversion += '-';
    if (width != 0) conversion += std::to_string(std::min(std::abs(width), kMaxColumns));
  }

  // A negative precision counts as missing.
  void TakePrecision(std::string& conversion) {
    rest_.remove_prefix(1);
    const int precision = TakeNumber();
    if (precision >= 0) conversion += '.' + std::to_string(std::min(precision, kMaxColumns));
  }

  // Digits, or `*` for an argument; 0 for neither. The magnitude is cut to what int holds.
  int TakeNumber() {
    if (rest_.starts_with('*')) {
      rest_.remove_prefix(1);
      return std::max(Take<int>(), -kMaxColumns);
    }
    int number = 0;
    for (const char digit : TakeAll("0123456789")) {
      number = std::min(number * 10 + (digit - '0'), kMaxColumns);
    }
    return number;
  }

  std::string_view TakeAll(const char* characters) {
    const std::string_view taken =
        rest_.substr(0, std::min(rest_.find_first_not_of(characters), rest_.size()));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  void Convert(const std::string& conversion, char letter, bool is_long) {
    switch (letter) {
      case 'd':
      case 'i':
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        if (is_long) {
          Append(out_, conversion + "ll" + letter, Take<long long>());
        } else {
          Append(out_, conversion + letter, Take<int>());
        }
        return;
      case 'c':
        return Append(out_, conversion + letter, Take<int>());
      case 'p':
        return Append(out_, conversion + letter, Take<void*>());
      case 's':
        return Append(out_, conversion + letter, TakeText().c_str());
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        return Append(out_, conversion + letter, Take<double>());
      default:
        out_ += conversion + letter;
    }
  }

  std::string TakeText() {
    const auto address = Take<std::uint64_t>();
    if (failed_) return {};
    if (address == 0) return "(null)";
    std::string text;
    if (!reader_.ReadText(text, address, kMaxCharacters)) Fail(address);
    return text;
  }

  template <typename T>
  T Take() {
    offset_ = (offset_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value = {};
    if (!reader_.Read(&value, arguments_ + offset_, sizeof(T))) Fail(arguments_ + offset_);
    offset_ += sizeof(T);
    ++count_;
    return value;
  }

  void Fail(std::uint64_t address) {
    if (!failed_) bad_address_ = address;
    failed_ = true;
  }

  const DeviceReader& reader_;
  std::string_view rest_;  // of the format
  const std::uint64_t arguments_;
  std::uint64_t offset_ = 0;
  int count_ = 0;
  std::string out_;
  bool failed_ = false;
  std::uint64_t bad_address_ = 0;
};

}  // namespace

ExecResult<int> DevicePrint(const DeviceReader& reader, std::uint64_t format,
                            std::uint64_t arguments) {
  if (format == 0) return -1;
  std::string text;
  if (!reader.ReadText(text, format, kMaxCharacters)) {
    return Failure<ExecError>{ExecError::kIllegalAddress, "illegal address " + Hex(format)};
  }
  return Printer(reader, text, arguments).Run();
}

}  // namespace torpor::emulator
