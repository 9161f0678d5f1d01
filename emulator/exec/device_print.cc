#include "emulator/exec/device_print.h"

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace torpor::emulator {
namespace {

class ArgumentReader {
 public:
  explicit ArgumentReader(const std::uint8_t* bytes) : bytes_(bytes) {}

  template <typename T>
  T Take() {
    offset_ = (offset_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value;
    std::memcpy(&value, bytes_ + offset_, sizeof(T));
    offset_ += sizeof(T);
    ++count_;
    return value;
  }
  int count() const { return count_; }

 private:
  const std::uint8_t* bytes_;
  std::size_t offset_ = 0;
  int count_ = 0;
};

// snprintf with a format of one conversion.
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

void Convert(std::string& out, const std::string& conversion, char letter, bool is_long,
             ArgumentReader& arguments) {
  switch (letter) {
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X':
      if (is_long) {
        Append(out, conversion + "ll" + letter, arguments.Take<long long>());
      } else {
        Append(out, conversion + letter, arguments.Take<int>());
      }
      return;
    case 'c':
      return Append(out, conversion + letter, arguments.Take<int>());
    case 'p':
      return Append(out, conversion + letter, arguments.Take<void*>());
    case 's': {
      const char* const text = arguments.Take<const char*>();
      return Append(out, conversion + letter, text == nullptr ? "(null)" : text);
    }
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
      return Append(out, conversion + letter, arguments.Take<double>());
    default:
      out += conversion + letter;
  }
}

}  // namespace

int DevicePrint(const char* format, const std::uint8_t* bytes) {
  if (format == nullptr) return -1;
  std::string out;
  ArgumentReader arguments(bytes);
  for (const char* at = format; *at != '\0'; ++at) {
    if (*at != '%') {
      out += *at;
      continue;
    }
    std::string conversion = "%";
    ++at;
    for (; *at != '\0' && std::strchr("-+ #0123456789.*", *at) != nullptr; ++at) {
      conversion += *at == '*' ? std::to_string(arguments.Take<int>()) : std::string(1, *at);
    }
    bool is_long = false;
    for (; *at != '\0' && std::strchr("hlLqjzt", *at) != nullptr; ++at) is_long |= *at != 'h';
    if (*at == '\0') break;
    if (*at == '%') {
      out += '%';
    } else {
      Convert(out, conversion, *at, is_long, arguments);
    }
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  return arguments.count();
}

}  // namespace torpor::emulator
