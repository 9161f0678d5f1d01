#include "server/node/host_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/server/links/test_server.h"

namespace torpor::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

class HostMemoryTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_.path() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::optional<Bytes> Available() const { return AvailableHostMemory(folder_.path()); }

  const TemporaryFolder folder_;
};

TEST_F(HostMemoryTest, ItIsTheMachines) {
  EXPECT_EQ(Available(), std::nullopt);
  Write("/proc/meminfo", "MemTotal:       1024 kB\nMemFree: 5 kB\n");
  EXPECT_THAT(Available(), Optional(kMiB));
}

TEST_F(HostMemoryTest, TheSmallestLimitOfTheCgroupAndItsParentsHolds) {
  Write("/proc/meminfo", "MemTotal:       4096 kB\n");
  Write("/proc/self/cgroup", "0::/system.slice/torpord.service\n");
  Write("/sys/fs/cgroup/system.slice/torpord.service/memory.max", "max\n");
  EXPECT_THAT(Available(), Optional(4 * kMiB));
  Write("/sys/fs/cgroup/system.slice/memory.max", "2097152\n");
  EXPECT_THAT(Available(), Optional(2 * kMiB));
  Write("/sys/fs/cgroup/system.slice/torpord.service/memory.max", "1048576\n");
  EXPECT_THAT(Available(), Optional(kMiB));
}

TEST_F(HostMemoryTest, Version1IsKnownToo) {
  Write("/proc/meminfo", "MemTotal:       4096 kB\n");
  Write("/proc/self/cgroup", "5:cpu,cpuacct:/a\n4:hugetlb,memory:/docker/1f\n0::/\n");
  Write("/sys/fs/cgroup/memory/docker/1f/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_THAT(Available(), Optional(4 * kMiB)) << "no limit";
  Write("/sys/fs/cgroup/memory/docker/1f/memory.limit_in_bytes", "1048576\n");
  EXPECT_THAT(Available(), Optional(kMiB));
}

// A container sees its own cgroup as the root, wherever the path says that it is.
TEST_F(HostMemoryTest, AContainersLimitIsAtTheRoot) {
  Write("/proc/meminfo", "MemTotal:       4096 kB\n");
  Write("/proc/self/cgroup", "0::/../other\n");
  Write("/sys/fs/cgroup/memory.max", "1048576\n");
  EXPECT_THAT(Available(), Optional(kMiB));
  EXPECT_THAT(CgroupLimitFiles("4:memory:/a/b\n"),
              ElementsAre("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes",
                          "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
                          "/sys/fs/cgroup/memory/memory.limit_in_bytes"));
}

TEST_F(HostMemoryTest, OtherTextSaysNothing) {
  EXPECT_THAT(CgroupLimitFiles("0:\n\n:\n7:name=systemd:/\n"), IsEmpty());
  for (const char* text : {"", "max", "-1", "99999999999999999999999"}) {
    EXPECT_EQ(ParseCgroupLimit(text), std::nullopt) << text;
  }
  for (const char* text :
       {"", "MemTotal:", "MemTotal: x kB", "MemTotal: 18446744073709551615 kB"}) {
    EXPECT_EQ(ParseTotalMemory(text), std::nullopt) << text;
  }
}

TEST_F(HostMemoryTest, ThisMachineHasSome) {
  const std::optional<Bytes> available = AvailableHostMemory();
  ASSERT_TRUE(available);
  EXPECT_GT(*available, 64 * kMiB);
}

}  // namespace
}  // namespace torpor::server
