#pragma once

#include <cstdint>

namespace torpor::emulator {

inline constexpr std::uint32_t kWarpLanes = 32;

// Shared memory that the system reserves for itself; cooperative_groups keeps the barriers of
// groups of several warps there.
inline constexpr std::uint32_t kReservedSharedBytes = 1024;

struct TextureLanes;
// Barriers that a block's threads name, and one more: barrier.cluster's.
inline constexpr std::uint32_t kBlockBarriers = 16;
inline constexpr std::uint32_t kClusterBarrier = kBlockBarriers;

struct WarpContext;

// What a warp does at a barrier: wait, go on at once, or wait and learn how many predicates of all
// threads hold, whether all do, whether any does.
enum class BarrierMode : std::uint32_t { kSync, kArrive, kPopc, kAnd, kOr };
// What mbarrier does; see mbarrier.h.
enum class MbarrierOperation : std::uint32_t {
  kInit,
  kInvalidate,
  kArrive,
  kDrop,
  kExpect,
  kComplete,
  kTestState,
  kTestParity
};
enum class RoundedOperation : std::uint32_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFma,
  kSqrt,
  kFromSigned,
  kFromUnsigned,
  kNarrow
};
enum class Rounding : std::uint32_t { kNearest, kZero, kDown, kUp };

// What the runtime does for generated code. Calls that find an error do not return.
struct RuntimeCalls {
  // Some lane of `mask` accesses `bytes` at an address that the generated code did not
  // recognise, or that is not a multiple of `bytes`.
  void (*check_access)(WarpContext*, std::uint32_t mask, const std::uint64_t* addresses,
                       std::uint32_t bytes);
  void (*misaligned_shared)(WarpContext*, std::uint32_t mask);
  // The next four return 0 only to resumable code: the warp must wait, so the code has to save
  // its state and return.
  // `threads` 0 means the whole block. When the warp goes on, the reduction of the kPopc, kAnd and
  // kOr modes is in barrier_result.
  std::uint32_t (*barrier)(WarpContext*, std::uint32_t id, std::uint32_t threads,
                           std::uint32_t mask, std::uint32_t predicates, std::uint32_t mode);
  // `barrier` 0 of the whole block in kSync mode, as __syncthreads has it.
  std::uint32_t (*block_barrier)(WarpContext*);
  // The warp can go on only when another one, perhaps of another block, has done something.
  std::uint32_t (*yield)(WarpContext*);
  // The warp has gone far through memory; its neighbours should follow. Of resumable code only.
  std::uint32_t (*take_turns)(WarpContext*);
  void (*trap)(WarpContext*, std::uint32_t mask);
  void (*local_overflow)(WarpContext*);
  // out[l] = op(a[l], b[l], c[l]) for 32 lanes of 64-bit slots, rounded as asked for. `bits` is
  // the width of the result's type.
  void (*rounded)(std::uint64_t* out, const std::uint64_t* a, const std::uint64_t* b,
                  const std::uint64_t* c, std::uint32_t operation, std::uint32_t rounding,
                  std::uint32_t bits);
  std::uint64_t (*clock)();
  std::uint64_t (*global_timer)();
  // vprintf and __assertfail: lane-indexed generic addresses.
  void (*print)(WarpContext*, std::uint32_t mask, const std::uint64_t* formats,
                const std::uint64_t* arguments, std::uint32_t* results);
  // malloc and free of the lanes of `mask`: sizes in, addresses out (0: no memory).
  void (*allocate)(WarpContext*, std::uint32_t mask, const std::uint64_t* sizes,
                   std::uint64_t* addresses);
  void (*release)(WarpContext*, std::uint32_t mask, const std::uint64_t* addresses);
  void (*assert_fail)(WarpContext*, std::uint32_t mask, const std::uint64_t* messages,
                      const std::uint64_t* files, const std::uint64_t* lines,
                      const std::uint64_t* functions);
  // See texture_instruction.h.
  void (*texture)(WarpContext*, std::uint32_t mask, TextureLanes* lanes, std::uint64_t instruction);
  void (*surface)(WarpContext*, std::uint32_t mask, TextureLanes* lanes, std::uint64_t instruction);
  void (*texture_query)(WarpContext*, std::uint32_t mask, TextureLanes* lanes, std::uint64_t query);
  // For each lane of `mask` in turn. Results are the words before, or whether a phase has ended.
  void (*mbarrier)(WarpContext*, std::uint32_t mask, std::uint32_t operation,
                   const std::uint64_t* addresses, const std::uint64_t* arguments,
                   std::uint64_t* results);
  // cp.async.bulk of the lanes of `mask`; lane-indexed generic addresses and lengths.
  void (*bulk_copy)(WarpContext*, std::uint32_t mask, const std::uint64_t* to,
                    const std::uint64_t* from, const std::uint64_t* bytes);
  // Between a fragment (register after register, 32 lanes each) and `lines` lines of memory,
  // `stride` bytes apart. Not 0: elements are so large, and the fragment's lines are the memory's
  // columns. A load repeats what it has read until it has written `copies` of it.
  void (*load_tile)(WarpContext*, std::uint64_t address, std::uint64_t stride,
                    std::uint8_t* fragment, std::uint32_t lines, std::uint32_t line_bytes,
                    std::uint32_t transposed_bytes, std::uint32_t copies);
  void (*store_tile)(WarpContext*, std::uint64_t address, std::uint64_t stride,
                     const std::uint8_t* fragment, std::uint32_t lines, std::uint32_t line_bytes,
                     std::uint32_t transposed_bytes, std::uint32_t copies);
};

