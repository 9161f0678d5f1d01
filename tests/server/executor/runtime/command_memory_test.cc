#include "server/executor/runtime/command_memory.h"

#include "tests/server/executor/runtime/runtime_fixture.h"

namespace torpor::executor {
namespace {

using cuda_api::Access;

class CommandMemoryTest : public RuntimeTest {};

TEST_F(CommandMemoryTest, FindsTheSessionsMemoryOnly) {
  EXPECT_EQ(memory_.Device(base() + 16, 32, Access::kRead), base() + 16);
  EXPECT_EQ(memory_.Device(base() + 4 * kMiB - 8, 8, Access::kWrite), base() + 4 * kMiB - 8);
  EXPECT_EQ(memory_.Device(base() + 4 * kMiB - 8, 9, Access::kRead), 0u);
  EXPECT_EQ(memory_.Device(base() - 1, 1, Access::kRead), 0u);
  EXPECT_EQ(memory_.Device(base(), ~Bytes{0}, Access::kRead), 0u);
}

TEST_F(CommandMemoryTest, APayloadLiesInTheCommandTheWindowOrTheArena) {
  const std::vector<std::uint8_t> data(8);
  EXPECT_EQ(memory_.Payload(wire::Payload::kInline, 0, 8, data), data.data());
  EXPECT_EQ(memory_.Payload(wire::Payload::kInline, 0, 9, data), nullptr);
  const std::uint64_t ring = wire::kCompletionPageBytes;
  EXPECT_EQ(memory_.Payload(wire::Payload::kWindow, ring, 8, {}),
            s_.memory->window().Payload(ring, 8));
  EXPECT_EQ(memory_.Payload(wire::Payload::kWindow, ring - 8, 8, {}), nullptr);
  EXPECT_EQ(memory_.Payload(wire::Payload::kWindow, s_.identity.window_bytes, 8, {}), nullptr);
  EXPECT_EQ(memory_.Payload(wire::Payload::kArena, 64, 8, {}), s_.memory->Arena(64, 8));
  EXPECT_EQ(memory_.Payload(wire::Payload::kArena, s_.identity.host_bytes - 7, 8, {}), nullptr);
  EXPECT_EQ(memory_.Payload(static_cast<wire::Payload>(99), 0, 8, data), nullptr);
}

TEST_F(CommandMemoryTest, ASideOfACopyIsDeviceOrPinnedMemory) {
  const auto device =
      memory_.LinearSide(wire::MemorySide::kDevice, base(), 4 * kMiB, Access::kWrite);
  ASSERT_TRUE(device);
  EXPECT_EQ(device->type, CU_MEMORYTYPE_DEVICE);
  EXPECT_EQ(device->device, base());
  const auto host =
      memory_.LinearSide(wire::MemorySide::kArena, s_.identity.host_base + 8, 8, Access::kRead);
  ASSERT_TRUE(host);
  EXPECT_EQ(host->type, CU_MEMORYTYPE_HOST);
  EXPECT_EQ(host->host, s_.memory->Arena(8, 8));
  EXPECT_FALSE(memory_.LinearSide(wire::MemorySide::kDevice, base(), 5 * kMiB, Access::kRead));
  EXPECT_FALSE(memory_.LinearSide(wire::MemorySide::kArena, base(), 8, Access::kRead));
  EXPECT_FALSE(memory_.LinearSide(wire::MemorySide::kArray, base(), 8, Access::kRead));
}

}  // namespace
}  // namespace torpor::executor
