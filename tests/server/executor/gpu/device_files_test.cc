#include "server/executor/gpu/device_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace torpor::executor {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(DeviceFilesTest, MissingFilesAreNamed) {
  std::string folder = testing::TempDir() + "dev.XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  EXPECT_THAT(MissingDeviceFiles(folder),
              AllOf(HasSubstr(folder + "/nvidiactl and " + folder + "/nvidia-uvm"),
                    HasSubstr("nvidia-modprobe")));
  std::ofstream(folder + "/nvidiactl") << "";
  EXPECT_THAT(MissingDeviceFiles(folder), Not(HasSubstr("nvidiactl")));
  std::ofstream(folder + "/nvidia-uvm") << "";
  EXPECT_EQ(MissingDeviceFiles(folder), "");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace torpor::executor
