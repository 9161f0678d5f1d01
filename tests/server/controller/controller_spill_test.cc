// Images that leave host memory for the disk, and come back.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "server/controller/model/cuda_errors.h"
#include "tests/server/controller/controller_harness.h"
#include "tests/server/links/test_server.h"

namespace torpor::server {
namespace {

using testing::HasSubstr;

constexpr auto kImage = wire::SharedMemory::kImage;

class ControllerSpill : public ControllerHarness {
 protected:
  // Two images of 12 MiB do not fit.
  static constexpr Bytes kBudget = 20 * kMiB;
  static constexpr Bytes kMemory = 12 * kMiB;

  ControllerSpill() { Start(kGiB); }
  void Start(Bytes limit) {
    options_.host_budget = kBudget;
    options_.config.spill_limit = limit;
    options_.spill_folder = folder_.path("spilled");
    std::filesystem::create_directory(options_.spill_folder);
    RestartTorpord();
    StartExecutor(0);
  }

  // Lets evictions and spills go on while somebody waits for room.
  void Pass() {
    loop_.Advance(std::chrono::milliseconds(50));
    Settle();
    loop_.Advance(std::chrono::milliseconds(50));
    Settle();
  }
  std::shared_ptr<SessionFiles> FilesOf(const Client& client) {
    return *repository_.Find(SessionId{client.hello.session_id}, client.hello.session_key);
  }
  // A client with kMemory of GPU memory, whose image in the host has bytes of its own.
  Client ConnectWithMemory(const std::string& token, std::uint8_t first) {
    Client client = Connect(token);
    const auto block = Malloc(client, kMemory);
    EXPECT_EQ(block->error, kCudaSuccess) << block->message;
    addresses_[client.hello.session_id] = block->address;
    EXPECT_TRUE(FilesOf(client)->file(kImage).Write(OffsetOf(client), Pattern(first)).ok());
    return client;
  }
  Bytes OffsetOf(const Client& client) {
    return addresses_[client.hello.session_id] - client.hello.device_base;
  }
  static std::vector<std::uint8_t> Pattern(std::uint8_t first) {
    std::vector<std::uint8_t> bytes(kMemory);
    std::iota(bytes.begin(), bytes.end(), first);
    return bytes;
  }
  std::vector<std::uint8_t> MemoryOf(const Client& client) {
    std::vector<std::uint8_t> bytes(kMemory);
    EXPECT_TRUE(FilesOf(client)->file(kImage).Read(OffsetOf(client), bytes).ok());
    return bytes;
  }
  Bytes PagesOf(const Client& client) { return FilesOf(client)->resident_bytes(kImage); }
  std::string PathOf(const Client& client) const {
    return folder_.path(absl::StrCat("spilled/session-", client.hello.session_id, ".image"));
  }
  bool IsOnDisk(const Client& client) const { return std::ifstream(PathOf(client)).good(); }
  SpillFigures spills() const { return controller_->Snapshot().spills; }

