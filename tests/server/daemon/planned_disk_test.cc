#include "server/daemon/planned_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/base/temporary_folder.h"

namespace torpor::server {
namespace {

using testing::HasSubstr;

constexpr const char* kNode = "version: v1\ngpus: [{memory: 1GiB}]\n";
constexpr const char* kFullDisk =
    "faults: {disk: [{operation: create, path: '*.image', nth: 1, error: ENOSPC}]}\n";

// A folder of programs with an emulator beside.
class PlannedDiskTest : public testing::Test {
 protected:
  PlannedDiskTest() {
    std::filesystem::create_directories(folder_.path() + "/lib/torpor/emulator");
    std::filesystem::create_directories(folder_.path() + "/real");
    std::filesystem::create_directories(folder_.path() + "/bin");
    folder_.Write("lib/torpor/emulator/libcuda.so.1", "");
  }
  absl::StatusOr<std::unique_ptr<Files>> Find(const std::string& topology) {
    config_.emulator_topology = folder_.Write("topology.yaml", topology);
    return PlannedDisk(config_, folder_.path() + "/bin");
  }

  const TemporaryFolder folder_;
  Config config_;
};

TEST_F(PlannedDiskTest, AnEmulatedNodesDiskFailsAsPlanned) {
  const auto disk = Find(std::string(kNode) + kFullDisk);
  ASSERT_TRUE(disk.ok()) << disk.status();
  ASSERT_NE(*disk, nullptr);
  const std::string image = folder_.path() + "/session.image";
  EXPECT_EQ((*disk)->Create(image, 0600, Caching::kPageCache).status(),
            absl::UnavailableError("cannot create " + image + ": No space left on device"));
  EXPECT_TRUE((*disk)->Create(image, 0600, Caching::kPageCache).ok());
}

TEST_F(PlannedDiskTest, WithoutAPlanThereIsNone) {
  const auto disk = Find(kNode);
  ASSERT_TRUE(disk.ok()) << disk.status();
  EXPECT_EQ(*disk, nullptr);
  EXPECT_EQ(*PlannedDisk(Config(), folder_.path() + "/bin"), nullptr) << "without a topology";
}

TEST_F(PlannedDiskTest, WithARealDriverThereIsNone) {
  config_.cuda_library_dir = folder_.path() + "/real";
  const auto disk = Find(std::string(kNode) + kFullDisk);
  ASSERT_TRUE(disk.ok()) << disk.status();
  EXPECT_EQ(*disk, nullptr);
}

TEST_F(PlannedDiskTest, AMistakeIsToldWithItsLine) {
  const auto disk = Find(std::string(kNode) + "faults: {disk: [{operation: create, nth: 1}]}\n");
  EXPECT_EQ(disk.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(disk.status().message()), HasSubstr("topology.yaml:3: 'error' must be"));
}

}  // namespace
}  // namespace torpor::server
