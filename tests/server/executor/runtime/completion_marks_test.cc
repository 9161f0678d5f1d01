#include "server/executor/runtime/completion_marks.h"

#include <driver_types.h>

#include "tests/server/executor/runtime/runtime_fixture.h"

namespace torpor::executor {
namespace {

constexpr std::uint32_t kSlot = 3;

class CompletionMarksTest : public RuntimeTest {
 protected:
  std::uint64_t Marked() { return s_.memory->window().Slot(kSlot)->load(); }
};

TEST_F(CompletionMarksTest, AMarkFollowsTheEarlierWorkOfItsStream) {
  s_.cuda.HoldStreams();
  EXPECT_TRUE(marks_.Write({}, StreamSet::kLegacy, kSlot, 7).ok());
  EXPECT_EQ(Marked(), 0u);
  s_.cuda.Release();
  EXPECT_EQ(Marked(), 7u);
}

TEST_F(CompletionMarksTest, AFailedCommandIsMarkedToo) {
  const auto status = marks_.Write(cuda_api::CallFailed(cudaErrorInvalidValue, "bad"), 0, kSlot, 7);
  EXPECT_EQ(status.code, cudaErrorInvalidValue);
  EXPECT_EQ(status.message, "bad");
  EXPECT_EQ(Marked(), 7u);
}

TEST_F(CompletionMarksTest, WithoutSuchAStreamTheMarkIsWrittenAtOnce) {
  s_.cuda.HoldStreams();
  EXPECT_TRUE(marks_.Write({}, 4711, kSlot, 7).ok());
  EXPECT_EQ(Marked(), 7u);
}

TEST_F(CompletionMarksTest, ZeroAsksForNoMark) {
  EXPECT_TRUE(marks_.Write({}, 0, ~0u, 0).ok());
  EXPECT_EQ(marks_.Write({}, 0, ~0u, 1).code, cudaErrorInvalidValue) << "no such slot";
}

}  // namespace
}  // namespace torpor::executor
