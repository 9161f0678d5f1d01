#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "nvidia/fatbin_format.h"

namespace torpor {

// Comments name the driver's answer.
enum class FatbinError {
  kMalformed,  // CUDA_ERROR_INVALID_IMAGE
  kNoPtx,      // only machine code: CUDA_ERROR_NO_BINARY_FOR_GPU, where that does not help
  kNoCode,     // none for the device: CUDA_ERROR_NO_BINARY_FOR_GPU
};
template <typename T>
using FatbinResult = Result<T, FatbinError>;

// One piece of PTX or machine code in a container.
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

// Returns the entries of all containers in `fatbin`, which follow each other. Safe on hostile
// bytes; the spans point into `fatbin`.
FatbinResult<std::vector<FatbinEntry>> ReadFatbin(std::span<const std::byte> fatbin);

// Returns the size of the container at `data` by its own header, for callers who only have the
// address, as the driver does. kFatbinHeaderBytes must be readable. Returns 0 for other data.
std::uint64_t FatbinSize(const void* data);

// Returns the content of an entry: the stored bytes, or the bytes decompressed into `storage`.
// Fails with kMalformed for damaged or oversized content.
FatbinResult<std::span<const std::byte>> DecodeEntry(const FatbinEntry& entry,
                                                     std::string& storage);

// The PTX of an entry, decompressed, without the trailing NUL.
FatbinResult<std::string> DecodePtx(const FatbinEntry& entry);

// Returns the PTX that suits a device of `compute_capability` (10 * major + minor) best: the newest
// architecture up to the device's.
FatbinResult<std::string> SelectPtx(std::span<const std::byte> fatbin, unsigned compute_capability);

// Whether a device runs machine code of `architecture`: an equal or lesser architecture with the
// same major number.
constexpr bool RunsMachineCode(unsigned architecture, unsigned compute_capability) {
  return architecture <= compute_capability && architecture / 10 == compute_capability / 10;
}

// Returns the cubin that suits a device of `compute_capability` best: the newest of `architectures`
// that the device can run. Fails with kNoCode if there is no such cubin.
FatbinResult<std::string> SelectCubin(std::span<const std::byte> fatbin,
                                      unsigned compute_capability,
                                      std::span<const unsigned> architectures);

// Returns the architectures (75, 90, ...) of the fatbin's machine code, ascending.
std::vector<unsigned> CubinArchitectures(std::span<const std::byte> fatbin);

// Whether the fatbin is libcudadevrt, NVIDIA's runtime for kernels that launch kernels. For some
// architectures nvcc links libcudadevrt whether needed or not.
bool IsDeviceRuntime(std::span<const std::byte> fatbin);

}  // namespace torpor
