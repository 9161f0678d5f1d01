#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "server/executor/image/mapped_backing.h"
#include "server/executor/session_memory/peer_server.h"
#include "tests/server/executor/gpu/fake_cuda.h"
#include "tests/server/executor/image/fake_image.h"

namespace torpor::executor {

// A session with memory on one GPU, whose executor gives it to others, and one of these. Both GPUs
// are in one process here, so that the other one has it at addresses of its own.
class PeerFixture : public testing::Test {
 protected:
  // Where the sanitizers allow mappings.
  static constexpr std::uint64_t kOwnerBase = 0x5500'0000'0000;
  static constexpr std::uint64_t kPeerBase = 0x5520'0000'0000;
  static constexpr Bytes kRange = 64 * kMiB;
  static constexpr Bytes kChunk = FakeCuda::kChunk;

  // The GPUs have so many chunks together.
  PeerFixture(std::size_t chunks, ImageFiles owners_files)
      : device_(*Device::Open(cuda_.driver(), 0)),
        pool_(*PhysicalPool::Create(*device_, chunks * kChunk, kChunk)),
        gpu_memory_(*device_, *pool_, kFakeAddresses),
        identity_(Identity()),
        owner_(Open(identity_, std::move(owners_files))),
        socket_(testing::TempDir() + "peers." + std::to_string(getpid()) + ".sock"),
        server_(*PeerServer::Start(socket_, *device_, *pool_, directory_)) {
    pool_->Return(*pool_->Take(chunks));  // waits until the pool is full
  }
  void TearDown() override {
    ASSERT_TRUE(peer_->Drop().ok());
    server_.reset();
  }

  // Another session on the owner's GPU.
  std::unique_ptr<SessionMemory> Open(const SessionIdentity& identity, ImageFiles image) {
    MappedSessionFiles files;
    files.window = NewFile(kMiB);
    files.image = std::move(image);
    return *SessionMemory::Open(*device_, gpu_memory_, hasher_, identity, std::move(files),
                                directory_);
  }
  // What the other GPU has.
  void MakePeer(ImageFiles files) {
    peer_ = std::make_unique<DeviceImage>(*device_,
                                          *MappedBacking::Open(*device_, *pool_, kPeerBase, kRange),
                                          hasher_, kPeerBase, kRange, std::move(files));
  }
  DeviceImage& owner() { return owner_->image(); }
  static std::uint8_t* OnOwner(Bytes offset) {
    return reinterpret_cast<std::uint8_t*>(kOwnerBase + offset);
  }
  static std::uint8_t* OnPeer(Bytes offset) {
    return reinterpret_cast<std::uint8_t*>(kPeerBase + offset);
  }

  FakeCuda cuda_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<PhysicalPool> pool_;
  MappedMemory gpu_memory_;
  HostBlockHasher hasher_;
  MemoryDirectory directory_;
  SessionIdentity identity_;
  std::unique_ptr<SessionMemory> owner_;
  std::unique_ptr<DeviceImage> peer_;
  std::string socket_;
  std::unique_ptr<PeerServer> server_;

 private:
  static SessionIdentity Identity() {
    SessionIdentity identity;
    identity.id = identity.first = {7};
    identity.function = "one";
    identity.peer_key.fill(3);
    identity.device_base = kOwnerBase;
    identity.device_bytes = kRange;
    identity.window_bytes = kMiB;
    return identity;
  }
};

}  // namespace torpor::executor
