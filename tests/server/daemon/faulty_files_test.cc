#include "server/daemon/faulty_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <numeric>
#include <sstream>

#include "tests/base/simulated_disk.h"

namespace torpor::server {
namespace {

using emulator::DiskError;
using emulator::DiskFault;
using emulator::DiskOperation;
using testing::ElementsAreArray;
using testing::HasSubstr;

constexpr const char* kPath = "folder/file";
constexpr unsigned kMode = 0600;

std::vector<std::uint8_t> Counting(std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  std::iota(bytes.begin(), bytes.end(), 1);
  return bytes;
}

class FaultyFilesTest : public testing::Test {
 protected:
  FaultyFiles FilesWith(std::vector<DiskFault> plan) { return {disk_, std::move(plan)}; }
  // Creates the file with contents, and syncs.
  static absl::Status Put(Files& files, std::span<const std::uint8_t> bytes) {
    auto file = files.Create(kPath, kMode, Caching::kPageCache);
    if (!file.ok()) return file.status();
    const absl::Status written = (*file)->Write(0, bytes);
    return written.ok() ? (*file)->Sync() : written;
  }
  std::vector<std::uint8_t> Contents() { return *disk_.Find(kPath); }

  SimulatedDisk disk_;
  const std::vector<std::uint8_t> bytes_ = Counting(100);
};

TEST_F(FaultyFilesTest, WithoutAPlanTheyAreTheFilesBelow) {
  FaultyFiles files = FilesWith({});
  ASSERT_TRUE(Put(files, bytes_).ok());
  ASSERT_TRUE(files.Rename(kPath, "folder/other").ok());
  ASSERT_TRUE(files.SyncFolder("folder").ok());
  EXPECT_THAT(*files.Read("folder/other"), ElementsAreArray(bytes_));
  std::vector<std::uint8_t> part(10);
  const auto file = files.Open("folder/other", Caching::kPageCache);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Read(20, part).ok());
  EXPECT_EQ(part.front(), bytes_[20]);
  ASSERT_TRUE(files.Remove("folder/other").ok());
  EXPECT_TRUE(absl::IsNotFound(files.Read("folder/other").status()));
  EXPECT_TRUE(absl::IsNotFound(files.Open("folder/other", Caching::kPageCache).status()));
}

TEST_F(FaultyFilesTest, EachOperationFailsAsTheSystemWouldSay) {
  std::vector<DiskFault> plan;
  for (const DiskOperation operation :
       {DiskOperation::kCreate, DiskOperation::kRead, DiskOperation::kWrite, DiskOperation::kSync,
        DiskOperation::kRename, DiskOperation::kRemove}) {
    plan.push_back({.operation = operation});
  }
  FaultyFiles files = FilesWith(plan);
  const auto failure = [](const std::string& what) {
    return absl::UnavailableError("cannot " + what + ": Input/output error");
  };
  EXPECT_EQ(Put(files, bytes_), failure("create folder/file"));
  EXPECT_EQ(Put(files, bytes_), failure("write folder/file"));
  EXPECT_TRUE(Contents().empty()) << "nothing is written";
  EXPECT_EQ(Put(files, bytes_), failure("write folder/file")) << "the sync";
  EXPECT_EQ(files.Read(kPath).status(), failure("read folder/file"));
  EXPECT_EQ(files.Rename(kPath, "folder/other"), failure("replace folder/other"));
  EXPECT_EQ(files.Remove(kPath), failure("remove folder/file"));
  EXPECT_TRUE(files.Read(kPath).ok()) << "each fault is met once";
}

TEST_F(FaultyFilesTest, AFolderThatIsSyncedCountsToo) {
  FaultyFiles files = FilesWith({{.operation = DiskOperation::kSync, .path = "folder", .nth = 2}});
  EXPECT_TRUE(files.SyncFolder("folder").ok());
  EXPECT_FALSE(files.SyncFolder("folder").ok());
}

TEST_F(FaultyFilesTest, AFullDiskIsFullForAsLongAsPlanned) {
  FaultyFiles files =
      FilesWith({{.path = "*file", .nth = 2, .times = 2, .error = DiskError::kNoSpace}});
  EXPECT_TRUE(Put(files, bytes_).ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Put(files, bytes_),
              absl::UnavailableError("cannot write folder/file: No space left on device"));
  }
  EXPECT_TRUE(Put(files, bytes_).ok());
}

TEST_F(FaultyFilesTest, OtherFilesDoNotCount) {
  FaultyFiles files = FilesWith({{.path = "*.image"}});
  EXPECT_TRUE(Put(files, bytes_).ok());
  const auto image = files.Create("folder/session.image", kMode, Caching::kPageCache);
  ASSERT_TRUE(image.ok());
  EXPECT_FALSE((*image)->Write(0, bytes_).ok());
}

TEST_F(FaultyFilesTest, ATornWriteLeavesAHalf) {
  FaultyFiles files = FilesWith({{.error = DiskError::kTorn}});
  EXPECT_EQ(Put(files, bytes_),
            absl::UnavailableError("cannot write folder/file: Input/output error"));
  EXPECT_THAT(Contents(), ElementsAreArray(std::span(bytes_).first(50)));
}

TEST_F(FaultyFilesTest, ATornWritePastThePageCacheIsTornBetweenBlocks) {
  FaultyFiles files = FilesWith({{.error = DiskError::kTorn}});
  EXPECT_FALSE(Put(files, Counting(3 * kDirectBytes)).ok());
  EXPECT_EQ(Contents().size(), kDirectBytes);
}

TEST_F(FaultyFilesTest, WrongBytesDifferInABitAndAreNoError) {
  FaultyFiles files =
      FilesWith({{.operation = DiskOperation::kRead, .times = 2, .error = DiskError::kWrongBytes}});
  ASSERT_TRUE(Put(files, bytes_).ok());
  std::vector<std::uint8_t> wrong = bytes_;
  wrong[50] ^= 1;
  EXPECT_THAT(*files.Read(kPath), ElementsAreArray(wrong));
  const auto file = files.Open(kPath, Caching::kPageCache);
  ASSERT_TRUE(file.ok());
  std::vector<std::uint8_t> read(bytes_.size());
  ASSERT_TRUE((*file)->Read(0, read).ok());
  EXPECT_THAT(read, ElementsAreArray(wrong));
  ASSERT_TRUE((*file)->Read(0, read).ok());
  EXPECT_THAT(read, ElementsAreArray(bytes_));
}

TEST_F(FaultyFilesTest, EntriesCountApartAndTheFirstDecides) {
  FaultyFiles files = FilesWith({{.nth = 2, .error = DiskError::kNoSpace},
                                 {.nth = 2, .error = DiskError::kInputOutput},
                                 {.nth = 3, .error = DiskError::kInputOutput}});
  EXPECT_TRUE(Put(files, bytes_).ok());
  EXPECT_THAT(std::string(Put(files, bytes_).message()), HasSubstr("No space"));
  EXPECT_THAT(std::string(Put(files, bytes_).message()), HasSubstr("Input/output"));
}

TEST_F(FaultyFilesTest, EachFaultIsALineOfTheLog) {
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  FaultyFiles files = FilesWith({{.nth = 2, .error = DiskError::kNoSpace}});
  for (int i = 0; i < 3; ++i) (void)Put(files, bytes_);
  spdlog::set_default_logger(before);
  const std::string text = log.str();
  EXPECT_THAT(text, HasSubstr("folder/file"));
  EXPECT_THAT(text, HasSubstr("ENOSPC"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

}  // namespace
}  // namespace torpor::server
