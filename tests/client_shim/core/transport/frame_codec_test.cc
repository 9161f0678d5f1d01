#include "client_shim/core/transport/frame_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "proto/torpor/v1/transport.pb.h"

namespace torpor::shim {
namespace {

std::vector<std::uint8_t> Sealed(const std::string& payload) {
  std::vector<std::uint8_t> bytes(kFrameRoom + payload.size());
  std::copy(payload.begin(), payload.end(), bytes.begin() + kFrameRoom);
  const std::size_t begin = SealFrame(bytes);
  return {bytes.begin() + static_cast<std::ptrdiff_t>(begin), bytes.end()};
}

TEST(FrameCodecTest, ProtobufReadsWhatWeSeal) {
  for (const std::size_t size : {1u, 127u, 128u, 16383u, 16384u, 300000u}) {
    const std::string payload(size, 'x');
    const std::vector<std::uint8_t> sealed = Sealed(payload);
    torpor::v1::Frame frame;
    ASSERT_TRUE(frame.ParseFromArray(sealed.data() + 5, static_cast<int>(sealed.size() - 5)));
    EXPECT_EQ(frame.payload(), payload);
    EXPECT_EQ(sealed[0], 0);
    const std::size_t length = std::size_t{sealed[1]} << 24 | std::size_t{sealed[2]} << 16 |
                               std::size_t{sealed[3]} << 8 | sealed[4];
    EXPECT_EQ(length, sealed.size() - 5);
  }
}

TEST(FrameCodecTest, FramesSurviveAnyChopping) {
  std::vector<std::uint8_t> bytes;
  for (const std::string payload : {"one", "", "three"}) {
    const auto sealed = Sealed(payload);
    bytes.insert(bytes.end(), sealed.begin(), sealed.end());
  }
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    FrameDecoder decoder;
    std::vector<std::string> payloads;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      decoder.Push(std::span(bytes).subspan(at, std::min(step, bytes.size() - at)));
      std::span<const std::uint8_t> payload;
      while (decoder.Next(payload) == FrameDecoder::Step::kFrame)
        payloads.emplace_back(payload.begin(), payload.end());
    }
    EXPECT_EQ(payloads, (std::vector<std::string>{"one", "", "three"})) << step;
  }
}

TEST(FrameCodecTest, LiesAreMalformed) {
  const std::vector<std::vector<std::uint8_t>> lies = {
      {1, 0, 0, 0, 0},                         // compressed
      {0, 0xff, 0xff, 0xff, 0xff},             // longer than any message
      {0, 0, 0, 0, 2, 0x0a, 5},                // a field longer than its message
      {0, 0, 0, 0, 3, 0x0a, 0, 0},             // bytes behind the field
      {0, 0, 0, 0, 2, 0x12, 0},                // another field
      {0, 0, 0, 0, 1, 0x0a},                   // no length
      {0, 0, 0, 0, 4, 0x0a, 0x80, 0x80, 0x80}  // an endless length
  };
  for (const auto& lie : lies) {
    FrameDecoder decoder;
    decoder.Push(lie);
    std::span<const std::uint8_t> payload;
    EXPECT_EQ(decoder.Next(payload), FrameDecoder::Step::kMalformed);
  }
}

}  // namespace
}  // namespace torpor::shim
