#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "emulator/exec/interface/device_memory.h"
#include "emulator/exec/interface/exec_error.h"
#include "emulator/exec/interface/launch_config.h"

// The seam between the two halves of the emulator: `exec` compiles and runs kernels, `driver`
// owns devices, memory and streams.
namespace torpor::emulator {

struct KernelParameter {
  std::uint32_t offset = 0;  // in the packed parameter buffer
  std::uint32_t size = 0;
};

struct KernelInfo {
  std::string name;
  std::vector<KernelParameter> parameters = {};
  std::uint32_t parameter_bytes = 0;
  Bytes static_shared_bytes = 0;
  Bytes local_bytes = 0;
  Bytes constant_bytes = 0;
  std::uint32_t max_threads_per_block = kMaxThreadsPerBlock;  // .maxntid, else the device's limit
  // The size of clusters given at compile time, in blocks; 0x0x0: none given.
  Dim3 cluster = {0, 0, 0};
  bool needs_cluster = false;      // launches must name the size
  std::uint32_t registers = 32;    // a plausible figure for cuFuncGetAttribute
  std::uint32_t ptx_version = 90;  // 10 * major + minor of .target
  bool prints = false;             // calls printf; of machine code: the module does
  bool allocates = false;          // calls malloc; likewise
};

// Checks `config` against the limits of kernel and device: kInvalidLaunch, kInvalidCluster or
// kTooManyThreads.
// Launch does the same check.
ExecResult<void> CheckLaunch(const KernelInfo& kernel, const LaunchConfig& config,
                             const DeviceTraits& traits);

// The size of the clusters of a launch, in blocks: as `config` says, or the kernel, or 1x1x1.
Dim3 ClusterOf(const KernelInfo& kernel, const LaunchConfig& config);

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

// The kernels and variables of a PTX translation unit, or of several linked units, on one device.
// Load parses the PTX; a kernel is compiled at the first launch (or Preload), and the machine code
// is cached on disk by content, options and CPU, in $TORPOR_EMULATOR_CACHE_DIR (default
// ~/.cache/torpor/ptx). Thread-safe. No kernel may run when a program is destroyed.
class Program {
 public:
  virtual ~Program() = default;

  // `memory` must outlive the program.
  static ExecResult<std::unique_ptr<Program>> Load(std::string_view ptx, DeviceMemory& memory,
                                                   const DeviceTraits& traits);

  static ExecResult<std::unique_ptr<Program>> Load(std::span<const PtxPart> parts,
                                                   DeviceMemory& memory,
                                                   const DeviceTraits& traits);

  // Loads kernels that are not PTX yet; each is translated and parsed when first compiled.
  static ExecResult<std::unique_ptr<Program>> Load(std::shared_ptr<const KernelSource> source,
                                                   DeviceMemory& memory,
                                                   const DeviceTraits& traits);

  virtual std::vector<KernelInfo> kernels() const = 0;
  virtual const KernelInfo* FindKernel(std::string_view name) const = 0;
  virtual const std::vector<GlobalVariable>& variables() const = 0;

  // Compiles `kernel` now, for blocks of the shape of `block`. An unknown instruction is
  // kUnsupported here or at Launch, never at Load, so that the other kernels of a module stay
  // usable.
  virtual ExecResult<void> Preload(std::string_view kernel, const Dim3& block) = 0;

  // Runs the whole grid and returns after the last block. Runs on the calling thread, and on other
  // cores if the grid is worth waking helpers. May be called from several threads at once. After
  // kIllegalAddress, kMisalignedAddress or kTrap the remaining blocks are abandoned; the message
  // names kernel, block, thread and address.
  virtual ExecResult<void> Launch(std::string_view kernel, const LaunchConfig& config) = 0;
};

}  // namespace torpor::emulator
