#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "server/executor/image/arena_memory.h"
#include "server/executor/image/mapped_backing.h"
#include "server/executor/session/batch_runner.h"
#include "server/executor/session/session.h"
#include "tests/server/executor/gpu/fake_cuda.h"
#include "tests/server/executor/session_memory/session_memory_fixture.h"

namespace torpor::executor {

// Counts what happens.
struct SessionEvents final : SessionListener {
  void OnContextLost(SessionId, const cuda_api::CallStatus&) override { ++count; }
  void OnArrival(SessionId, const ArrivedBytes& bytes, Duration) override {
    arrived.push_back(bytes.total());
  }
  int count = 0;  // of lost contexts
  std::vector<Bytes> arrived;
};

// Collects replies.
struct ReplyList final : ReplySink {
  void Send(std::span<const std::uint8_t> bytes) override {
    wire::Reader reader(bytes);
    reader(replies.emplace_back());
  }
  std::vector<wire::Reply> replies;
};

// One session on the fake driver, with 4 MiB of resident memory.
struct FakeSession {
  explicit FakeSession(const cuda_api::CublasFunctions& cublas_functions = {},
                       AddressMode mode = AddressMode::kMap)
      : device(*Device::Open(cuda.driver(), 0)),
        pool(*PhysicalPool::Create(*device, 8 * FakeCuda::kChunk, FakeCuda::kChunk)),
        gpu_memory(OpenMemory(mode)),
        libraries{.cublas = CublasPool(cublas_functions)} {
    std::string pattern = testing::TempDir() + "modules.XXXXXX";
    folder = mkdtemp(pattern.data());
    store = std::make_unique<ModuleStore>(folder);
    modules = std::make_unique<ModuleLibrary>(*device, *store);
    identity.id = {1};
    identity.first = identity.id;
    identity.key.fill(9);
    // Where both AddressSanitizer and ThreadSanitizer allow mappings.
    identity.device_base = 0x5500'0000'0000;
    identity.device_bytes = 64 * kMiB;
    identity.host_base = 0x5510'0000'0000;
    identity.host_bytes = 16 * kMiB;
    identity.window_bytes = 1 * kMiB;
    auto opened = *SessionMemory::Open(*device, *gpu_memory, hasher, identity,
                                       MakeSessionFiles(identity), directory);
    memory = opened.get();
    session = std::make_unique<Session>(
        SessionEnvironment{*device, *gpu_memory, hasher, *modules, libraries, output, events},
        identity, std::move(opened));
    stream = *device->CreateStream();
    EXPECT_TRUE(session->SwapIn({{{0, 4 * kMiB}}}, /*is_whole=*/true).ok());
    EXPECT_TRUE(session->BeginLease({5}).ok());
  }
  ~FakeSession() { std::filesystem::remove_all(folder); }

  std::unique_ptr<ImageMemory> OpenMemory(AddressMode mode) const {
    if (mode == AddressMode::kMap) {
      return std::make_unique<MappedMemory>(*device, *pool, kFakeAddresses);
    }
    return *ArenaMemory::Create(*device, *pool);
  }

  // Runs a frame under the lease.
  absl::Status Run(const std::vector<std::uint8_t>& frame) {
    return session->RunFrame(frame, replies);
  }

  FakeCuda cuda;
  std::unique_ptr<Device> device;
  std::unique_ptr<PhysicalPool> pool;
  std::unique_ptr<ImageMemory> gpu_memory;
  HostBlockHasher hasher;
  std::string folder;
  std::unique_ptr<ModuleStore> store;
  std::unique_ptr<ModuleLibrary> modules;
  MathLibraries libraries;
  KernelOutput output;
  SessionEvents events;
  MemoryDirectory directory;
  ReplyList replies;
  SessionIdentity identity;
  SessionMemory* memory = nullptr;
  std::unique_ptr<Session> session;
  CUstream stream = nullptr;
  MemoryFindings findings;  // by the last swap-out
};

}  // namespace torpor::executor
