#include "base/write_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace torpor {
namespace {

using testing::HasSubstr;

TEST(WriteFileTest, ReplacesWhatIsThere) {
  const std::string path = testing::TempDir() + "/written";
  const std::string contents("a\0b\n", 4);
  ASSERT_TRUE(WriteFile(path, "something longer").ok());
  ASSERT_TRUE(WriteFile(path, contents).ok());
  std::ifstream file(path, std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), contents);
}

TEST(WriteFileTest, SaysWhatCannotBeWrittenAndWhy) {
  EXPECT_THAT(std::string(WriteFile("/nowhere/file", "").message()),
              HasSubstr("cannot write /nowhere/file: No such file or directory"));
  EXPECT_THAT(std::string(WriteFile("/dev/full", "text").message()),
              HasSubstr("cannot write /dev/full: No space left"));
}

}  // namespace
}  // namespace torpor
