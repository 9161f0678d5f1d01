#include "client_shim/core/memory/process_memory.h"

#include <gtest/gtest.h>

#include "tests/client_shim/fake_daemon_port.h"
#include "tests/device_base.h"

namespace torpor::shim {
namespace {

constexpr ClientCore::MemoryHandle kHandle{9, kTestDeviceBase, {1, 2, 3}};
constexpr std::uint64_t kBytes = 4096;

class ProcessMemoryTest : public ::testing::Test {
 protected:
  ProcessMemoryTest() {
    log_.set_level(LogLevel::kOff);
    health_.OpenOnce([] { return cudaSuccess; });
    requests_.Connect(daemon_);
    devices_.Choose({1}, std::vector<wire::DeviceDescription>(2));
    daemon_.set_answer(
        [this](std::uint64_t id, const wire::ClientMessage& request) -> wire::ServerMessage {
          if (std::holds_alternative<wire::OpenMemory>(request))
            return wire::OpenMemoryReply{id, open_error_, "", kBytes, 0};
          return wire::MemoryReply{id, 0, "", 0};
        });
  }
  cudaError_t Open(const ClientCore::MemoryHandle& handle = kHandle) {
    return memory_.Open(handle, devices_, requests_, opened_);
  }

  Log log_;
  SessionHealth health_;
  FakeDaemonPort daemon_;
  MemoryRequests requests_{health_, log_};
  ProgramDevices devices_;
  ProcessMemory memory_;
  ClientCore::Allocation opened_;
  std::int32_t open_error_ = 0;
};

TEST_F(ProcessMemoryTest, OwnAllocationsAreForgottenOnce) {
  memory_.Insert({0x1000, 64, true, 0});
  memory_.Insert({0x2000, 32, false, 0});
  EXPECT_FALSE(memory_.Forget(0x1000, false)) << "device memory";
  EXPECT_FALSE(memory_.Forget(0x1010, true)) << "not the begin";
  EXPECT_FALSE(memory_.Forget(0x2000, true)) << "host memory";
  EXPECT_TRUE(memory_.Forget(0x1000, true));
  EXPECT_FALSE(memory_.Forget(0x1000, true));
  EXPECT_TRUE(memory_.Forget(0x2000, false));
}

TEST_F(ProcessMemoryTest, BytesOfADeviceAreItsOwnDeviceMemory) {
  memory_.Insert({0x1000, 64, true, 0});
  memory_.Insert({0x2000, 32, true, 1});
  memory_.Insert({0x3000, 16, false, 0});
  ASSERT_EQ(Open(), cudaSuccess);
  EXPECT_EQ(memory_.AllocatedBytes(0), 64u);
  EXPECT_EQ(memory_.AllocatedBytes(1), 32u);
}

TEST_F(ProcessMemoryTest, MemoryOfAHiddenDeviceIsOfTheFirst) {
  EXPECT_FALSE(memory_.WasShared());
  ASSERT_EQ(Open(), cudaSuccess);
  EXPECT_TRUE(memory_.WasShared());
  EXPECT_TRUE(opened_.is_foreign && opened_.on_device);
  EXPECT_EQ(opened_.device, 0);
  ClientCore::Allocation found;
  ASSERT_TRUE(memory_.Find(kHandle.address + kBytes - 1, found));
  EXPECT_FALSE(memory_.Forget(kHandle.address, true)) << "not the process's own";
}

TEST_F(ProcessMemoryTest, TheDaemonIsAskedForTheFirstOpenAndTheLastClose) {
  ASSERT_EQ(Open(), cudaSuccess);
  ASSERT_EQ(Open(), cudaSuccess);
  EXPECT_EQ(daemon_.All<wire::OpenMemory>().size(), 1u);
  EXPECT_EQ(memory_.Close(kHandle.address, requests_), cudaSuccess);
  EXPECT_TRUE(daemon_.All<wire::CloseMemory>().empty());
  EXPECT_EQ(memory_.Close(kHandle.address, requests_), cudaSuccess);
  EXPECT_EQ(daemon_.All<wire::CloseMemory>().size(), 1u);
  EXPECT_EQ(memory_.Close(kHandle.address, requests_), cudaErrorInvalidValue);
  ClientCore::Allocation found;
  EXPECT_FALSE(memory_.Find(kHandle.address, found));
}

TEST_F(ProcessMemoryTest, AForgedTokenOpensNothing) {
  ASSERT_EQ(Open(), cudaSuccess);
  ClientCore::MemoryHandle forged = kHandle;
  forged.token[0] ^= 1;
  EXPECT_EQ(Open(forged), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(memory_.CloseWholly(kHandle.address, requests_), cudaSuccess);
}

TEST_F(ProcessMemoryTest, ClosingWhollyEndsAllUses) {
  ASSERT_EQ(Open(), cudaSuccess);
  ASSERT_EQ(Open(), cudaSuccess);
  EXPECT_EQ(memory_.CloseWholly(kHandle.address, requests_), cudaSuccess);
  EXPECT_EQ(daemon_.All<wire::CloseMemory>().size(), 1u);
  EXPECT_EQ(memory_.CloseWholly(kHandle.address, requests_), cudaSuccess) << "none is open";
}

TEST_F(ProcessMemoryTest, ARefusalOpensNothing) {
  open_error_ = cudaErrorInvalidResourceHandle;
  EXPECT_EQ(Open(), cudaErrorInvalidResourceHandle);
  ClientCore::Allocation found;
  EXPECT_FALSE(memory_.Find(kHandle.address, found));
}

}  // namespace
}  // namespace torpor::shim
