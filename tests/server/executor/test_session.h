#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>

#include "base/unique_fd.h"
#include "base/units.h"
#include "proto/wire/session_window.h"
#include "server/executor/gpu/shared_mapping.h"
#include "tests/server/executor/fake_daemon.h"
#include "tests/server/executor/image/fake_image.h"

namespace torpor::executor {

inline constexpr std::uint64_t kDeviceBase = 0x2000'0000'0000;
inline constexpr std::uint64_t kHostBase = 0x3000'0000'0000;
inline constexpr Bytes kDeviceBytes = 1 * kGiB;
inline constexpr Bytes kHostBytes = 64 * kMiB;
inline constexpr Bytes kWindowBytes = 4 * kMiB;

// A session's memory files, as torpord would make them.
struct TestSession {
  explicit TestSession(std::uint64_t session_id) : id(session_id) {
    key.fill(static_cast<std::uint8_t>(session_id));
    const auto make = [](Bytes bytes) {
      UniqueFd file(memfd_create("session", MFD_CLOEXEC));
      EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
      return file;
    };
    window_file = make(kWindowBytes);
    arena_file = make(kHostBytes);
    image_file = make(2 * kDeviceBytes);
    block_states_file = make(StateBytes(kDeviceBytes));
    window = *SharedMapping::Map(window_file, kWindowBytes);
    arena = *SharedMapping::Map(arena_file, kHostBytes);
    image = *SharedMapping::Map(image_file, kDeviceBytes);
    block_states = *SharedMapping::Map(block_states_file, StateBytes(kDeviceBytes));
    // Tests write to the image.
    StatesIn(block_states, kDeviceBytes).NoteUpload({0, kDeviceBytes});
  }

  void OfferTo(FakeDaemon& daemon) const {
    daemon.Offer(id, wire::SharedMemory::kWindow, window_file.get(), kWindowBytes);
    daemon.Offer(id, wire::SharedMemory::kHostArena, arena_file.get(), kHostBytes);
    daemon.Offer(id, wire::SharedMemory::kImage, image_file.get(), 2 * kDeviceBytes);
    daemon.Offer(id, wire::SharedMemory::kBlockStates, block_states_file.get(),
                 StateBytes(kDeviceBytes));
  }
  wire::CompletionPage& page() const {
    return *reinterpret_cast<wire::CompletionPage*>(window.data());
  }
  // Every session of a node has addresses of its own.
  std::uint64_t device_base() const { return kDeviceBase + id * kDeviceBytes; }
  std::uint64_t host_base() const { return kHostBase + id * kHostBytes; }

  std::uint64_t id;
  std::array<std::uint8_t, 16> key{};
  UniqueFd window_file, arena_file, image_file, block_states_file;
  SharedMapping window, arena, image, block_states;
};

}  // namespace torpor::executor
