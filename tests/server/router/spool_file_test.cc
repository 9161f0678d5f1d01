#include "server/router/spool_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>

#include "tests/base/temporary_folder.h"

namespace torpor::server {
namespace {

namespace fs = std::filesystem;

// The status of the process's open file that is, or was, in the folder.
std::optional<struct stat> OpenFileIn(const std::string& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const fs::path target = fs::read_symlink(entry.path(), error);
    struct stat found {};
    if (!error && target.string().starts_with(folder + "/") &&
        stat(entry.path().c_str(), &found) == 0) {
      return found;
    }
  }
  return std::nullopt;
}

TEST(SpoolFileTest, WhatWasWrittenIsRead) {
  const TemporaryFolder folder;
  SpoolFile file(folder.path());
  ASSERT_TRUE(file.Write(0, "abc").ok());
  ASSERT_TRUE(file.Write(3, "defg").ok());
  std::string read(4, '\0');
  ASSERT_TRUE(file.Read(2, read).ok());
  EXPECT_EQ(read, "cdef");
}

TEST(SpoolFileTest, TheFileIsItsOwnersAndHasNoName) {
  const TemporaryFolder folder;
  const std::string inner = folder.path("spool");
  {
    SpoolFile file(inner);
    ASSERT_TRUE(file.Write(0, "abc").ok());
    EXPECT_TRUE(fs::is_empty(inner));
    const auto open = OpenFileIn(inner);
    ASSERT_TRUE(open.has_value());
    EXPECT_EQ(open->st_mode & 0777, 0600u);
    EXPECT_EQ(open->st_nlink, 0u);
  }
  EXPECT_FALSE(OpenFileIn(inner).has_value());
  EXPECT_EQ(fs::status(inner).permissions(), fs::perms::owner_all);
}

TEST(SpoolFileTest, AFolderThatCannotBeIsAnErrorWithoutItsPath) {
  const TemporaryFolder folder;
  SpoolFile file(folder.Write("taken", "by a file") + "/spool");
  const absl::Status status = file.Write(0, "abc");
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(testing::HasSubstr("spool_dir"), testing::HasSubstr("directory"),
                             testing::Not(testing::HasSubstr(folder.path()))));
}

TEST(SpoolFileTest, WhatIsMissingIsAnError) {
  const TemporaryFolder folder;
  SpoolFile file(folder.path());
  ASSERT_TRUE(file.Write(0, "abc").ok());
  std::string read(4, '\0');
  EXPECT_TRUE(absl::IsUnavailable(file.Read(0, read)));
}

TEST(SpoolFileTest, WithoutAFolderItIsInTheSystems) {
  SpoolFile file("");
  EXPECT_TRUE(file.Write(0, "abc").ok());
}

}  // namespace
}  // namespace torpor::server
