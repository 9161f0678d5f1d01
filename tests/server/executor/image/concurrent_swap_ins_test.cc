// Swap-ins to two emulated GPUs whose links have a rate, in this process.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "memory/swap_planner.h"
#include "server/executor/gpu/address_reservation.h"
#include "server/executor/image/mapped_backing.h"
#include "tests/device_base.h"
#include "tests/server/executor/image/fake_image.h"
#include "tests/server/executor/image/in_order.h"

namespace torpor::executor {
namespace {

constexpr Bytes kChunk = 2 * kMiB;
constexpr Bytes kImage = 4 * kMiB;
constexpr Bytes kGroup = 64 * kKiB;

// The pieces of images in the order in which they have arrived.
class Arrivals {
 public:
  // Calls of the driver are C functions, so there is one.
  static Arrivals* one;

  Arrivals(const CudaDriver& driver, std::shared_future<void> begin)
      : driver_(driver), begin_(std::move(begin)) {
    one = this;
  }
  ~Arrivals() { one = nullptr; }

  // The driver, but that all copies to GPUs wait for `begin`, and are noted when they are done.
  CudaDriver Watched() const {
    CudaDriver watched = driver_;
    watched.MemcpyHtoDAsync = [](CUdeviceptr to, const void* from, std::size_t bytes,
                                 CUstream stream) {
      const CudaDriver& driver = one->driver_;
      driver.LaunchHostFunc(
          stream, [](void*) { one->begin_.wait_for(std::chrono::seconds(20)); }, nullptr);
      const CUresult result = driver.MemcpyHtoDAsync(to, from, bytes, stream);
      driver.LaunchHostFunc(
          stream, [](void* arrived) { one->Note(arrived); }, stream);
      return result;
    };
    return watched;
  }

  // By the stream.
  std::vector<const void*> noted() {
    std::lock_guard lock(mutex_);
    return noted_;
  }

 private:
  void Note(const void* stream) {
    std::lock_guard lock(mutex_);
    noted_.push_back(stream);
  }

  const CudaDriver driver_;
  const std::shared_future<void> begin_;
  std::mutex mutex_;
  std::vector<const void*> noted_;
};

Arrivals* Arrivals::one = nullptr;

// An executor's part of a swap-in, on its own GPU.
struct Gpu {
  Gpu(const CudaDriver& driver, int index)
      : device(*Device::Open(driver, index)),
        pool(*PhysicalPool::Create(*device, 2 * kImage, kChunk)),
        base(kTestDeviceBase + static_cast<std::uint64_t>(index) * kGiB),
        addresses(*AddressReservation::Make(*device, base, kImage)) {
    ImageFiles files = NewImageFiles(kImage);
    std::fill_n(files.image.data(), kImage, static_cast<std::uint8_t>(index + 1));
    image = std::make_unique<DeviceImage>(
        *device, *MappedBacking::Open(*device, *pool, base, kImage), hasher, base, kImage,
        std::move(files), SwapOptions{.group_bytes = kGroup});
  }

  absl::Status SwapIn() const {
    TORPOR_RETURN_IF_ERROR(device->MakeCurrent());
    return image->SwapIn(InOrder({{0, kImage}})).status();
  }
  absl::Status Finish() const {
    TORPOR_RETURN_IF_ERROR(device->MakeCurrent());
    return image->arrival().Wait();
  }
  const void* stream() const { return image->arrival().stream(); }

  const std::unique_ptr<Device> device;
  const std::unique_ptr<PhysicalPool> pool;
  const std::uint64_t base;
  const std::unique_ptr<AddressReservation> addresses;
  HostBlockHasher hasher;
  std::unique_ptr<DeviceImage> image;
};

class ConcurrentSwapInsTest : public testing::Test {
 protected:
  // Each group takes a millisecond and a quarter.
  void SetUp() override {
    std::filesystem::create_directory(folder_);
    const std::string topology = folder_ + "/topology.yaml";
    std::ofstream(topology) << "version: v1\ntime_scale: 4\ngpus:\n"
                               "  - {memory: 64MiB, pcie_gbps: 0.2, count: 2}\n";
    setenv("TORPOR_EMULATOR_TOPOLOGY", topology.c_str(), 1);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  const std::string folder_ = testing::TempDir() + "swap-ins-" + std::to_string(getpid());
};

TEST_F(ConcurrentSwapInsTest, ToTwoGpusAreOnTheirWayAtTheSameTime) {
  std::promise<void> begin;
  Arrivals arrivals(*LoadCudaDriver(EMULATOR_DIR), begin.get_future().share());
  const CudaDriver driver = arrivals.Watched();
  const Gpu first(driver, 0);
  const Gpu second(driver, 1);
  ASSERT_TRUE(first.SwapIn().ok() && second.SwapIn().ok());
  EXPECT_TRUE(first.image->arrival().is_pending() && second.image->arrival().is_pending());
  begin.set_value();
  ASSERT_TRUE(first.Finish().ok() && second.Finish().ok());

  const std::vector<const void*> noted = arrivals.noted();
  ASSERT_EQ(noted.size(),
            2 * memory::GroupBySize(std::vector<memory::Extent>{{0, kImage}}, kGroup).size());
  const auto begins = [&](const Gpu& gpu) { return std::ranges::find(noted, gpu.stream()); };
  const auto ends = [&](const Gpu& gpu) {
    return std::find(noted.rbegin(), noted.rend(), gpu.stream()).base();
  };
  EXPECT_LT(begins(first), ends(second)) << "one came after the other";
  EXPECT_LT(begins(second), ends(first)) << "one came after the other";
}

}  // namespace
}  // namespace torpor::executor
