#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "nvidia/fatbin_format.h"

namespace torpor {

enum class FatbinError {
  kMalformed,  // CUDA_ERROR_INVALID_IMAGE
  kNoPtx,      // only machine code: CUDA_ERROR_NO_BINARY_FOR_GPU, where that does not help
  kNoCode,     // none for the device: CUDA_ERROR_NO_BINARY_FOR_GPU
};
template <typename T>
using FatbinResult = Result<T, FatbinError>;

struct FatbinEntry {
  enum class Kind : std::uint16_t { kPtx = 1, kElf = 2, kLtoIr = 8 };
  enum class Coding { kRaw, kLz4, kZstd };

  Kind kind = Kind::kPtx;
  Coding coding = Coding::kRaw;
  std::uint32_t architecture = 0;  // 75, 90, ...
  std::uint64_t flags = 0;
  std::span<const std::byte> stored;    // as it lies in the container
  std::uint64_t uncompressed_size = 0;  // 0 when raw
};

// The entries of all containers that lie one after another in `image`. Every offset is checked:
// `image` may hold anything. The spans point into `image`.
FatbinResult<std::vector<FatbinEntry>> ReadFatbin(std::span<const std::byte> image);

// The size of the first container at `data` by its own header, of which kFatbinHeaderBytes must be
// readable: how the driver, who is given no size, learns where a container in memory ends. 0 if it
// is none.
std::uint64_t FatbinSize(const void* data);

// What an entry holds: as it is stored, or decompressed into `storage`.
FatbinResult<std::span<const std::byte>> DecodeEntry(const FatbinEntry& entry,
                                                     std::string& storage);

// The PTX of an entry, decompressed, without the trailing NUL.
FatbinResult<std::string> DecodePtx(const FatbinEntry& entry);

// The PTX that suits a device of `compute_capability` (10 * major + minor) best: the newest
// architecture that is not above it.
FatbinResult<std::string> SelectPtx(std::span<const std::byte> image, unsigned compute_capability);

// Whether a device runs machine code of `architecture`: its own, and that of lesser ones of its
// major number.
constexpr bool RunsMachineCode(unsigned architecture, unsigned compute_capability) {
  return architecture <= compute_capability && architecture / 10 == compute_capability / 10;
}

// The machine code that suits a device of `compute_capability` best, as a cubin: of those
// `architectures` that the device can run, the newest. kNoCode if there is none.
FatbinResult<std::string> SelectCubin(std::span<const std::byte> image, unsigned compute_capability,
                                      std::span<const unsigned> architectures);

// The architectures (75, 90, ...) whose machine code the fatbin holds, ascending.
std::vector<unsigned> CubinArchitectures(std::span<const std::byte> image);

// Whether the fatbin is libcudadevrt, NVIDIA's runtime for kernels that launch kernels, which nvcc
// adds to what it links for some architectures, needed or not.
bool IsDeviceRuntime(std::span<const std::byte> image);

}  // namespace torpor
