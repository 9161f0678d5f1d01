// Functions of the program in streams, over a core that only takes notes.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>

#include "tests/client_shim/surface/fake_client_core.h"

namespace torpor::shim {
namespace {

constexpr std::uint64_t kDevice = 0x2000'0000'0000;
// So often the queue looks at a slot before its stream has come to it: longer than a call that
// does not wait takes.
constexpr int kLooks = 100;

void CUDART_CB Set(void* flag) { static_cast<std::atomic<bool>*>(flag)->store(true); }

class HostFunctionsTest : public testing::Test {
 protected:
  void SetUp() override {
    core_.Forget();
    core_.has_slots = true;
    core_.allocations = {{kDevice, 4096, true}};
    ASSERT_EQ(cudaStreamCreate(&blocking_), cudaSuccess);
    ASSERT_EQ(cudaStreamCreate(&other_blocking_), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&free_, cudaStreamNonBlocking), cudaSuccess);
    core_.slots_stall = true;
  }
  void TearDown() override {
    LetStreamsRun(1);
    core_.failure = cudaSuccess;
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (const cudaStream_t stream : {blocking_, other_blocking_, free_})
      EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  }

  void LetStreamsRun(int looks) { core_.stalled_looks = looks; }
  static cudaError_t Fill(cudaStream_t stream) {
    return cudaMemsetAsync(reinterpret_cast<void*>(kDevice), 0, 16, stream);
  }
  // Whether a command of `later` waits for a function of `earlier`.
  bool Waits(cudaStream_t later, cudaStream_t earlier) {
    std::atomic<bool> has_run{false};
    EXPECT_EQ(cudaLaunchHostFunc(earlier, Set, &has_run), cudaSuccess);
    LetStreamsRun(kLooks);
    EXPECT_EQ(Fill(later), cudaSuccess);
    const bool waited = has_run;
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_TRUE(has_run);
    return waited;
  }

  FakeClientCore& core_ = FakeClientCore::Get();
  cudaStream_t blocking_ = nullptr;
  cudaStream_t other_blocking_ = nullptr;
  cudaStream_t free_ = nullptr;
  std::atomic<bool> has_run_{false};  // here: what a test leaves behind runs when it is torn down
};

TEST_F(HostFunctionsTest, CommandsOfTheSameStreamWait) {
  EXPECT_TRUE(Waits(blocking_, blocking_));
  EXPECT_TRUE(Waits(free_, free_));
  EXPECT_TRUE(Waits(cudaStreamPerThread, cudaStreamPerThread));
}

TEST_F(HostFunctionsTest, TheLegacyStreamAndBlockingOnesWaitForEachOther) {
  EXPECT_TRUE(Waits(blocking_, nullptr));
  EXPECT_TRUE(Waits(cudaStreamPerThread, nullptr));
  EXPECT_TRUE(Waits(nullptr, blocking_));
}

TEST_F(HostFunctionsTest, OtherStreamsGoOn) {
  ASSERT_EQ(cudaLaunchHostFunc(free_, Set, &has_run_), cudaSuccess);
  EXPECT_EQ(Fill(nullptr), cudaSuccess);
  EXPECT_EQ(Fill(blocking_), cudaSuccess);
  ASSERT_EQ(cudaLaunchHostFunc(blocking_, Set, &has_run_), cudaSuccess);
  EXPECT_EQ(Fill(other_blocking_), cudaSuccess);
  LetStreamsRun(1);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  core_.slots_stall = true;
  ASSERT_EQ(cudaLaunchHostFunc(nullptr, Set, &has_run_), cudaSuccess);
  EXPECT_EQ(Fill(free_), cudaSuccess);
}

TEST_F(HostFunctionsTest, OtherLibrariesWaitAtTheGate) {
  ASSERT_EQ(cudaLaunchHostFunc(blocking_, Set, &has_run_), cudaSuccess);
  StreamGate* const gate = core_.stream_gate();
  ASSERT_NE(gate, nullptr);
  const auto handle = reinterpret_cast<std::uint64_t>(blocking_);
  EXPECT_FALSE(gate->IsCapturing(handle));
  LetStreamsRun(kLooks);
  EXPECT_EQ(gate->Await(handle), cudaSuccess);
  EXPECT_TRUE(has_run_);
}

TEST_F(HostFunctionsTest, AThreadsStreamThatOnlyOtherLibrariesUseIsKnownAtTheGate) {
  core_.per_thread_stream = FakeClientCore::kPerThreadStream + 1;
  ASSERT_EQ(cudaLaunchHostFunc(nullptr, Set, &has_run_), cudaSuccess);
  LetStreamsRun(kLooks);
  EXPECT_EQ(core_.stream_gate()->Await(core_.per_thread_stream), cudaSuccess);
  EXPECT_TRUE(has_run_);
}

TEST_F(HostFunctionsTest, AFunctionMayNotCallCuda) {
  static std::atomic<cudaError_t> answer{cudaSuccess};
  ASSERT_EQ(
      cudaLaunchHostFunc(
          free_, [](void* stream) { answer = Fill(static_cast<cudaStream_t>(stream)); }, blocking_),
      cudaSuccess);
  LetStreamsRun(1);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(answer, cudaErrorNotPermitted);
}

// The stream will never come to them.
TEST_F(HostFunctionsTest, OfAFailedSessionOnlyCallbacksRunAndAreTold) {
  static std::atomic<cudaError_t> told{cudaSuccess};
  ASSERT_EQ(cudaLaunchHostFunc(blocking_, Set, &has_run_), cudaSuccess);
  ASSERT_EQ(cudaStreamAddCallback(
                free_, [](cudaStream_t, cudaError_t state, void*) { told = state; }, nullptr, 0),
            cudaSuccess);
  core_.failure = cudaErrorIllegalAddress;
  while (told == cudaSuccess) {
  }
  EXPECT_EQ(told, cudaErrorIllegalAddress);
  EXPECT_FALSE(has_run_);
}

}  // namespace
}  // namespace torpor::shim