// What a warp knows. Generated code reads it by offset, and takes all fields before `local` for
// invariant: `ctaid` and `multiprocessor` change between blocks, but each block is a call of its
// own, which the compiler of the code does not see together with another.
struct WarpContext {
  const RuntimeCalls* calls = nullptr;
  const std::uint8_t* parameters = nullptr;
  const std::uint64_t* symbols = nullptr;  // addresses of the module's variables
  std::uint8_t* shared = nullptr;
  std::uint8_t* local_end = nullptr;  // of the warp's stack of local memory
  std::uint64_t window_begin = 0;
  std::uint64_t window_bytes = 0;
  std::uint64_t arena_begin = 0;
  std::uint64_t arena_bytes = 0;
  const std::uint32_t* lane_tids = nullptr;  // x[32], y[32], z[32]
  std::uint64_t grid_id = 0;
  // Zeroed memory through which a cooperative grid synchronises (%envreg1:%envreg2); 0 for others.
  std::uint64_t grid_workspace = 0;
  std::uint32_t ctaid[3] = {};
  std::uint32_t nctaid[3] = {};
  std::uint32_t ntid[3] = {};
  std::uint32_t mask = 0;  // lanes that exist
  std::uint32_t warp = 0;
  std::uint32_t warps = 0;
  std::uint32_t dynamic_shared_bytes = 0;
  std::uint32_t total_shared_bytes = 0;
  std::uint32_t reserved_shared_offset = 0;  // of kReservedSharedBytes behind all else
  std::uint32_t multiprocessor = 0;
  std::uint32_t multiprocessors = 0;
  std::uint8_t* saved_state = nullptr;  // KernelCode::saved_bytes that resumable code may write

  std::uint8_t* local = nullptr;     // free part of the stack of local memory
  std::uint32_t resume_point = 0;    // where resumable code goes on; 0: at its beginning
  std::uint32_t barrier_result = 0;  // count of predicates << 1 | whether all held
};

// Runs a warp of a block to its end, then returns 0. Resumable code (KernelLayout::resumable) may
// return 1 before: the warp waits; calling it again goes on.
using KernelEntry = std::uint32_t (*)(WarpContext*);

inline constexpr std::uint64_t kSavedStateAlignment = 64;

// What generated code tells of itself; it holds one of these.
struct CodeTraits {
  std::uint64_t saved_bytes = 0;  // of a warp that waits; a multiple of kSavedStateAlignment
  std::uint64_t scatters = 0;     // not 0: lanes of a warp write to global memory apart
};

inline constexpr char kEntrySymbol[] = "torpor_kernel";   // a KernelEntry
inline constexpr char kTraitsSymbol[] = "torpor_traits";  // a CodeTraits

struct KernelCode {
  KernelEntry entry = nullptr;
  CodeTraits traits;
};

}  // namespace torpor::emulator
