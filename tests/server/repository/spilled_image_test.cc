#include "server/repository/spilled_image.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/base/simulated_disk.h"
#include "tests/server/links/test_server.h"

namespace torpor::server {
namespace {

using testing::HasSubstr;

constexpr auto kImage = wire::SharedMemory::kImage;
constexpr Bytes kPage = 4 * kKiB;
constexpr Bytes kImageBytes = kGiB;  // and an annex of the same size

std::vector<std::uint8_t> Pattern(Bytes bytes, std::uint8_t first) {
  std::vector<std::uint8_t> pattern(bytes);
  std::iota(pattern.begin(), pattern.end(), first);
  return pattern;
}

class SpilledImageTest : public testing::Test {
 protected:
  SpilledImageTest() {
    // In two pieces, across pieces' borders, and in the annex.
    Write(0, Pattern(3 * kPage, 1));
    Write(64 * kMiB - kPage, Pattern(kSpillPieceBytes + 3 * kPage, 2));
    Write(kImageBytes + kMiB, Pattern(kPage, 3));
  }
  void Write(Bytes offset, const std::vector<std::uint8_t>& bytes) {
    ASSERT_TRUE(files_->file(kImage).Write(offset, bytes).ok());
  }
  std::vector<std::uint8_t> Read(Bytes offset, Bytes bytes) const {
    std::vector<std::uint8_t> read(bytes);
    EXPECT_TRUE(files_->file(kImage).Read(offset, read).ok());
    return read;
  }
  bool IsWhole() const {
    return Read(0, 3 * kPage) == Pattern(3 * kPage, 1) &&
           Read(64 * kMiB - kPage, kSpillPieceBytes + 3 * kPage) ==
               Pattern(kSpillPieceBytes + 3 * kPage, 2) &&
           Read(kImageBytes + kMiB, kPage) == Pattern(kPage, 3);
  }
  Bytes PageBytes() const { return files_->resident_bytes(kImage); }

  const std::unique_ptr<SessionFiles> files_ = *SessionFiles::Create({.image = kImageBytes});
  const std::string path_ = "/state/spilled/session-7.image";
  SimulatedDisk disk_;
};

TEST_F(SpilledImageTest, WhatLeavesMemoryComesBackByteForByte) {
  const Bytes before = PageBytes();
  const auto image = WriteSpilledImage(disk_, path_, *files_, {});
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->bytes(), before);
  EXPECT_EQ(disk_.Find(path_)->size(), before);
  ASSERT_TRUE(files_->GiveBackPages(kImage).ok());
  EXPECT_EQ(PageBytes(), 0u);
  EXPECT_FALSE(IsWhole());
  ASSERT_TRUE(ReadSpilledImage(disk_, path_, *image, *files_).ok());
  EXPECT_TRUE(IsWhole());
  EXPECT_EQ(PageBytes(), before) << "holes stay holes";
}

TEST_F(SpilledImageTest, RealFilesAreReadAndWrittenPastThePageCacheWhereThatGoes) {
  const TemporaryFolder folder;
  const std::string path = folder.path("session-7.image");
  const auto image = WriteSpilledImage(SystemFiles(), path, *files_, {});
  ASSERT_TRUE(image.ok()) << image.status();
  ASSERT_TRUE(files_->GiveBackPages(kImage).ok());
  ASSERT_TRUE(ReadSpilledImage(SystemFiles(), path, *image, *files_).ok());
  EXPECT_TRUE(IsWhole());
}

TEST_F(SpilledImageTest, FreedBytesAreLeftOut) {
  memory::ExtentSet unused;
  unused.Add({64 * kMiB, 128 * kMiB});
  const auto image = WriteSpilledImage(disk_, path_, *files_, unused);
  ASSERT_TRUE(image.ok());
  EXPECT_EQ(image->bytes(), 5 * kPage);
}

TEST_F(SpilledImageTest, AnImageWithoutPagesIsAnEmptyFile) {
  ASSERT_TRUE(files_->GiveBackPages(kImage).ok());
  const auto image = WriteSpilledImage(disk_, path_, *files_, {});
  ASSERT_TRUE(image.ok());
  EXPECT_EQ(image->bytes(), 0u);
  EXPECT_TRUE(ReadSpilledImage(disk_, path_, *image, *files_).ok());
}

TEST_F(SpilledImageTest, OtherBytesOnTheDiskAreRefused) {
  const auto image = WriteSpilledImage(disk_, path_, *files_, {});
  ASSERT_TRUE(image.ok());
  std::vector<std::uint8_t>& on_disk = *disk_.Find(path_);
  on_disk[5 * kPage + 17] ^= 1;
  const absl::Status damaged = ReadSpilledImage(disk_, path_, *image, *files_);
  EXPECT_TRUE(absl::IsDataLoss(damaged)) << damaged;
  EXPECT_THAT(std::string(damaged.message()), HasSubstr(path_));
  on_disk.resize(kPage);
  EXPECT_TRUE(absl::IsUnavailable(ReadSpilledImage(disk_, path_, *image, *files_)));
  ASSERT_TRUE(disk_.Remove(path_).ok());
  EXPECT_TRUE(absl::IsNotFound(ReadSpilledImage(disk_, path_, *image, *files_)));
}

TEST_F(SpilledImageTest, AFaultAtAnyOperationLosesNothing) {
  const int begin = disk_.operations();
  ASSERT_TRUE(WriteSpilledImage(disk_, path_, *files_, {}).ok());
  const int operations = disk_.operations() - begin;
  ASSERT_TRUE(disk_.Remove(path_).ok());
  ASSERT_GT(operations, 4);
  for (int operation = 1; operation <= operations; ++operation) {
    disk_.FailAt(operation, operation % 2 == 0 ? ENOSPC : EIO);
    const auto image = WriteSpilledImage(disk_, path_, *files_, {});
    EXPECT_TRUE(absl::IsUnavailable(image.status())) << operation;
    disk_.Heal();
    EXPECT_EQ(disk_.Find(path_), nullptr) << operation;
    EXPECT_TRUE(IsWhole());
  }
}

TEST_F(SpilledImageTest, AFaultWhileReadingIsTold) {
  const auto image = WriteSpilledImage(disk_, path_, *files_, {});
  ASSERT_TRUE(image.ok());
  ASSERT_TRUE(files_->GiveBackPages(kImage).ok());
  const int begin = disk_.operations();
  ASSERT_TRUE(ReadSpilledImage(disk_, path_, *image, *files_).ok());
  const int operations = disk_.operations() - begin;
  for (int operation = 1; operation <= operations; ++operation) {
    disk_.FailAt(operation, EIO);
    EXPECT_TRUE(absl::IsUnavailable(ReadSpilledImage(disk_, path_, *image, *files_)));
    disk_.Heal();
  }
  ASSERT_TRUE(ReadSpilledImage(disk_, path_, *image, *files_).ok()) << "the file is still there";
  EXPECT_TRUE(IsWhole());
}

}  // namespace
}  // namespace torpor::server
