#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "server/executor/image/arena_memory.h"
#include "server/executor/image/mapped_backing.h"
#include "server/executor/session_memory/session_memory.h"
#include "tests/server/executor/gpu/fake_cuda.h"
#include "tests/server/executor/image/fake_image.h"

namespace torpor::executor {

// The only session of process `number`, with 64 MiB of addresses of its own where both
// AddressSanitizer and ThreadSanitizer allow mappings.
inline SessionIdentity MakeIdentity(std::uint64_t number) {
  SessionIdentity identity;
  identity.id = identity.first = {number};
  identity.function = "function-" + std::to_string(number);
  identity.device_bytes = 64 * kMiB;
  identity.device_base = 0x5500'0000'0000 + number * identity.device_bytes;
  identity.host_bytes = 1 * kMiB;
  identity.host_base = 0x5510'0000'0000 + number * identity.host_bytes;
  identity.window_bytes = 1 * kMiB;
  return identity;
}

// New memory files of a session, without a torpord.
inline MappedSessionFiles MakeSessionFiles(const SessionIdentity& identity) {
  const auto map = [](Bytes bytes, std::uint64_t address) {
    const UniqueFd file(memfd_create("session", MFD_CLOEXEC));
    EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
    return *SharedMapping::Map(file, bytes, address);
  };
  return {map(identity.window_bytes, 0), map(identity.host_bytes, identity.host_base),
          NewImageFiles(identity.device_bytes)};
}

// The memory of one session on the fake driver, 4 MiB of it resident.
struct FakeSessionMemory {
  explicit FakeSessionMemory(AddressMode mode = AddressMode::kMap)
      : device(*Device::Open(cuda.driver(), 0)),
        pool(*PhysicalPool::Create(*device, 8 * FakeCuda::kChunk, FakeCuda::kChunk)),
        gpu_memory(OpenMemory(mode)),
        memory(*SessionMemory::Open(*device, *gpu_memory, hasher, identity,
                                    MakeSessionFiles(identity), directory)) {
    EXPECT_TRUE(memory->image().SwapIn({{{0, 4 * kMiB}}}).ok());
    EXPECT_TRUE(memory->image().arrival().Wait().ok());
  }

  std::unique_ptr<ImageMemory> OpenMemory(AddressMode mode) const {
    if (mode == AddressMode::kMap) {
      return std::make_unique<MappedMemory>(*device, *pool, kFakeAddresses);
    }
    return *ArenaMemory::Create(*device, *pool);
  }
  std::uint64_t base() const { return identity.device_base; }
  // The byte that the GPU has for the client's address base() + `offset`.
  std::uint8_t* Gpu(Bytes offset) const {
    return reinterpret_cast<std::uint8_t*>(memory->Resolve(base() + offset, 1));
  }

  FakeCuda cuda;
  std::unique_ptr<Device> device;
  std::unique_ptr<PhysicalPool> pool;
  std::unique_ptr<ImageMemory> gpu_memory;
  HostBlockHasher hasher;
  MemoryDirectory directory;
  const SessionIdentity identity = MakeIdentity(1);
  std::unique_ptr<SessionMemory> memory;
};

}  // namespace torpor::executor
