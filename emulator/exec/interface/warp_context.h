#pragma once

#include <cstdint>

namespace torpor::emulator {

inline constexpr std::uint32_t kWarpLanes = 32;

// Shared memory that the system reserves for itself; cooperative_groups keeps the barriers of
// groups of several warps there.
inline constexpr std::uint32_t kReservedSharedBytes = 1024;

struct TextureLanes;
// Named barriers of a block, and the number that stands for barrier.cluster.
inline constexpr std::uint32_t kBlockBarriers = 16;
inline constexpr std::uint32_t kClusterBarrier = 0xffffffff;

struct WarpContext;

// Action of a warp at a barrier: wait, go on at once, or wait for a reduction over the predicates
// of all threads (number of true predicates, all, any).
enum class BarrierMode : std::uint32_t { kSync, kArrive, kPopc, kAnd, kOr };
// Operations on an mbarrier; see mbarrier.h.
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

// Functions of the runtime for generated code. A call that finds an error ends the block and does
// not return.
struct RuntimeCalls {
  // Checks accesses of the lanes of `mask` to `bytes` each, after the generated code found an
  // address outside the known ranges or not a multiple of `bytes`.
  void (*check_access)(WarpContext*, std::uint32_t mask, const std::uint64_t* addresses,
                       std::uint32_t bytes);
  void (*misaligned_shared)(WarpContext*, std::uint32_t mask);
  // The next four return 0 only to resumable code: the warp must wait, so the code has to save the
  // state and return. `threads` 0 means the whole block. When the warp goes on, barrier_result
  // holds the reduction of modes kPopc, kAnd and kOr. At kClusterBarrier, modes are kArrive, and
  // kSync for waiting only.
  std::uint32_t (*barrier)(WarpContext*, std::uint32_t id, std::uint32_t threads,
                           std::uint32_t mask, std::uint32_t predicates, std::uint32_t mode);
  // Same as `barrier` 0 of the whole block in mode kSync: __syncthreads.
  std::uint32_t (*block_barrier)(WarpContext*);
  // Lets other warps run; the warp spins until another warp, perhaps of another block, has done
  // something.
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
  // Copies between a fragment (register after register, 32 lanes each) and `lines` lines of memory,
  // `stride` bytes apart. If `transposed_bytes` is not 0, elements have as many bytes, and lines of
  // the fragment are columns of memory. A load writes the fragment `copies` times over.
  void (*load_tile)(WarpContext*, std::uint64_t address, std::uint64_t stride,
                    std::uint8_t* fragment, std::uint32_t lines, std::uint32_t line_bytes,
                    std::uint32_t transposed_bytes, std::uint32_t copies);
  void (*store_tile)(WarpContext*, std::uint64_t address, std::uint64_t stride,
                     const std::uint8_t* fragment, std::uint32_t lines, std::uint32_t line_bytes,
                     std::uint32_t transposed_bytes, std::uint32_t copies);
};

// State of a warp that generated code reads by offset. Owned by the runtime; one thread at a time
// uses a context. Generated code takes all fields before `local` for invariant: `ctaid`,
// `clusterid` and `multiprocessor` change between blocks only, and each block is a separate call of
// the code.
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
  // Zeroed memory through which a cooperative grid synchronises (%envreg1:%envreg2); else 0.
  std::uint64_t grid_workspace = 0;
  std::uint32_t ctaid[3] = {};
  std::uint32_t nctaid[3] = {};
  std::uint32_t ntid[3] = {};
  std::uint32_t clusterid[3] = {};
  std::uint32_t nclusterid[3] = {};
  std::uint32_t cluster_ctaid[3] = {};
  std::uint32_t cluster_nctaid[3] = {1, 1, 1};
  std::uint32_t cluster_rank = 0;
  std::uint32_t cluster_blocks = 1;
  std::uint32_t is_explicit_cluster = 0;
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

// Entry of a kernel's code: runs a warp of a block to the end and returns 0. Resumable code
// (KernelLayout::resumable) returns 1 where the warp has to wait; the next call with the same
// context goes on there.
using KernelEntry = std::uint32_t (*)(WarpContext*);

inline constexpr std::uint64_t kSavedStateAlignment = 64;

// Properties of generated code, stored in the object file as kTraitsSymbol.
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
