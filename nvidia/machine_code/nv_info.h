#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace torpor::sass {

// The attributes that readers of cubins need, with their numbers in the file.
enum class NvAttribute : std::uint8_t {
  kMaxThreads = 0x05,
  kParameterBank = 0x0a,
  kRequiredThreads = 0x10,
  kFrameBytes = 0x11,
  kStackBytes = 0x12,
  kParameter = 0x17,
  kParameterBytes = 0x19,
  kRegisters = 0x2f,
  kBranchTargets = 0x34,
  kLargeParameter = 0x45,
};

// One attribute of a section .nv.info.
struct NvInfo {
  NvAttribute attribute{};
  std::uint16_t value = 0;             // where it is a single number
  std::span<const std::byte> content;  // where it is not

  // Returns word `index` of the content, or nullopt past its end.
  std::optional<std::uint32_t> Word(std::size_t index) const;
};

// Reads the attributes of a section .nv.info in order, one a call. Borrows the content; safe on
// hostile bytes.
class NvInfoReader {
 public:
  explicit NvInfoReader(std::span<const std::byte> content) : rest_(content) {}

  // Returns nullopt at the end and at malformed content.
  std::optional<NvInfo> Next();
  bool is_malformed() const { return is_malformed_; }

 private:
  std::span<const std::byte> rest_;
  bool is_malformed_ = false;
};

}  // namespace torpor::sass
