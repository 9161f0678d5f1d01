#include "server/daemon/cuda_libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace torpor::server {
namespace {

using ::testing::HasSubstr;

class CudaLibrariesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "cuda-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    std::filesystem::create_directories(root_ / "bin");
    // On a machine with a GPU, too, a topology asks for the emulator.
    config_.emulator_topology = "topology.yaml";
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string AddEmulator() {
    const auto folder = root_ / "lib/torpor/emulator";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "libcuda.so.1") << "x";
    return folder.string();
  }

  std::filesystem::path root_;
  Config config_;
};

TEST_F(CudaLibrariesTest, TheEmulatorLiesBesideThePrograms) {
  const std::string emulator = AddEmulator();
  const auto found = FindCudaLibraries(config_, (root_ / "bin").string());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->folder, emulator);
  EXPECT_TRUE(found->is_emulated);
}

TEST_F(CudaLibrariesTest, AConfiguredFolderIsTaken) {
  AddEmulator();
  config_.cuda_library_dir = "/opt/driver";
  const auto found = FindCudaLibraries(config_, (root_ / "bin").string());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->folder, "/opt/driver");
  EXPECT_FALSE(found->is_emulated);
}

TEST_F(CudaLibrariesTest, NoneAtAllIsAnErrorThatSaysWhereItLooked) {
  const absl::Status status = FindCudaLibraries(config_, (root_ / "bin").string()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr((root_ / "lib/torpor/emulator").string()));
}

}  // namespace
}  // namespace torpor::server
