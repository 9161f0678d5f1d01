#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

// The seam between the two halves of the emulator: `exec` compiles and runs kernels, `driver`
// owns devices, memory and streams.
namespace torpor::emulator {

enum class ExecError {
  kInvalidPtx,      // malformed PTX, or parts that do not link: CUDA_ERROR_INVALID_PTX
  kUnsupported,     // an instruction or directive the emulator does not know; the message names it
  kNotFound,        // no such kernel or variable
  kInvalidLaunch,   // block too large, too much shared memory, ...
  kTooManyThreads,  // for this kernel: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
  kIllegalAddress,  // CUDA_ERROR_ILLEGAL_ADDRESS
  kMisalignedAddress,  // CUDA_ERROR_MISALIGNED_ADDRESS
  kTrap,               // CUDA_ERROR_LAUNCH_FAILED
  kAssert,             // a failed device assert: CUDA_ERROR_ASSERT
  kOutOfMemory,
};

template <typename T>
using ExecResult = Result<T, ExecError>;

// Device memory as kernels see it: device addresses are host addresses of this process inside
// one window; pages that back no allocation are inaccessible, so that a stray access inside the
// window faults and exec turns the fault into kIllegalAddress. Addresses outside the window are
// legal only where `IsAccessible` says so (registered host memory).
// Implemented by driver; called by kernels from any thread.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // The window, the same for the whole life of the process.
  virtual std::uint64_t window_begin() const = 0;
  virtual std::uint64_t window_end() const = 0;

  // Slow path: whether [address, address + size) outside the window may be accessed.
  virtual bool IsAccessible(std::uint64_t address, Bytes size) const = 0;

  // Memory for a module's global and constant variables, zeroed, 256-byte aligned, inside the
  // window. Freed by Free.
  virtual ExecResult<std::uint64_t> Allocate(Bytes size) = 0;
  virtual void Free(std::uint64_t address) = 0;
};

struct Dim3 {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;
};

inline constexpr Dim3 kMaxBlock = {1024, 1024, 64};
inline constexpr Dim3 kMaxGrid = {0x7fffffff, 65535, 65535};
inline constexpr std::uint32_t kMaxThreadsPerBlock = 1024;

struct KernelParameter {
  std::uint32_t offset = 0;  // in the packed parameter buffer
  std::uint32_t size = 0;
};

struct KernelInfo {
  std::string name;
  std::vector<KernelParameter> parameters;
  std::uint32_t parameter_bytes = 0;
  Bytes static_shared_bytes = 0;
  Bytes local_bytes = 0;
  Bytes constant_bytes = 0;
  std::uint32_t max_threads_per_block = kMaxThreadsPerBlock;  // .maxntid, else the device's limit
  std::uint32_t registers = 32;    // a plausible figure for cuFuncGetAttribute
  std::uint32_t ptx_version = 90;  // 10 * major + minor of .target
};

struct LaunchConfig {
  Dim3 grid;
  Dim3 block;
  Bytes dynamic_shared_bytes = 0;
  bool cooperative = false;
  const void* parameters =
      nullptr;  // KernelInfo::parameter_bytes bytes; read before Launch returns
};

// What a running kernel sees of its device.
struct DeviceTraits {
  std::uint32_t multiprocessors = 16;
  std::uint32_t compute_capability = 120;  // 10 * major + minor
  Bytes shared_bytes_per_block = 99 * kKiB;
};

// Whether `kernel` can run so: kInvalidLaunch or kTooManyThreads. Launch refuses what this does.
ExecResult<void> CheckLaunch(const KernelInfo& kernel, const LaunchConfig& config,
                             const DeviceTraits& traits);

struct GlobalVariable {
  std::string name;
  std::uint64_t address = 0;
  Bytes size = 0;
  bool constant = false;
};

// A translation unit of relocatable device code.
struct PtxPart {
  std::string name;  // for messages
  std::string text;
};

class KernelSource;

// Whether the parts make a program. Nothing is loaded.
ExecResult<void> CheckLink(std::span<const PtxPart> parts);

// One PTX translation unit, or several linked ones, loaded on one device: its kernels and its
// variables. Parsing happens in Load; a kernel is compiled at its first launch (or Preload) and the
// machine code is cached on disk by content, options and CPU, in $TORPOR_EMULATOR_CACHE_DIR
// (default
// ~/.cache/torpor/ptx). Thread-safe.
class Program {
 public:
  virtual ~Program() = default;

  // `memory` must outlive the program.
  static ExecResult<std::unique_ptr<Program>> Load(std::string_view ptx, DeviceMemory& memory,
                                                   const DeviceTraits& traits);

  static ExecResult<std::unique_ptr<Program>> Load(std::span<const PtxPart> parts,
                                                   DeviceMemory& memory,
                                                   const DeviceTraits& traits);

  // One whose kernels are not PTX yet: each is translated and parsed when it is first compiled.
  static ExecResult<std::unique_ptr<Program>> Load(std::shared_ptr<const KernelSource> source,
                                                   DeviceMemory& memory,
                                                   const DeviceTraits& traits);

  virtual std::vector<KernelInfo> kernels() const = 0;
  virtual const KernelInfo* FindKernel(std::string_view name) const = 0;
  virtual const std::vector<GlobalVariable>& variables() const = 0;

  // Compiles `kernel` now, for blocks of the shape of `block`. An instruction that the emulator
  // does not know is kUnsupported here or at Launch, never at Load, so that a module's other
  // kernels stay usable.
  virtual ExecResult<void> Preload(std::string_view kernel, const Dim3& block) = 0;

  // Runs the whole grid and returns when it is done: on the calling thread, and on the other cores
  // where that is worth waking them.
  // May be called from several threads at once. After kIllegalAddress, kMisalignedAddress or
  // kTrap the remaining blocks are abandoned; the message names kernel, block, thread, address.
  virtual ExecResult<void> Launch(std::string_view kernel, const LaunchConfig& config) = 0;
};

}  // namespace torpor::emulator