  const TemporaryFolder folder_;
  std::map<std::uint64_t, std::uint64_t> addresses_;  // by session
};

TEST_F(ControllerSpill, AnAllocationMakesIdleImagesLeave) {
  Client a = ConnectWithMemory("token-a", 1);
  Client b = ConnectWithMemory("token-b", 2);
  EXPECT_EQ(PagesOf(a), 0u);
  EXPECT_TRUE(IsOnDisk(a));
  EXPECT_EQ(spills().images, 1u);
  EXPECT_EQ(spills().bytes, kMemory);
  EXPECT_EQ(spills().out.images, 1u);
  EXPECT_LT(controller_->Snapshot().host_memory.used, kBudget);
  EXPECT_EQ(MemoryOf(b), Pattern(2));
  Disconnect(a);
  Disconnect(b);
  EXPECT_FALSE(IsOnDisk(a));
  EXPECT_EQ(spills().images, 0u);
  EXPECT_EQ(controller_->Snapshot().host_memory.used, 0u);
}

TEST_F(ControllerSpill, ARequestBringsTheImageBackAndSpillsAnother) {
  Client a = ConnectWithMemory("token-a", 1);
  Client b = ConnectWithMemory("token-b", 2);
  Serve("a", a);
  EXPECT_EQ(MemoryOf(a), Pattern(1));
  EXPECT_FALSE(IsOnDisk(a));
  EXPECT_TRUE(IsOnDisk(b));
  EXPECT_EQ(PagesOf(b), 0u);
  // The other way round: a is evicted from the GPU first.
  const RequestId in_b = Acquire("b");
  Pass();
  ASSERT_TRUE(TakeLease(b));
  EXPECT_TRUE(IsRunning(in_b));
  EXPECT_EQ(MemoryOf(b), Pattern(2));
  EXPECT_TRUE(IsOnDisk(a));
  EXPECT_EQ(spills().back.images, 2u);
}

TEST_F(ControllerSpill, AnImageInUseStays) {
  Client a = ConnectWithMemory("token-a", 1);
  const RequestId running = Acquire("a");
  ASSERT_TRUE(TakeLease(a));
  Client b = Connect("token-b");
  const auto refused = Malloc(b, kMemory);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->error, kCudaErrorMemoryAllocation);
  EXPECT_FALSE(IsOnDisk(a));
  Release(running);
  ASSERT_TRUE(GiveBack(a));
  EXPECT_FALSE(Malloc(b, kMemory)) << "a is evicted first";
  Pass();
  const auto allocated = b.link->Take<wire::MemoryReply>();
  ASSERT_TRUE(allocated);
  EXPECT_EQ(allocated->error, kCudaSuccess) << allocated->message;
  EXPECT_TRUE(IsOnDisk(a));
}

TEST_F(ControllerSpill, ARequestThatWaitsForAGpuBringsItsImageBackMeanwhile) {
  Client a = ConnectWithMemory("token-a", 1);
  Client b = ConnectWithMemory("token-b", 2);
  ASSERT_TRUE(IsOnDisk(a));
  ASSERT_EQ(Free(b, addresses_[b.hello.session_id])->error, kCudaSuccess);
  const RequestId in_b = Acquire("b");
  ASSERT_TRUE(TakeLease(b));
  Acquire("a");
  EXPECT_FALSE(TakeLease(a)) << "b has the GPU";
  EXPECT_FALSE(IsOnDisk(a));
  EXPECT_EQ(MemoryOf(a), Pattern(1));
  Release(in_b);
  ASSERT_TRUE(GiveBack(b));
  EXPECT_TRUE(TakeLease(a));
}

TEST_F(ControllerSpill, AnImageThatIsWantedMeanwhileStays) {
  Client a = ConnectWithMemory("token-a", 1);
  Client b = Connect("token-b");
  // Both before the loop goes on: the request comes while the file is written.
  const wire::Malloc malloc{b.next_request++, kMemory};
  controller_->OnSessionMessage(b.link, wire::ClientMessage(malloc));
  const RequestId in_a = Acquire("a");
  EXPECT_EQ(spills().out.images, 1u) << "written";
  EXPECT_FALSE(IsOnDisk(a)) << "and not needed";
  EXPECT_EQ(MemoryOf(a), Pattern(1));
  EXPECT_TRUE(TakeLease(a));
  EXPECT_TRUE(IsRunning(in_a));
}

TEST_F(ControllerSpill, AReturnWaitsForRoom) {
  Client a = ConnectWithMemory("token-a", 1);
  Client b = ConnectWithMemory("token-b", 2);
  const RequestId in_b = Acquire("b");
  ASSERT_TRUE(TakeLease(b));
  Acquire("a");
  EXPECT_FALSE(TakeLease(a)) << "b has the room, and the GPU";
  EXPECT_TRUE(IsOnDisk(a));
  Release(in_b);
  ASSERT_TRUE(GiveBack(b));
  Pass();
  ASSERT_TRUE(TakeLease(a));
  EXPECT_EQ(MemoryOf(a), Pattern(1));
  EXPECT_TRUE(IsOnDisk(b));
}

TEST_F(ControllerSpill, WithoutRoomForLongARequestIsRefused) {
  Client a = ConnectWithMemory("token-a", 1);
  Client b = ConnectWithMemory("token-b", 2);
  Hold(&v1::DaemonMessage::has_release_image);  // b cannot leave
  const RequestId in_a = Acquire("a", std::chrono::hours(1));
  loop_.Advance(std::chrono::seconds(40));
  Settle();
  EXPECT_EQ(Failure(in_a), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(IsOnDisk(a)) << "nothing is lost";
  answers_ = nullptr;
  Settle();
  Serve("a", a);
  EXPECT_EQ(MemoryOf(a), Pattern(1));
}

TEST_F(ControllerSpill, MemoryIsFreedWhereverItIs) {
  Client a = ConnectWithMemory("token-a", 1);
  const auto second = Malloc(a, kChunk);
  Client b = ConnectWithMemory("token-b", 2);
  ASSERT_TRUE(IsOnDisk(a));
  EXPECT_EQ(Free(a, second->address)->error, kCudaSuccess);
  EXPECT_EQ(MemoryOf(a), Pattern(1));
  EXPECT_EQ(Malloc(a, kChunk)->error, kCudaSuccess);
}

TEST_F(ControllerSpill, ADamagedFileEndsTheSessionWithItsReason) {
  Client a = ConnectWithMemory("token-a", 1);
  Client b = ConnectWithMemory("token-b", 2);
  {
    std::fstream file(PathOf(a), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(kMiB + 5);
    file.put('x');
  }
  Acquire("a");
  Settle();
  const auto lost = a.link->Take<wire::LeaseLost>();
  ASSERT_TRUE(lost);
  EXPECT_TRUE(lost->sticky);
  EXPECT_THAT(lost->message, HasSubstr(PathOf(a)));
  EXPECT_EQ(spills().back.failures, 1u);
  Serve("b", b);
}

TEST_F(ControllerSpill, AFullDiskLeavesImagesWhereTheyAre) {
  Start(kMemory - 1);
  Client a = ConnectWithMemory("token-a", 1);
  Client b = Connect("token-b");
  const auto refused = Malloc(b, kMemory);
  EXPECT_EQ(refused->error, kCudaErrorMemoryAllocation);
  EXPECT_EQ(MemoryOf(a), Pattern(1));
  EXPECT_EQ(spills().images, 0u);
}

TEST_F(ControllerSpill, AFailureIsNotTriedAgainAtOnce) {
  std::filesystem::remove(folder_.path("spilled"));
  Client a = ConnectWithMemory("token-a", 1);
  Client b = Connect("token-b");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Malloc(b, kMemory)->error, kCudaErrorMemoryAllocation);
  EXPECT_EQ(spills().out.failures, 1u);
  EXPECT_EQ(MemoryOf(a), Pattern(1));
  loop_.Advance(std::chrono::seconds(31));
  std::filesystem::create_directory(folder_.path("spilled"));
  EXPECT_EQ(Malloc(b, kMemory)->error, kCudaSuccess);
  EXPECT_EQ(spills().out.images, 1u);
}

TEST_F(ControllerSpill, SomeOfTheBudgetIsKeptFreeAheadOfNeed) {
  Client a = ConnectWithMemory("token-a", 1);
  Client b = Connect("token-b");
  ASSERT_EQ(Malloc(b, 4 * kMiB)->error, kCudaSuccess);
  loop_.Advance(std::chrono::seconds(2));
  Settle();
  ASSERT_FALSE(IsOnDisk(a));
  ASSERT_EQ(Malloc(b, kMiB)->error, kCudaSuccess);
  loop_.Advance(std::chrono::seconds(2));
  Settle();
  EXPECT_EQ(spills().images, 1u);
}

TEST_F(ControllerSpill, FilesOfNobodyAreRemovedAtTheStart) {
  std::ofstream(folder_.path("spilled/session-77.image")) << "of an earlier life";
  std::ofstream(folder_.path("spilled/README")) << "no image";
  Start(kGiB);
  EXPECT_FALSE(std::ifstream(folder_.path("spilled/session-77.image")).good());
  EXPECT_TRUE(std::ifstream(folder_.path("spilled/README")).good());
}

}  // namespace
}  // namespace torpor::server
