#pragma once

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "server/executor/gpu/device_mapping.h"
#include "server/executor/gpu/packet_socket.h"
#include "server/executor/image/physical_pool.h"
#include "server/executor/image/pool_client.h"
#include "server/executor/image/pool_owner.h"
#include "server/unix_socket/unix_listener.h"
#include "tests/base/temporary_folder.h"
#include "tests/server/executor/gpu/fake_cuda.h"

namespace torpor::executor {

// An owner of a pool in a thread, to which the test connects as executors do.
class PoolOwnerFixture : public testing::Test {
 protected:
  static constexpr Bytes kChunk = FakeCuda::kChunk;
  static constexpr Bytes kChunks = 6;
  static constexpr Duration kPatience = std::chrono::seconds(30);

  ~PoolOwnerFixture() override { EndOwner(); }

  void StartOwner(Bytes pool_bytes = kChunks * kChunk) {
    auto owner = PoolOwner::Create(
        *device_, {.pool_bytes = pool_bytes, .chunk_bytes = kChunk, .driver_reserve = 2 * kChunk},
        [this](int) { return Watch(); });
    ASSERT_TRUE(owner.ok()) << owner.status();
    owner_ = *std::move(owner);
    UniqueFd listener = *server::ListenOnUnixSocket(path_, SOCK_SEQPACKET, 0600);
    thread_ = std::thread([this, listener = std::move(listener)]() mutable {
      ASSERT_TRUE(device_->MakeCurrent().ok());
      owner_->Serve(std::move(listener));
    });
  }
  // The last executor lets the owner end.
  void EndOwner() {
    if (!thread_.joinable()) return;
    EXPECT_TRUE(Client()->Outlive(std::chrono::milliseconds(1)).ok());
    thread_.join();
  }
  std::unique_ptr<PoolClient> Client() const { return *PoolClient::Connect(path_, kPatience); }
  UniqueFd Dial() const { return *DialPacketSocket(path_); }

  // Ends the process of the executor that was the `place`-th, from 0, to take chunks.
  void EndProcess(std::size_t place) {
    MutexLock lock(&mutex_);
    eventfd_write(processes_.at(place).get(), 1);
  }

  // Maps the chunk as a process of its own would.
  std::uint8_t* Map(CUmemGenericAllocationHandle chunk) {
    CUdeviceptr address = 0;
    const CudaDriver& driver = device_->driver();
    EXPECT_EQ(driver.MemAddressReserve(&address, kChunk, kChunk, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(driver.MemMap(address, kChunk, 0, chunk, 0), CUDA_SUCCESS);
    EXPECT_TRUE(AllowAccess(*device_, address, kChunk).ok());
    mapped_.push_back(address);
    return reinterpret_cast<std::uint8_t*>(address);
  }
  void UnmapAll() {
    for (const CUdeviceptr address : mapped_) device_->driver().MemUnmap(address, kChunk);
    mapped_.clear();
  }

  // Returns what becomes readable with EndProcess.
  absl::StatusOr<UniqueFd> Watch() {
    MutexLock lock(&mutex_);
    processes_.emplace_back(eventfd(0, EFD_CLOEXEC));
    return UniqueFd(dup(processes_.back().get()));
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path("pool.sock");
  FakeCuda cuda_;
  std::unique_ptr<Device> device_ = *Device::Open(cuda_.driver(), 0);
  Mutex mutex_;
  std::vector<UniqueFd> processes_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<PoolOwner> owner_;
  std::thread thread_;
  std::vector<CUdeviceptr> mapped_;
};

}  // namespace torpor::executor
