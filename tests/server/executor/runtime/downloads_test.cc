#include "server/executor/runtime/downloads.h"

#include <driver_types.h>
#include <gmock/gmock.h>

#include "proto/cuda_api/cudart_commands.h"
#include "tests/server/executor/runtime/runtime_fixture.h"

namespace torpor::executor {
namespace {

using ::testing::ElementsAre;

constexpr std::uint64_t kRing = wire::kCompletionPageBytes;  // begin of the payload ring

class DownloadsTest : public RuntimeTest {
 protected:
  void SetUp() override { std::memcpy(s_.Gpu(0), "abc", 3); }

  std::vector<std::uint8_t> data_;
};

TEST_F(DownloadsTest, BytesTravelInTheReply) {
  EXPECT_TRUE(downloads_.Copy(base(), 0, 3, wire::kReplyInline, data_).ok());
  EXPECT_THAT(data_, ElementsAre('a', 'b', 'c'));
  const auto status =
      downloads_.Copy(base(), 0, wire::kMaxInlineBytes + 1, wire::kReplyInline, data_);
  EXPECT_EQ(status.code, cudaErrorInvalidValue);
}

TEST_F(DownloadsTest, OrInTheWindow) {
  EXPECT_TRUE(downloads_.Copy(base(), 0, 3, kRing, data_).ok());
  EXPECT_EQ(std::memcmp(s_.memory->window().Payload(kRing, 3), "abc", 3), 0);
  EXPECT_TRUE(data_.empty());
  const auto status = downloads_.Copy(base(), 0, 3, s_.identity.window_bytes, data_);
  EXPECT_EQ(status.code, cudaErrorInvalidValue) << "not in the window";
}

TEST_F(DownloadsTest, AStreamMustBeTheSessions) {
  EXPECT_EQ(downloads_.Copy(base(), 4711, 3, wire::kReplyInline, data_).code,
            cudaErrorInvalidResourceHandle);
}

}  // namespace
}  // namespace torpor::executor
