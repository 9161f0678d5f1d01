#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>
#include <vector>

#include "emulator/ptx/special_register.h"
#include "emulator/ptx/type.h"

namespace torpor::ptx {

// The part of a spelling before the first dot. kUnknown keeps the rest of a module usable: the code
// generator reports the spelling when it compiles a kernel with the instruction.
enum class Opcode : std::uint8_t {
  kUnknown,
  kAbs,
  kActivemask,
  kAdd,
  kAddc,
  kAlloca,
  kAnd,
  kApplypriority,
  kAtom,
  kBar,
  kBarrier,
  kBfe,
  kBfi,
  kBfind,
  kBmsk,
  kBra,
  kBrev,
  kBrkpt,
  kBrx,
  kCall,
  kClz,
  kCnot,
  kCopysign,
  kCp,
  kConverge,  // of no PTX, as kDeposit: see collective.h
  kCos,
  kCreatepolicy,
  kCvt,
  kCvta,
  kDeposit,
  kDiscard,
  kDiv,
  kDp2a,
  kDp4a,
  kElect,
  kEx2,
  kExit,
  kFence,
  kFma,
  kFns,
  kGetctarank,
  kGriddepcontrol,
  kIsspacep,
  kLd,
  kLdmatrix,
  kLdu,
  kLg2,
  kLop3,
  kMad,
  kMad24,
  kMadc,
  kMapa,
  kMatch,
  kMax,
  kMbarrier,
  kMembar,
  kMin,
  kMma,
  kMov,
  kMovmatrix,
  kMul,
  kMul24,
  kNanosleep,
  kNeg,
  kNot,
  kOr,
  kPmevent,
  kPopc,
  kPrefetch,
  kPrefetchu,
  kPrmt,
  kRcp,
  kRed,
  kRedux,
  kRem,
  kRet,
  kRsqrt,
  kSad,
  kSelp,
  kSet,
  kSetmaxnreg,
  kSetp,
  kShf,
  kShfl,
  kShl,
  kShr,
  kSin,
  kSlct,
  kSqrt,
  kSt,
  kStackrestore,
  kStacksave,
  kStmatrix,
  kSub,
  kSubc,
  kSuld,
  kSuq,
  kSured,
  kSust,
  kSzext,
  kTanh,
  kTestp,
  kTex,
  kTld4,
  kTrap,
  kTxq,
  kVabsdiff2,
  kVabsdiff4,
  kVadd2,
  kVadd4,
  kVavrg2,
  kVavrg4,
  kVmax2,
  kVmax4,
  kVmin2,
  kVmin4,
  kVote,
  kVset2,
  kVset4,
  kVsub2,
  kVsub4,
  kWmma,
  kXor,
};

// A dotted word of a spelling, except types. A word means different things in different families
// (.lo of mul and of setp); the family's code decides.
enum class Modifier : std::uint8_t {
  // Rounding.
  kRn,
  kRz,
  kRm,
  kRp,
  kRna,
  kRni,
  kRzi,
  kRmi,
  kRpi,
  kFtz,
  kSat,
  kSatfinite,
  kApprox,
  kFull,
  kRelu,
  kXorsign,
  kNan,
  kAbs,
  // Parts of a product; also unsigned comparisons.
  kLo,
  kHi,
  kWide,
  kLs,
  kHs,
  kCc,
  // Comparisons.
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kEqu,
  kNeu,
  kLtu,
  kLeu,
  kGtu,
  kGeu,
  kNum,
  // Operators of set, atom, red, redux, bar.red and vote.
  kAnd,
  kOr,
  kXor,
  kAdd,
  kInc,
  kDec,
  kMin,
  kMax,
  kExch,
  kCas,
  kPopc,
  kAll,
  kAny,
  kUni,
  kBallot,
  kUp,
  kDown,
  kBfly,
  kIdx,
  kSync,
  kArrive,
  kRed,
  kWarp,
  kAligned,
  // Spaces, orders, scopes, cache hints.
  kGlobal,
  kShared,
  kConst,
  kLocal,
  kParam,
  kTo,
  kVolatile,
  kRelaxed,
  kAcquire,
  kRelease,
  kAcqRel,
  kSc,
  kMmio,
  kWeak,
  kCta,
  kCluster,
  kSharedCluster,  // shared::cluster; kShared holds, too
  kGpu,
  kSys,
  kGl,
  kNc,
  kCacheHint,
  kAsync,
  kCommitGroup,
  kWaitGroup,
  kWaitAll,
  kV2,
  kV4,
  kV8,
  kNoftz,
  // Of shf, bfind, bmsk, prmt, testp.
  kL,
  kR,
  kWrap,
  kClamp,
  kShiftamt,
  kF4e,
  kB4e,
  kRc8,
  kEcl,
  kEcr,
  kRc16,
  kFinite,
  kInfinite,
  kNumber,
  kNotanumber,
  kNormal,
  kSubnormal,
  // Of textures and surfaces.
  k1d,
  k2d,
  k3d,
  kA1d,
  kA2d,
  kCube,
  kAcube,
  kLevel,
  kGrad,
  kG,
  kB,
  kA,
  kP,
  kTrap,
  kZero,
  kWidth,
  kHeight,
  kDepth,
  kArraySize,
  kNumMipmapLevels,
  kNormalizedCoords,
  // Of mbarrier and of asynchronous copies.
  kMbarrier,
  kInit,
  kInval,
  kArriveDrop,
  kExpectTx,
  kCompleteTx,
  kTestWait,
  kTryWait,
  kPendingCount,
  kNoComplete,
  kNoinc,
  kParity,
  kBulk,
  kBulkGroup,
  kBytes,  // mbarrier::complete_tx::bytes
  kPrefetch,
  kWait,
  // The last operand is a cache policy; the parser drops it.
  kCachePolicy,
  // Of ldmatrix, stmatrix and movmatrix.
  kM8n8,
  kTrans,
  kX1,
  kX2,
  kX4,
  kCount,
};

inline constexpr std::uint32_t kNoIndex = 0xffffffff;

// An operand as parsed; `kind` says which members count.
struct Operand {
  enum class Kind : std::uint8_t {
    kRegister,   // `reg`, perhaps `negated`
    kInteger,    // `bits`
    kFloat,      // `bits` are an IEEE double; exact for 0f literals
    kSpecial,    // `special`, `bits` its index (envreg)
    kSymbol,     // `symbol` (+ `bits`), a variable of the module
    kFunction,   // `symbol`, a function of the module
    kLabel,      // `symbol`, an index into Function::labels
    kAddress,    // [base + bits]: base is `reg`, `symbol` or nothing; of a texture or surface
                 // `elements` are the coordinates
    kVector,     // `elements`: {a, b}, d|p, or an argument list
    kSink,       // _
    kUnresolved  // `name` is nowhere declared
  };
  Kind kind = Kind::kSink;
  bool negated = false;
  SpecialRegister special = SpecialRegister::kTidX;
  std::uint32_t reg = kNoIndex;
  std::uint32_t symbol = kNoIndex;
  std::uint64_t bits = 0;
  std::string_view name;
  std::vector<Operand> elements;
};

// One instruction. Registers, symbols and labels are indices of the module's and function's tables.
struct Instruction {
  Opcode opcode = Opcode::kUnknown;
  std::bitset<static_cast<std::size_t>(Modifier::kCount)> modifiers;
  std::vector<Type> types;         // in order of appearance
  std::uint32_t guard = kNoIndex;  // a predicate register
  bool guard_negated = false;
  bool converged = false;     // a collective operation that lanes in several branches do together
  bool ends_threads = false;  // a call from which some lanes may not return; see thread_end.h
  std::uint32_t line = 0;
  std::string_view spelling;  // "ld.global.f32", in the module's text
  std::vector<Operand> operands;

  bool Has(Modifier modifier) const { return modifiers[static_cast<std::size_t>(modifier)]; }
  Type type() const { return types.empty() ? Type::kNone : types.back(); }
  Space space() const;
  // 1, 2, 4 or 8: elements of a load, store or vector atomic.
  unsigned vector_width() const;
  bool is_barrier() const;       // waits for other warps of the block
  bool is_warp_barrier() const;  // waits for other lanes of the warp
  // Whether the access allows for concurrent accesses of other threads.
  bool is_ordered() const;
  // Whether the access may observe other threads' progress.
  bool is_synchronising() const;
  bool is_texture_or_surface_access() const;  // of a texture or surface object
};

// Fills opcode, modifiers and types from the spelling. An unknown word gives kUnknown.
void DecodeSpelling(Instruction& instruction);

}  // namespace torpor::ptx
