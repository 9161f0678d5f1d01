#include "server/executor/runtime/array_calls.h"

#include <driver_types.h>
#include <gmock/gmock.h>

#include "tests/server/executor/runtime/runtime_fixture.h"

namespace torpor::executor {
namespace {

using ::testing::Each;

constexpr std::uint64_t kArray = 11;
constexpr Bytes kRowBytes = 16;  // 4 floats

class ArrayCallsTest : public RuntimeTest {
 protected:
  void SetUp() override {
    wire::ArrayCreate create;
    create.array = kArray;
    create.width = 4;
    create.height = 2;
    create.format = CU_AD_FORMAT_FLOAT;
    create.channels = 1;
    create.block = base() + kMiB;
    ASSERT_TRUE(calls_.ArrayCreate(create).ok());
  }
  // All of the array from device memory.
  wire::Memcpy3D Upload() const {
    wire::Memcpy3D copy;
    copy.dst_side = wire::MemorySide::kArray;
    copy.dst = kArray;
    copy.src = base();
    copy.src_pitch = kRowBytes;
    copy.src_rows = 2;
    copy.width = kRowBytes;
    copy.height = 2;
    copy.depth = 1;
    return copy;
  }

  SessionArrays arrays_{*s_.device, s_.memory->image()};
  ArrayCalls calls_{*s_.device, arrays_, memory_, streams_, s_.memory->image()};
};

TEST_F(ArrayCallsTest, TexelsAreCopiedIntoAnArray) {
  std::memset(s_.Gpu(0), 6, 2 * kRowBytes);
  EXPECT_TRUE(calls_.Memcpy3D(Upload()).ok());
  EXPECT_THAT(s_.cuda.texels(0), Each(6));
}

TEST_F(ArrayCallsTest, ACopyStaysInsideOfTheArrayAndOfTheSessionsMemory) {
  wire::Memcpy3D copy = Upload();
  copy.dst_position = {1, 0, 0};
  EXPECT_EQ(calls_.Memcpy3D(copy).code, cudaErrorInvalidValue);
  copy = Upload();
  copy.src = base() + 4 * kMiB - 2 * kRowBytes + 1;
  EXPECT_EQ(calls_.Memcpy3D(copy).code, cudaErrorInvalidValue);
  copy = Upload();
  copy.dst = 99;
  EXPECT_EQ(calls_.Memcpy3D(copy).code, cudaErrorInvalidValue);
  copy = Upload();
  copy.depth = 0;
  EXPECT_TRUE(calls_.Memcpy3D(copy).ok()) << "nothing is copied";
}

TEST_F(ArrayCallsTest, AnArrayIsThereUntilItIsDestroyed) {
  wire::ArrayCheckResult nothing;
  EXPECT_TRUE(calls_.ArrayCheck({kArray}, nothing).ok());
  EXPECT_TRUE(calls_.ArrayDestroy({kArray}).ok());
  EXPECT_EQ(calls_.ArrayCheck({kArray}, nothing).code, cudaErrorInvalidResourceHandle);
}

}  // namespace
}  // namespace torpor::executor
