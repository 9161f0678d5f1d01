#include "client_shim/core/transport/frame_codec.h"

#include <algorithm>

#include "proto/wire/batch.h"

namespace torpor::shim {
namespace {

constexpr std::size_t kGrpcPrefix = 5;
constexpr std::uint8_t kPayloadTag = 0x0a;
constexpr std::size_t kMaxVarint = 10;
constexpr std::size_t kMaxMessage = wire::kMaxFrameBytes + 1 + kMaxVarint;

std::size_t VarintBytes(std::uint64_t value) {
  std::size_t bytes = 1;
  while (value >>= 7) ++bytes;
  return bytes;
}

// Takes a varint off the front of `bytes`; false if `bytes` does not begin with a varint.
bool TakeVarint(std::span<const std::uint8_t>& bytes, std::uint64_t& value) {
  value = 0;
  for (std::size_t i = 0; i < bytes.size() && i < kMaxVarint; ++i) {
    value |= std::uint64_t{bytes[i] & 0x7fu} << (7 * i);
    if (bytes[i] < 0x80) {
      bytes = bytes.subspan(i + 1);
      return true;
    }
  }
  return false;
}

// The payload of a protobuf Frame. Our peers write exactly this field, once.
bool ParseFrame(std::span<const std::uint8_t> message, std::span<const std::uint8_t>& payload) {
  payload = {};
  if (message.empty()) return true;  // proto3 leaves an empty field out
  if (message[0] != kPayloadTag) return false;
  message = message.subspan(1);
  std::uint64_t length = 0;
  if (!TakeVarint(message, length) || length != message.size()) return false;
  payload = message;
  return true;
}

}  // namespace

std::vector<std::uint8_t> Framed(std::span<const std::uint8_t> payload) {
  std::vector<std::uint8_t> bytes(kFrameRoom + payload.size());
  std::copy(payload.begin(), payload.end(), bytes.begin() + kFrameRoom);
  return bytes;
}

std::size_t SealFrame(std::vector<std::uint8_t>& bytes) {
  const std::uint64_t payload = bytes.size() - kFrameRoom;
  const std::size_t varint = VarintBytes(payload);
  const std::size_t begin = kFrameRoom - kGrpcPrefix - 1 - varint;
  const std::uint64_t message = 1 + varint + payload;
  std::uint8_t* out = bytes.data() + begin;
  *out++ = 0;  // not compressed
  for (int shift = 24; shift >= 0; shift -= 8) *out++ = static_cast<std::uint8_t>(message >> shift);
  *out++ = kPayloadTag;
  std::uint64_t rest = payload;
  for (; rest >= 0x80; rest >>= 7) *out++ = static_cast<std::uint8_t>(rest | 0x80);
  *out = static_cast<std::uint8_t>(rest);
  return begin;
}

void FrameDecoder::Push(std::span<const std::uint8_t> bytes) {
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(at_));
  at_ = 0;
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

FrameDecoder::Step FrameDecoder::Next(std::span<const std::uint8_t>& payload) {
  const auto rest = std::span<const std::uint8_t>(buffer_).subspan(at_);
  if (rest.size() < kGrpcPrefix) return Step::kNeedMore;
  std::size_t length = 0;
  for (std::size_t i = 1; i < kGrpcPrefix; ++i) length = length << 8 | rest[i];
  if (rest[0] != 0 || length > kMaxMessage) return Step::kMalformed;
  if (rest.size() < kGrpcPrefix + length) return Step::kNeedMore;
  if (!ParseFrame(rest.subspan(kGrpcPrefix, length), payload)) return Step::kMalformed;
  at_ += kGrpcPrefix + length;
  return Step::kFrame;
}

}  // namespace torpor::shim
