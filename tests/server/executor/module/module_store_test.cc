#include "server/executor/module/module_store.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "tests/base/disk_faults.h"

namespace torpor::executor {
namespace {

class ModuleStoreTest : public testing::Test {
 protected:
  ModuleStoreTest() {
    std::string pattern = testing::TempDir() + "modules.XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~ModuleStoreTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
  const std::vector<std::uint8_t> bytes_ = {1, 2, 3, 4, 5};
  const Sha256Digest digest_ = Sha256(bytes_.data(), bytes_.size());
};

TEST_F(ModuleStoreTest, GivesBackWhatWasWritten) {
  const ModuleStore store(folder_);
  EXPECT_TRUE(absl::IsNotFound(store.Read(digest_).status()));
  ASSERT_TRUE(store.Write(digest_, bytes_).ok());
  EXPECT_EQ(*store.Read(digest_), bytes_);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(ModuleStoreTest, RefusesBytesOfAnotherName) {
  const ModuleStore store(folder_);
  EXPECT_TRUE(absl::IsInvalidArgument(store.Write(Sha256Digest{}, bytes_)));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(ModuleStoreTest, ADamagedFileIsNoModule) {
  const ModuleStore store(folder_);
  ASSERT_TRUE(store.Write(digest_, bytes_).ok());
  std::ofstream(folder_ + "/" + ToHex(digest_)) << "garbage";
  EXPECT_TRUE(absl::IsNotFound(store.Read(digest_).status()));
  ASSERT_TRUE(store.Write(digest_, bytes_).ok());
  EXPECT_TRUE(store.Read(digest_).ok());
}

TEST_F(ModuleStoreTest, AModuleIsThereOrNotWhateverTheDiskDoes) {
  const int operations =
      TryAllFaults({.prepare = [](SimulatedDisk&) {},
                    .write =
                        [this](SimulatedDisk& disk) {
                          return ModuleStore("/modules", disk).Write(digest_, bytes_);
                        },
                    .check =
                        [this](SimulatedDisk& disk, bool is_new) {
                          const ModuleStore store("/modules", disk);
                          const auto read = store.Read(digest_);
                          EXPECT_TRUE(read.ok() || (!is_new && absl::IsNotFound(read.status())))
                              << read.status();
                          EXPECT_EQ(read.value_or(bytes_), bytes_);
                          EXPECT_TRUE(store.Write(digest_, bytes_).ok());
                          EXPECT_EQ(*store.Read(digest_), bytes_);
                        }});
  EXPECT_EQ(operations, 5);
}

TEST_F(ModuleStoreTest, ADiskThatCannotBeReadIsNoDamage) {
  SimulatedDisk disk;
  const ModuleStore store("/modules", disk);
  ASSERT_TRUE(store.Write(digest_, bytes_).ok());
  disk.FailAt(1, EIO);
  EXPECT_TRUE(absl::IsUnavailable(store.Read(digest_).status()));
  EXPECT_EQ(*store.Read(digest_), bytes_);
}

TEST_F(ModuleStoreTest, PiecesComeInOrder) {
  ModuleUploadBuffer buffer;
  const std::span<const std::uint8_t> all(bytes_);
  EXPECT_FALSE(*buffer.Add(digest_, 5, 0, all.first(2)));
  EXPECT_FALSE(buffer.Add(digest_, 5, 3, all.subspan(3)).ok());
  EXPECT_FALSE(buffer.Add(digest_, 6, 2, all.subspan(2)).ok());
  EXPECT_FALSE(buffer.Add(Sha256Digest{}, 5, 2, all.subspan(2)).ok());
  EXPECT_FALSE(buffer.Add(digest_, 5, 2, all).ok()) << "more than was announced";
  EXPECT_TRUE(*buffer.Add(digest_, 5, 2, all.subspan(2)));
  EXPECT_EQ(std::vector<std::uint8_t>(buffer.bytes().begin(), buffer.bytes().end()), bytes_);
  EXPECT_FALSE(buffer.Add(digest_, ~std::uint64_t{0}, 0, {}).ok());
}

}  // namespace
}  // namespace torpor::executor
