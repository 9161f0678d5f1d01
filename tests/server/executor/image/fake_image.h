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
  return memory::LayoutOfBlockStates(image_bytes, wire::kImageBlockBytes).total;
}

inline memory::BlockStates StatesIn(std::uint8_t* records, std::uint8_t* checkpoint,
                                    Bytes image_bytes) {
  return {{reinterpret_cast<memory::BlockRecord*>(records),
           memory::LayoutOfBlockStates(image_bytes, wire::kImageBlockBytes).records /
               sizeof(memory::BlockRecord)},
          *reinterpret_cast<memory::CheckpointRecord*>(checkpoint),
          wire::kImageBlockBytes};
}

// Of a file of block states that is mapped whole.
inline memory::BlockStates StatesIn(const SharedMapping& file, Bytes image_bytes) {
  const Bytes checkpoint =
      memory::LayoutOfBlockStates(image_bytes, wire::kImageBlockBytes).checkpoint;
  return StatesIn(file.data(), file.data() + checkpoint, image_bytes);
}

inline memory::BlockStates StatesOf(const ImageFiles& files) {
  return StatesIn(files.blocks.records.data(), files.blocks.checkpoint.data(), files.image.bytes());
}

inline std::span<memory::BlockRecord> RecordsOf(const ImageFiles& files) {
  return {reinterpret_cast<memory::BlockRecord*>(files.blocks.records.data()),
          files.blocks.records.bytes() / sizeof(memory::BlockRecord)};
}

inline ImageFiles NewUnwrittenFiles(Bytes bytes) {
  const memory::BlockStatesLayout layout =
      memory::LayoutOfBlockStates(bytes, wire::kImageBlockBytes);
  return {NewFile(bytes),
          NewFile(bytes),
          {NewFile(layout.records), NewFile(memory::kCheckpointPageBytes)},
          nullptr};
}

// Of an image that counts as uploaded, so that a test may write to it.
inline ImageFiles NewImageFiles(Bytes bytes) {
  ImageFiles files = NewUnwrittenFiles(bytes);
  StatesOf(files).NoteUpload({0, bytes});
  return files;
}

// The bytes of an image in host memory, wherever their homes are.
class HostBytes {
 public:
  // Valid as long as the mappings of `files`.
  explicit HostBytes(const ImageFiles& files)
      : own_(files.image.data()),
        annex_(files.annex.data()),
        tenant_(files.tenant ? files.tenant->mapping().data() : nullptr),
        states_(StatesOf(files)) {}

  std::uint8_t& operator[](Bytes offset) const {
    const std::size_t block = offset / wire::kImageBlockBytes;
    const memory::BlockHome home = states_.home(block);
    std::uint8_t* const file = memory::IsTenantHome(home)  ? tenant_
                               : memory::IsAnnexHome(home) ? annex_
                                                           : own_;
    return file[memory::PlaceOfHome(block, home) * wire::kImageBlockBytes +
                offset % wire::kImageBlockBytes];
  }

 private:
  std::uint8_t* own_;
  std::uint8_t* annex_;
  std::uint8_t* tenant_;
  memory::BlockStates states_;
};

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
