#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/units.h"
#include "memory/extent_set.h"
#include "proto/cuda_api/call_memory.h"
#include "server/executor/gpu/pinned_memory.h"
#include "server/executor/gpu/shared_mapping.h"
#include "server/executor/image/device_image.h"
#include "server/executor/session_memory/memory_directory.h"
#include "server/executor/session_memory/session_window.h"

namespace torpor::executor {

// A session's identity, as sent by torpord at the opening (SessionDescription of node.proto).
struct SessionIdentity {
  SessionId id;
  SessionId first;  // primary session of the process, whose arena serves all
  std::array<std::uint8_t, 16> key{};
  std::array<std::uint8_t, 16> peer_key{};  // shown by other executors
  std::string function;
  std::string tenant;  // the function's
  std::uint64_t device_base = 0;
  Bytes device_bytes = 0;
  std::uint64_t host_base = 0;
  Bytes host_bytes = 0;
  Bytes window_bytes = 0;
  bool is_stateless = false;  // the image's changes may be forgotten
};

// The memory files of a session, mapped whole or in parts.
struct MappedSessionFiles {
  SharedMapping window;
  SharedMapping arena;  // at host_base
  ImageFiles image;
};

// A session's memory on the executor: device image, window and host arena. Each part states the
// threads that may use the part.
class SessionMemory {
 public:
  static absl::StatusOr<std::unique_ptr<SessionMemory>> Open(
      const Device& device, ImageMemory& gpu_memory, BlockHasher& hasher,
      const SessionIdentity& identity, MappedSessionFiles files, MemoryDirectory& directory,
      const SwapOptions& swap = {});
  ~SessionMemory();
  SessionMemory(const SessionMemory&) = delete;
  SessionMemory& operator=(const SessionMemory&) = delete;

  DeviceImage& image() { return *image_; }
  SessionWindow& window() { return *window_; }

  // Pieces of the arena that are in use; extents from host_base.
  absl::Status MapHost(memory::Extent extent);
  absl::Status UnmapHost(memory::Extent extent) { return arena_pins_.Unregister(extent); }

  // Returns the device's address of [address, address + bytes): resident or imported memory of an
  // image of the function's sessions, or pinned memory of the host arena, which has the same
  // address in kernels. Returns 0 for anything else. Takes any numbers.
  CUdeviceptr Resolve(std::uint64_t address, Bytes bytes) const;

  // As Resolve, for the command whose work is enqueued next (StreamSet::Use): that work waits until
  // a swap-in has brought these bytes.
  CUdeviceptr Use(std::uint64_t address, Bytes bytes, cuda_api::Access access);
  // Announces a kernel's memory by the packed parameters, in which every aligned word may be a
  // pointer. A pointer to pinned memory may lead to further pointers.
  void UseParameters(std::span<const std::uint8_t> parameters);

  // Notes that `bytes` are about to be uploaded to `address`, in the image or elsewhere.
  void NoteUpload(std::uint64_t address, std::span<const std::uint8_t> bytes);
  // Notes that the allocation at `address` holds addresses of the session's memory; logs a warning
  // once if addresses are translated.
  void NoteAddressesAt(std::uint64_t address);

  // Whether the image's changes may be forgotten, so that only saved uploads are sure to last.
  bool is_stateless() const { return is_stateless_; }
  const std::string& tenant() const { return tenant_; }
  // Whether other sessions of the function may use this session's memory.
  bool has_siblings() const;

  // Whether the GPU's addresses differ from the client's. If so, Translate returns the GPU's
  // address for a pointer `word`, and any other number unchanged; for the session's own memory as
  // of the last RefreshAddresses. For the thread that executes the session's calls.
  bool is_translating() const { return image_->addresses().is_translating(); }
  void RefreshAddresses() { image_->addresses().Refresh(); }
  std::uint64_t Translate(std::uint64_t word) const {
    const CUdeviceptr found = image_->addresses().Translate(word);
    if (found != 0) return found;
    return directory_.MayHold(word) ? TranslateSiblings(word) : word;
  }

  // Returns the arena's bytes [offset, offset + bytes); null unless all lie inside. Takes any
  // numbers.
  std::uint8_t* Arena(std::uint64_t offset, Bytes bytes) const;
  // As Arena, by the client's address.
  std::uint8_t* ArenaAt(std::uint64_t address, Bytes bytes) const;

  // Returns the window of a session of the same function, possibly this session; null if there is
  // no such session. Keep the pointer until work that names the window is done.
  std::shared_ptr<SessionWindow> WindowOf(SessionId session) const;

 private:
  SessionMemory(const Device& device, const SessionIdentity& identity, SharedMapping arena,
                std::unique_ptr<DeviceImage> image, std::shared_ptr<SessionWindow> window,
                MemoryDirectory& directory);

  std::uint64_t TranslateSiblings(std::uint64_t word) const;
  // As Resolve, for this session's own memory.
  CUdeviceptr ResolveOwn(std::uint64_t address, Bytes bytes) const;

  const SessionId id_;
  const SessionId first_;
  const std::string function_;
  const std::string tenant_;
  const std::uint64_t host_base_;
  const bool is_stateless_;
  MemoryDirectory& directory_;
  const SharedMapping arena_;  // empty except in the primary session
  PinnedMemory arena_pins_;
  std::atomic<bool> has_warned_{false};
  const std::unique_ptr<DeviceImage> image_;
  const std::shared_ptr<SessionWindow> window_;
};

}  // namespace torpor::executor
