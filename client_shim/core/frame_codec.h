#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// A gRPC message that holds one torpor.v1.Frame{bytes payload = 1}, coded by hand: five bytes of
// gRPC (compressed flag, big-endian length), the field's tag 0x0a, its length as a varint, and
// the payload.
namespace torpor::shim {

// Bytes that the owner of a payload leaves free in front of it.
inline constexpr std::size_t kFrameRoom = 16;

// Writes the prefix into the room in front of the payload; `bytes` begins with kFrameRoom free
// bytes. Returns where the message begins.
std::size_t SealFrame(std::vector<std::uint8_t>& bytes);

// Cuts a stream of bytes, however it was chopped, into payloads. The bytes may be hostile.
class FrameDecoder {
 public:
  enum class Step { kFrame, kNeedMore, kMalformed };

  void Push(std::span<const std::uint8_t> bytes);
  // `payload` lives until the next Push. After kMalformed nothing more comes.
  Step Next(std::span<const std::uint8_t>& payload);

 private:
  std::vector<std::uint8_t> buffer_;
  std::size_t at_ = 0;
};

}  // namespace torpor::shim
