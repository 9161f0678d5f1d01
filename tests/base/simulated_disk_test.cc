#include "tests/base/simulated_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace torpor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kDiskPath = "/d/file";
const std::vector<std::uint8_t> kDiskBytes(10'000, 7);

void WriteUnsynced(SimulatedDisk& disk) {
  ASSERT_TRUE(
      (*disk.Create(kDiskPath + ".new", 0600, Caching::kPageCache))->Write(0, kDiskBytes).ok());
  ASSERT_TRUE(disk.Rename(kDiskPath + ".new", kDiskPath).ok());
}

TEST(SimulatedDiskTest, WhatIsNotSyncedIsLostOrTorn) {
  const auto after = [](PowerCut kept) {
    SimulatedDisk disk;
    WriteUnsynced(disk);
    disk.PowerOn(kept);
    const std::vector<std::uint8_t>* const contents = disk.Find(kDiskPath);
    return contents == nullptr ? -1 : std::count(contents->begin(), contents->end(), 7);
  };
  EXPECT_EQ(after(PowerCut::kNothing), -1);
  EXPECT_EQ(after(PowerCut::kContents), -1);
  EXPECT_EQ(after(PowerCut::kEverything), 10'000);
  EXPECT_EQ(after(PowerCut::kNames), 0);
  EXPECT_EQ(after(PowerCut::kTorn512), 4880);
  EXPECT_EQ(after(PowerCut::kTorn4096), 4096);
  EXPECT_EQ(after(PowerCut::kBeginnings), 5000);
}

TEST(SimulatedDiskTest, ANameIsOnTheDiskOnceItsFolderIs) {
  SimulatedDisk disk;
  WriteUnsynced(disk);
  ASSERT_TRUE(disk.SyncFolder("/d").ok());
  ASSERT_TRUE(disk.Remove(kDiskPath).ok());
  ASSERT_TRUE(disk.SyncFolder("/elsewhere").ok());
  EXPECT_TRUE(disk.paths().empty());
  disk.PowerOn(PowerCut::kNothing);
  EXPECT_THAT(disk.paths(), ElementsAre(kDiskPath));
  EXPECT_TRUE(disk.Find(kDiskPath)->empty()) << "its contents were not synced";
}

TEST(SimulatedDiskTest, WithoutPowerEverythingFails) {
  SimulatedDisk disk;
  disk.CutPowerAt(2);
  const auto file = disk.Create(kDiskPath, 0600, Caching::kPageCache);
  ASSERT_TRUE(file.ok());
  EXPECT_THAT(std::string((*file)->Write(0, kDiskBytes).message()), HasSubstr("the power is off"));
  EXPECT_FALSE((*file)->Sync().ok());
  EXPECT_FALSE(disk.Read(kDiskPath).ok());
  EXPECT_FALSE(disk.Remove(kDiskPath).ok());
  disk.PowerOn(PowerCut::kEverything);
  EXPECT_EQ(*disk.Read(kDiskPath), kDiskBytes) << "the write was under way";
}

TEST(SimulatedDiskTest, AFailedSyncIsNotMendedByTheNext) {
  SimulatedDisk disk;
  const auto file = disk.Create(kDiskPath, 0600, Caching::kPageCache);
  ASSERT_TRUE((*file)->Write(0, kDiskBytes).ok());
  ASSERT_TRUE(disk.SyncFolder("/d").ok());
  disk.FailAt(1, EIO);
  EXPECT_THAT(std::string((*file)->Sync().message()), HasSubstr("Input/output error"));
  ASSERT_TRUE((*file)->Sync().ok());
  EXPECT_EQ(*disk.Read(kDiskPath), kDiskBytes);
  disk.PowerOn(PowerCut::kNothing);
  EXPECT_TRUE(disk.Find(kDiskPath)->empty());
}

TEST(SimulatedDiskTest, AFullDiskTakesAPart) {
  SimulatedDisk disk;
  const auto file = disk.Create(kDiskPath, 0600, Caching::kPageCache);
  disk.FailAt(1, ENOSPC);
  EXPECT_THAT(std::string((*file)->Write(0, kDiskBytes).message()),
              HasSubstr("cannot write /d/file: No space left on device"));
  EXPECT_EQ(disk.Find(kDiskPath)->size(), 5000u);
}

}  // namespace
}  // namespace torpor
