#pragma once

#include "base/units.h"
#include "server/settings/words.h"

// Ways of using a GPU (docs/memory.md, docs/swapping.md).
namespace torpor::server {

// How the GPU addresses a function's memory.
enum class AddressMode {
  kMap,        // at the client's own addresses
  kTranslate,  // anywhere: calls translate the client's addresses
};
template <>
inline constexpr auto kWordsOf<AddressMode> = std::to_array<Word<AddressMode>>(
    {{AddressMode::kMap, "map"}, {AddressMode::kTranslate, "translate"}});

// How much of a swap-in must have arrived before the function's work may begin.
enum class SwapPipeline {
  kNone,       // the whole image
  kParameter,  // the allocations that the work uses, each copied and waited for alone
  kGroup,      // likewise, but copied in groups of about swap_group_bytes
};
template <>
inline constexpr auto kWordsOf<SwapPipeline> =
    std::to_array<Word<SwapPipeline>>({{SwapPipeline::kNone, "none"},
                                       {SwapPipeline::kParameter, "parameter"},
                                       {SwapPipeline::kGroup, "group"}});

// What a kernel with a pointer into an allocation waits for before the kernel runs.
enum class SwapWait {
  kAllocation,  // the whole allocation, since a pointer does not bound what the kernel reads
  kRange,       // the group at the pointer: the paper's rule, wrong for kernels that reach further
};
template <>
inline constexpr auto kWordsOf<SwapWait> = std::to_array<Word<SwapWait>>(
    {{SwapWait::kAllocation, "allocation"}, {SwapWait::kRange, "range"}});

// How functions reach an executor.
enum class Transport {
  kAuto,   // by rings in shared memory, or by gRPC
  kGrpc,   // by gRPC only
  kRings,  // by rings only
};
template <>
inline constexpr auto kWordsOf<Transport> = std::to_array<Word<Transport>>(
    {{Transport::kAuto, "auto"}, {Transport::kGrpc, "grpc"}, {Transport::kRings, "rings"}});

// Whether images in host memory lie in huge pages.
enum class HugePages {
  kAuto,  // where the system gives shared memory any
  kOff,
};
template <>
inline constexpr auto kWordsOf<HugePages> =
    std::to_array<Word<HugePages>>({{HugePages::kAuto, "auto"}, {HugePages::kOff, "off"}});

// Whether an executor keeps to the CPUs of its GPU's NUMA node.
enum class NumaBinding {
  kAuto,  // where the system knows the node
  kOff,
};
template <>
inline constexpr auto kWordsOf<NumaBinding> =
    std::to_array<Word<NumaBinding>>({{NumaBinding::kAuto, "auto"}, {NumaBinding::kOff, "off"}});

// What becomes of system calls that an executor has no need for.
enum class Seccomp {
  kAuto,     // as kEnforce with the emulator, as kLog with NVIDIA's driver
  kEnforce,  // they fail
  kLog,      // the kernel logs them
  kOff,      // nothing
};
template <>
inline constexpr auto kWordsOf<Seccomp> = std::to_array<Word<Seccomp>>({{Seccomp::kAuto, "auto"},
                                                                        {Seccomp::kEnforce,
                                                                         "enforce"},
                                                                        {Seccomp::kLog, "log"},
                                                                        {Seccomp::kOff, "off"}});

// Minimum size of a group in which images are swapped in.
inline constexpr Bytes kMinGroupBytes = 64 * kKiB;

}  // namespace torpor::server
