#include "nvidia/machine_code/nv_info.h"

#include <cstring>

namespace torpor::sass {
namespace {

// The content after the attribute's number.
enum class Format : std::uint8_t { kNone = 1, kByte = 2, kHalf = 3, kContent = 4 };

constexpr std::size_t kHeadBytes = 4;

}  // namespace

std::optional<std::uint32_t> NvInfo::Word(std::size_t index) const {
  std::uint32_t word = 0;
  if (index >= content.size() / sizeof word) return std::nullopt;
  std::memcpy(&word, content.data() + index * sizeof word, sizeof word);
  return word;
}

std::optional<NvInfo> NvInfoReader::Next() {
  if (rest_.empty()) return std::nullopt;
  is_malformed_ = rest_.size() < kHeadBytes;
  if (is_malformed_) return std::nullopt;
  NvInfo info;
  const auto format = static_cast<Format>(rest_[0]);
  info.attribute = static_cast<NvAttribute>(rest_[1]);
  std::memcpy(&info.value, rest_.data() + 2, sizeof info.value);
  rest_ = rest_.subspan(kHeadBytes);
  switch (format) {
    case Format::kNone:
    case Format::kByte:
    case Format::kHalf:
      return info;
    case Format::kContent:
      is_malformed_ = info.value > rest_.size();
      if (is_malformed_) return std::nullopt;
      info.content = rest_.first(info.value);
      rest_ = rest_.subspan(info.value);
      return info;
  }
  is_malformed_ = true;
  return std::nullopt;
}

}  // namespace torpor::sass
