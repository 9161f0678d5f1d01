#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <span>
#include <vector>

#include "server/executor/image/device_image.h"

// What a DeviceImage needs, where the GPU's memory is FakeCuda's, that is the host's.
namespace torpor::executor {

// Addresses for sessions, where both AddressSanitizer and ThreadSanitizer allow mappings.
inline constexpr AddressRange kFakeAddresses = {0x5500'0000'0000, 0x1000'0000'0000};

inline SharedMapping NewFile(Bytes bytes) {
  const UniqueFd file(memfd_create("file", MFD_CLOEXEC));
  EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
  return *SharedMapping::Map(file, bytes);
}

inline constexpr Bytes StateBytes(Bytes image_bytes) {
  return memory::BlockStates::StatesOf({0, image_bytes}, wire::kImageBlockBytes).end;
}

inline memory::BlockStates StatesIn(const SharedMapping& file) {
  return {{reinterpret_cast<std::uint64_t*>(file.data()),
           file.bytes() / memory::BlockStates::kBytesPerBlock},
          wire::kImageBlockBytes};
}

// Of an image that counts as uploaded, so that a test may write to it.
inline ImageFiles NewImageFiles(Bytes bytes) {
  ImageFiles files{NewFile(bytes), NewFile(StateBytes(bytes)), NewFile(wire::kCheckpointFileBytes)};
  StatesIn(files.block_states).NoteUpload({0, bytes});
  return files;
}

// FNV-1a over the words.
class HostBlockHasher final : public BlockHasher {
 public:
  absl::StatusOr<std::vector<std::uint64_t>> Hash(std::span<const BlockRun> runs,
                                                  CUstream) override {
    std::vector<std::uint64_t> hashes;
    for (const BlockRun& run : runs) {
      for (std::size_t i = 0; i < run.blocks; ++i) {
        hashes.push_back(HashBlock(
            reinterpret_cast<const std::uint64_t*>(run.address + i * wire::kImageBlockBytes)));
      }
    }
    return hashes;
  }
  std::uint64_t zero_hash() const override {
    static const std::vector<std::uint64_t> kZeros(wire::kImageBlockBytes / sizeof(std::uint64_t));
    return HashBlock(kZeros.data());
  }

 private:
  static std::uint64_t HashBlock(const std::uint64_t* words) {
    std::uint64_t hash = 0xCBF29CE484222325;
    for (std::size_t i = 0; i < wire::kImageBlockBytes / sizeof(*words); ++i) {
      hash = (hash ^ words[i]) * 0x100000001B3;
    }
    return hash;
  }
};

}  // namespace torpor::executor
