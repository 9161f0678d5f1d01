#include "base/whole_io.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>

#include "base/unique_fd.h"

namespace torpor {
namespace {

TEST(WholeIo, ReadsWhatWasWritten) {
  const UniqueFd file(memfd_create("test", MFD_CLOEXEC));
  const std::array<std::uint8_t, 5> bytes = {1, 2, 3, 4, 5};
  ASSERT_TRUE(WriteWhole(file.get(), 100, bytes));
  std::array<std::uint8_t, 7> read{};
  ASSERT_TRUE(ReadWhole(file.get(), 98, read));
  EXPECT_EQ(read, (std::array<std::uint8_t, 7>{0, 0, 1, 2, 3, 4, 5}));
}

TEST(WholeIo, AFileThatEndsBeforeIsAnError) {
  const UniqueFd file(memfd_create("test", MFD_CLOEXEC));
  const std::array<std::uint8_t, 5> bytes{};
  ASSERT_TRUE(WriteWhole(file.get(), 0, bytes));
  std::array<std::uint8_t, 6> read{};
  EXPECT_FALSE(ReadWhole(file.get(), 0, read));
  EXPECT_EQ(errno, ENODATA);
}

TEST(WholeIo, ErrorsAreTheSystems) {
  std::array<std::uint8_t, 1> byte{};
  EXPECT_FALSE(WriteWhole(-1, 0, byte));
  EXPECT_EQ(errno, EBADF);
  EXPECT_FALSE(ReadWhole(-1, 0, byte));
  EXPECT_EQ(errno, EBADF);
}

}  // namespace
}  // namespace torpor
