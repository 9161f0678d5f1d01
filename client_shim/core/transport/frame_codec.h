#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// A gRPC message that holds one torpor.v1.Frame{bytes payload = 1}, coded by hand: five bytes of
// gRPC (compressed flag, big-endian length), the field's tag 0x0a, its length as a varint, and
// the payload.
namespace torpor::shim {

// Free bytes in front of a payload, for the frame's prefix.
inline constexpr std::size_t kFrameRoom = 16;

// Returns `payload` behind kFrameRoom free bytes.
std::vector<std::uint8_t> Framed(std::span<const std::uint8_t> payload);

// Writes the prefix in front of the payload of `bytes`, which begins with kFrameRoom free bytes.
// Returns the offset of the message.
std::size_t SealFrame(std::vector<std::uint8_t>& bytes);

// Cuts a stream of bytes, pushed in pieces of any size, into payloads. The bytes may be hostile.
class FrameDecoder {
 public:
  enum class Step { kFrame, kNeedMore, kMalformed };

  void Push(std::span<const std::uint8_t> bytes);
  // `payload` is valid until the next Push. After kMalformed no more payloads follow.
  Step Next(std::span<const std::uint8_t>& payload);

 private:
  std::vector<std::uint8_t> buffer_;
  std::size_t at_ = 0;
};

}  // namespace torpor::shim
