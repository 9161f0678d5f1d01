#include "client_shim/core/memory/memory_requests.h"

#include <gtest/gtest.h>

#include "tests/client_shim/fake_daemon_port.h"

namespace torpor::shim {
namespace {

class MemoryRequestsTest : public ::testing::Test {
 protected:
  MemoryRequestsTest() {
    log_.set_level(LogLevel::kOff);
    health_.OpenOnce([] { return cudaSuccess; });
    requests_.Connect(daemon_);
  }
  void AnswerAddress(std::uint64_t address, cudaError_t error = cudaSuccess) {
    daemon_.set_answer([=](std::uint64_t id, const wire::ClientMessage&) {
      return wire::MemoryReply{id, error, "", address};
    });
  }

  Log log_;
  SessionHealth health_;
  FakeDaemonPort daemon_;
  MemoryRequests requests_{health_, log_};
};

TEST_F(MemoryRequestsTest, AddressesAreTheDaemons) {
  AnswerAddress(0x1000);
  std::uint64_t address = 0;
  EXPECT_EQ(requests_.Malloc(64, address), cudaSuccess);
  EXPECT_EQ(address, 0x1000u);
  EXPECT_EQ(requests_.HostAlloc(32, address), cudaSuccess);
  EXPECT_EQ(daemon_.All<wire::Malloc>().at(0).bytes, 64u);
  EXPECT_EQ(daemon_.All<wire::HostAlloc>().at(0).bytes, 32u);
  EXPECT_NE(daemon_.All<wire::Malloc>().at(0).request_id,
            daemon_.All<wire::HostAlloc>().at(0).request_id);
}

TEST_F(MemoryRequestsTest, ErrorsAreTheDaemons) {
  AnswerAddress(0, cudaErrorMemoryAllocation);
  std::uint64_t address = 0;
  EXPECT_EQ(requests_.Malloc(64, address), cudaErrorMemoryAllocation);
  EXPECT_EQ(requests_.Free(1), cudaErrorMemoryAllocation);
  daemon_.set_failure(cudaErrorDevicesUnavailable);
  EXPECT_EQ(requests_.Malloc(64, address), cudaErrorDevicesUnavailable);
}

TEST_F(MemoryRequestsTest, AnAnswerOfAnotherKindIsAnError) {
  daemon_.set_answer([](std::uint64_t id, const wire::ClientMessage&) {
    return wire::MemGetInfoReply{id, 1, 2};
  });
  std::uint64_t address = 0;
  EXPECT_EQ(requests_.Malloc(64, address), cudaErrorUnknown);
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
  EXPECT_EQ(requests_.MemGetInfo(free_bytes, total_bytes), cudaSuccess);
  EXPECT_EQ(free_bytes, 1u);
  EXPECT_EQ(total_bytes, 2u);
}

TEST_F(MemoryRequestsTest, NothingIsAskedWithoutAHealthySession) {
  SessionHealth closed;
  MemoryRequests requests(closed, log_);
  requests.Connect(daemon_);
  EXPECT_EQ(requests.Free(1), cudaErrorInitializationError);
  health_.SetSticky(cudaErrorIllegalAddress);
  EXPECT_EQ(requests_.Free(1), cudaErrorIllegalAddress);
  EXPECT_TRUE(daemon_.All<wire::Free>().empty());
}

TEST_F(MemoryRequestsTest, SharedMemoryIsNamedByItsToken) {
  daemon_.set_answer(
      [](std::uint64_t id, const wire::ClientMessage& request) -> wire::ServerMessage {
        if (std::holds_alternative<wire::ShareMemory>(request))
          return wire::ShareMemoryReply{id, 0, "", {4, 5}};
        if (std::holds_alternative<wire::OpenMemory>(request))
          return wire::OpenMemoryReply{id, 0, "", 4096, 1};
        return wire::MemoryReply{id, 0, "", 0};
      });
  ClientCore::MemoryHandle handle{9, 0x2000, {}};
  EXPECT_EQ(requests_.Share(0x2000, handle.token), cudaSuccess);
  wire::OpenMemoryReply opened;
  EXPECT_EQ(requests_.Open(handle, opened), cudaSuccess);
  EXPECT_EQ(opened.bytes, 4096u);
  EXPECT_EQ(daemon_.All<wire::OpenMemory>().at(0).token[1], 5);
  EXPECT_EQ(requests_.Close(handle), cudaSuccess);
  EXPECT_EQ(daemon_.All<wire::CloseMemory>().at(0).owner_session, 9u);
}

}  // namespace
}  // namespace torpor::shim
