#include "base/kept_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/base/disk_faults.h"
#include "tests/base/temporary_folder.h"

namespace torpor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kKeptPath = "/state/file";
const std::vector<std::uint8_t> kOld(9000, 1);
const std::vector<std::uint8_t> kNew(20'000, 2);

DiskTrial Trial(const std::function<absl::Status(SimulatedDisk&)>& write) {
  return {.prepare =
              [](SimulatedDisk& disk) { ASSERT_TRUE(ReplaceFile(disk, kKeptPath, kOld, {}).ok()); },
          .write = write,
          .check =
              [](SimulatedDisk& disk, bool is_new) {
                const auto read = disk.Read(kKeptPath);
                ASSERT_TRUE(read.ok()) << read.status();
                EXPECT_TRUE(*read == kNew || (!is_new && *read == kOld)) << read->size();
              }};
}

TEST(KeptFileTest, ItIsOldOrNewWhateverHappens) {
  const int operations = TryAllFaults(
      Trial([](SimulatedDisk& disk) { return ReplaceFile(disk, kKeptPath, kNew, {}); }));
  EXPECT_EQ(operations, 5);  // create, write, sync, rename, sync of the folder
}

TEST(KeptFileTest, WithoutAFaultNothingIsLeftBeside) {
  SimulatedDisk disk;
  ASSERT_TRUE(ReplaceFile(disk, kKeptPath, kOld, {}).ok());
  { const auto never_committed = KeptFile::Write(disk, kKeptPath, kNew, {}); }
  EXPECT_THAT(disk.paths(), ElementsAre(kKeptPath));
  EXPECT_EQ(*disk.Find(kKeptPath), kOld);
}

TEST(KeptFileTest, AFailureLeavesNothingBeside) {
  for (int operation = 1; operation <= 4; ++operation) {
    SimulatedDisk disk;
    disk.FailAt(operation, ENOSPC);
    EXPECT_THAT(std::string(ReplaceFile(disk, kKeptPath, kNew, {}).message()),
                HasSubstr("/state/file"));
    EXPECT_TRUE(disk.paths().empty()) << operation;
  }
}

// The same on the system's files.
class SystemFilesTest : public testing::Test {
 protected:
  const TemporaryFolder folder_;
  Files& files_ = SystemFiles();
};

TEST_F(SystemFilesTest, AFileIsReplacedAndRead) {
  const std::string path = folder_.path("file");
  EXPECT_TRUE(absl::IsNotFound(files_.Read(path).status()));
  ASSERT_TRUE(ReplaceFile(files_, path, kOld, {}).ok());
  ASSERT_TRUE(ReplaceFile(files_, path, kNew, {.mode = 0600}).ok());
  EXPECT_EQ(*files_.Read(path), kNew);
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0600));
  EXPECT_TRUE(files_.Remove(path).ok());
  EXPECT_TRUE(files_.Remove(path).ok()) << "there is none";
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(SystemFilesTest, AFullDiskIsTold) {
  const std::string path = folder_.path("file");
  std::filesystem::create_symlink("/dev/full", path + ".new");
  EXPECT_EQ(ReplaceFile(files_, path, kNew, {}),
            absl::UnavailableError("cannot write " + path + ".new: No space left on device"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(SystemFilesTest, AFolderThatIsMissingIsNamed) {
  const std::string path = folder_.path("nowhere/file");
  EXPECT_THAT(std::string(ReplaceFile(files_, path, kNew, {}).message()),
              HasSubstr(path + ".new: No such file or directory"));
  EXPECT_FALSE(files_.SyncFolder(folder_.path("nowhere")).ok());
}

}  // namespace
}  // namespace torpor
