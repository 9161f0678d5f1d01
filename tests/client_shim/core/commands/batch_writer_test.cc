#include "client_shim/core/commands/batch_writer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "client_shim/core/transport/frame_codec.h"

namespace torpor::shim {
namespace {

constexpr BatchLimits kLimits{256, 3, std::chrono::microseconds(200)};

template <typename Value>
Value At(const std::vector<std::uint8_t>& bytes, std::size_t offset) {
  Value value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

TEST(BatchWriterTest, AFrameHasRoomAHeaderAndPaddedCommands) {
  BatchWriter batch(kLimits);
  const std::vector<std::uint8_t> fields{1, 2, 3};
  batch.Append(5, fields);
  batch.Append(6, {});
  const std::vector<std::uint8_t> frame = batch.Take(9);
  const auto header = At<wire::BatchHeader>(frame, kFrameRoom);
  EXPECT_EQ(header.lease_id, 9u);
  EXPECT_EQ(header.command_count, 2u);
  const auto first = At<wire::CommandHeader>(frame, kFrameRoom + sizeof header);
  EXPECT_EQ(first.call_id, 5u);
  EXPECT_EQ(first.size_bytes, sizeof first + wire::Padded(3));
  EXPECT_EQ(frame.size(), kFrameRoom + sizeof header + 2 * sizeof first + wire::Padded(3));
  EXPECT_TRUE(batch.empty());
}

TEST(BatchWriterTest, IsFullOfCalls) {
  BatchWriter batch(kLimits);
  batch.Append(1, {});
  batch.Append(1, {});
  EXPECT_FALSE(batch.IsFull());
  batch.Append(1, {});
  EXPECT_TRUE(batch.IsFull());
  EXPECT_FALSE(batch.HasMaxBytes());
}

TEST(BatchWriterTest, IsFullOfBytes) {
  BatchWriter batch(kLimits);
  batch.Append(1, std::vector<std::uint8_t>(256));
  EXPECT_TRUE(batch.IsFull());
  EXPECT_TRUE(batch.HasMaxBytes());
  batch.Clear();
  EXPECT_FALSE(batch.IsFull());
}

TEST(BatchWriterTest, TheOldestCommandSetsTheDeadline) {
  BatchWriter batch(kLimits);
  EXPECT_EQ(batch.Deadline(), std::nullopt);
  const auto before = std::chrono::steady_clock::now();
  batch.AppendLater({1, {}}, 1);
  const auto deadline = batch.Deadline();
  ASSERT_TRUE(deadline);
  EXPECT_GE(*deadline, before + kLimits.age);
  batch.AppendLater({1, {}}, 1);
  EXPECT_EQ(batch.Deadline(), deadline);
  batch.Take(1);
  EXPECT_EQ(batch.Deadline(), std::nullopt);
}

}  // namespace
}  // namespace torpor::shim
