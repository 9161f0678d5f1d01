#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "server/executor/image/device_image.h"
#include "server/executor/image/mapped_backing.h"
#include "tests/server/executor/gpu/fake_cuda.h"
#include "tests/server/executor/image/fake_image.h"

namespace torpor::executor {

inline constexpr std::uint64_t kBase = 0x5500'0000'0000;  // where the sanitizers allow mappings
inline constexpr Bytes kRange = 64 * kMiB;

class DeviceImageTest : public testing::Test {
 protected:
  void SetUp() override {
    device_ = *Device::Open(cuda_.driver(), 0);
    pool_ = *PhysicalPool::Create(*device_, 8 * FakeCuda::kChunk, FakeCuda::kChunk);
    pool_->Return(*pool_->Take(8));  // waits until the pool is full
    ImageFiles files = NewImageFiles(kRange);
    host_ = files.image.data();
    tenant_ = std::make_shared<TenantMemory>(*device_, NewFile(kRange));
    files.tenant = tenant_;
    states_.emplace(StatesOf(files));
    bytes_.emplace(files);
    records_ = RecordsOf(files);
    image_ = std::make_unique<DeviceImage>(*device_,
                                           *MappedBacking::Open(*device_, *pool_, kBase, kRange),
                                           hasher_, kBase, kRange, std::move(files), options_);
    stream_ = *device_->CreateStream();
  }

  std::uint8_t* gpu(Bytes offset) { return reinterpret_cast<std::uint8_t*>(kBase + offset); }
  static memory::ExtentSet Live(std::initializer_list<memory::Extent> extents) {
    memory::ExtentSet set;
    for (const memory::Extent& extent : extents) set.Add(extent);
    return set;
  }

  // As torpord does with memory that is freed.
  void Untouch(memory::Extent extent) {
    memory::ResetBlocks(records_, extent, wire::kImageBlockBytes);
  }

  SwapOptions options_;
  FakeCuda cuda_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<PhysicalPool> pool_;
  HostBlockHasher hasher_;
  std::unique_ptr<DeviceImage> image_;
  std::uint8_t* host_ = nullptr;  // own places of the blocks
  std::shared_ptr<TenantMemory> tenant_;
  std::optional<HostBytes> bytes_;  // of the blocks, wherever they are
  std::span<memory::BlockRecord> records_;
  std::optional<memory::BlockStates> states_;
  CUstream stream_ = nullptr;
};

}  // namespace torpor::executor
