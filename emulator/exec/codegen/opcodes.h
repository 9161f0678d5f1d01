#pragma once

#include <variant>

#include "emulator/exec/codegen/builder/call_builder.h"
#include "emulator/exec/codegen/builder/collective_builder.h"
#include "emulator/exec/codegen/builder/fragment_memory.h"
#include "emulator/exec/codegen/builder/local_stack.h"
#include "emulator/exec/codegen/builder/memory_access.h"
#include "emulator/exec/codegen/builder/operand_builder.h"
#include "emulator/exec/codegen/builder/parameter_memory.h"
#include "emulator/exec/codegen/builder/suspension.h"
#include "emulator/exec/codegen/builder/texture_call_builder.h"

// The table of all opcodes, and the functions that translate an instruction. A function runs after
// OperandBuilder::Begin, appends code at the builders' insertion point, and reports unsupported
// instructions by OperandBuilder::Unsupported.
namespace torpor::emulator {

using EmitValue = void (*)(OperandBuilder&, const ptx::Instruction&);
using EmitMemory = void (*)(OperandBuilder&, MemoryAccess&, const ptx::Instruction&);
using EmitLoadStore = void (*)(OperandBuilder&, MemoryAccess&, ParameterMemory&,
                               const ptx::Instruction&);
using EmitStack = void (*)(OperandBuilder&, LocalStack&, const ptx::Instruction&);
using EmitCalls = void (*)(OperandBuilder&, CallBuilder&, const ptx::Instruction&);
using EmitTextures = void (*)(OperandBuilder&, TextureCallBuilder&, const ptx::Instruction&);
using EmitCollective = void (*)(OperandBuilder&, CollectiveBuilder&, const ptx::Instruction&);
using EmitWait = void (*)(OperandBuilder&, Suspension&, const ptx::Instruction&);
using EmitFragments = void (*)(OperandBuilder&, MemoryAccess&, FragmentMemory&,
                               const ptx::Instruction&);
using Emit = std::variant<EmitValue, EmitMemory, EmitLoadStore, EmitStack, EmitCalls, EmitTextures,
                          EmitCollective, EmitWait, EmitFragments>;

// The function for an instruction; null for an unknown opcode. An f16 or bf16 instruction goes to
// EmitHalf first.
const Emit* FindEmit(const ptx::Instruction& instruction);

// No effect: hints.
void EmitNothing(OperandBuilder& to, const ptx::Instruction& instruction);

// integer.cc

// add, sub: integers, also of two 16-bit halves; .sat, .cc.
void EmitAddSub(OperandBuilder& to, const ptx::Instruction& instruction);
// addc, subc, madc: steps of arithmetic wider than a register.
void EmitCarry(OperandBuilder& to, const ptx::Instruction& instruction);
// mul: .lo, .hi, .wide.
void EmitMul(OperandBuilder& to, const ptx::Instruction& instruction);
// mad of integers: .lo, .hi, .wide, .sat, .cc.
void EmitMad(OperandBuilder& to, const ptx::Instruction& instruction);
// mul24, mad24.
void EmitMul24(OperandBuilder& to, const ptx::Instruction& instruction);
// div, rem of integers. Division by zero gives all ones.
void EmitDivRem(OperandBuilder& to, const ptx::Instruction& instruction);
// min, max of integers, also of two 16-bit halves.
void EmitMinMax(OperandBuilder& to, const ptx::Instruction& instruction);
// abs, neg of integers.
void EmitAbsNeg(OperandBuilder& to, const ptx::Instruction& instruction);
// sad d, a, b, c: |a - b| + c.
void EmitSad(OperandBuilder& to, const ptx::Instruction& instruction);
// dp4a, dp2a.
void EmitDotProduct(OperandBuilder& to, const ptx::Instruction& instruction);

// bits.cc

// and, or, xor, not, cnot.
void EmitLogic(OperandBuilder& to, const ptx::Instruction& instruction);
// shl, shr.
void EmitShift(OperandBuilder& to, const ptx::Instruction& instruction);
// shf.l, shf.r: .clamp, .wrap.
void EmitFunnelShift(OperandBuilder& to, const ptx::Instruction& instruction);
// lop3: any function of three bits, by table.
void EmitLop3(OperandBuilder& to, const ptx::Instruction& instruction);
// popc, clz, brev.
void EmitCount(OperandBuilder& to, const ptx::Instruction& instruction);
// bfe, bfi.
void EmitBitField(OperandBuilder& to, const ptx::Instruction& instruction);
// bfind: .shiftamt.
void EmitFindBit(OperandBuilder& to, const ptx::Instruction& instruction);
// bmsk: .clamp, .wrap.
void EmitMask(OperandBuilder& to, const ptx::Instruction& instruction);
// szext: .clamp, .wrap.
void EmitSignExtend(OperandBuilder& to, const ptx::Instruction& instruction);
// prmt, in all modes.
void EmitPermute(OperandBuilder& to, const ptx::Instruction& instruction);
// fns.
void EmitFindNth(OperandBuilder& to, const ptx::Instruction& instruction);

// simd_video.cc

// vadd2, vsub2, vabsdiff2, vavrg2, vmin2, vmax2, vset2.
void EmitVideoPair(OperandBuilder& to, const ptx::Instruction& instruction);
// vadd4, vsub4, vabsdiff4, vavrg4, vmin4, vmax4, vset4.
void EmitVideoQuad(OperandBuilder& to, const ptx::Instruction& instruction);

// floating.cc

// add, sub, mul, div, abs, neg of f32 and f64, with all roundings.
void EmitFloat(OperandBuilder& to, const ptx::Instruction& instruction);
// fma, and mad of f32 and f64.
void EmitFma(OperandBuilder& to, const ptx::Instruction& instruction);
// min, max of f32 and f64: .NaN, .xorsign.abs.
void EmitFloatMinMax(OperandBuilder& to, const ptx::Instruction& instruction);
// sqrt, rcp, rsqrt of f32 and f64; sin, cos, ex2, lg2, tanh of f32.
void EmitSpecial(OperandBuilder& to, const ptx::Instruction& instruction);
// testp.
void EmitTestProperty(OperandBuilder& to, const ptx::Instruction& instruction);
// copysign.
void EmitCopySign(OperandBuilder& to, const ptx::Instruction& instruction);

// half.cc

// False, and no code, for instructions that are no arithmetic of halves.
bool EmitHalf(OperandBuilder& to, const ptx::Instruction& instruction);
// cvt from or to f16 and bf16.
void EmitHalfCvt(OperandBuilder& to, const ptx::Instruction& instruction);

// convert.cc, narrow_float.cc

// cvt, of all types.
void EmitCvt(OperandBuilder& to, const ptx::Instruction& instruction);
// cvt from or to tf32 and pairs of 8-bit floats.
void EmitMatrixFloatCvt(OperandBuilder& to, const ptx::Instruction& instruction);

// compare.cc

// setp, with one destination or two.
void EmitSetp(OperandBuilder& to, const ptx::Instruction& instruction);
// set.
void EmitSet(OperandBuilder& to, const ptx::Instruction& instruction);
// selp.
void EmitSelp(OperandBuilder& to, const ptx::Instruction& instruction);
// slct.
void EmitSlct(OperandBuilder& to, const ptx::Instruction& instruction);

// move.cc

// mov, also of packed vectors.
void EmitMov(OperandBuilder& to, const ptx::Instruction& instruction);
// cvta, cvta.to.
void EmitCvta(OperandBuilder& to, const ptx::Instruction& instruction);
// isspacep.
void EmitIsSpace(OperandBuilder& to, const ptx::Instruction& instruction);
// mapa, getctarank, createpolicy. Policies have no effect.
void EmitClusterAddress(OperandBuilder& to, const ptx::Instruction& instruction);

// load_store.cc

// ld, ldu, also of parameters.
void EmitLoad(OperandBuilder& to, MemoryAccess& memory, ParameterMemory& parameters,
              const ptx::Instruction& instruction);
// st, also of parameters.
void EmitStore(OperandBuilder& to, MemoryAccess& memory, ParameterMemory& parameters,
               const ptx::Instruction& instruction);

// atomic.cc

// atom, red.
void EmitAtomic(OperandBuilder& to, MemoryAccess& memory, const ptx::Instruction& instruction);

// async_copy.cc

// cp.async, complete at once: commit and wait add no code.
void EmitAsyncCopy(OperandBuilder& to, MemoryAccess& memory, const ptx::Instruction& instruction);

// mbarrier.cc

// mbarrier.*.
void EmitMbarrier(OperandBuilder& to, MemoryAccess& memory, const ptx::Instruction& instruction);
// cp.async.mbarrier.arrive.
void EmitCopyArrival(OperandBuilder& to, MemoryAccess& memory, const ptx::Instruction& instruction);
// cp.async.bulk.
void EmitBulkCopy(OperandBuilder& to, MemoryAccess& memory, const ptx::Instruction& instruction);

// dynamic_stack.cc

// alloca.
void EmitAlloca(OperandBuilder& to, LocalStack& stack, const ptx::Instruction& instruction);
// stacksave.
void EmitStackSave(OperandBuilder& to, LocalStack& stack, const ptx::Instruction& instruction);
// stackrestore.
void EmitStackRestore(OperandBuilder& to, LocalStack& stack, const ptx::Instruction& instruction);

// call.cc

// call: device functions, function pointers, vprintf, __assertfail, malloc, free.
void EmitCall(OperandBuilder& to, CallBuilder& calls, const ptx::Instruction& instruction);

// texture.cc

// tex, tld4.
void EmitTexture(OperandBuilder& to, TextureCallBuilder& textures,
                 const ptx::Instruction& instruction);
// suld, sust, sured.
void EmitSurface(OperandBuilder& to, TextureCallBuilder& textures,
                 const ptx::Instruction& instruction);
// txq, suq.
void EmitTextureQuery(OperandBuilder& to, TextureCallBuilder& textures,
                      const ptx::Instruction& instruction);

// warp.cc

// shfl.sync.
void EmitShuffle(OperandBuilder& to, CollectiveBuilder& collectives,
                 const ptx::Instruction& instruction);
// vote.sync: .all, .any, .uni, .ballot.
void EmitVote(OperandBuilder& to, CollectiveBuilder& collectives,
              const ptx::Instruction& instruction);
// redux.sync.
void EmitReduction(OperandBuilder& to, CollectiveBuilder& collectives,
                   const ptx::Instruction& instruction);
// match.sync: .any, .all.
void EmitMatch(OperandBuilder& to, CollectiveBuilder& collectives,
               const ptx::Instruction& instruction);
// elect.sync.
void EmitElect(OperandBuilder& to, CollectiveBuilder& collectives,
               const ptx::Instruction& instruction);
// Values of lanes for a later converged operation; see ptx/collective.h.
void EmitDeposit(OperandBuilder& to, CollectiveBuilder& collectives,
                 const ptx::Instruction& instruction);
// activemask.
void EmitActiveMask(OperandBuilder& to, const ptx::Instruction& instruction);
// membar, fence.
void EmitFence(OperandBuilder& to, const ptx::Instruction& instruction);
// trap.
void EmitTrap(OperandBuilder& to, const ptx::Instruction& instruction);

// barrier.cc

// bar, barrier, barrier.cluster, bar.warp.
void EmitBarrier(OperandBuilder& to, Suspension& suspension, const ptx::Instruction& instruction);
// nanosleep: lets other warps run.
void EmitNanosleep(OperandBuilder& to, Suspension& suspension, const ptx::Instruction& instruction);

// matrix.cc

// wmma.*, mma.sync.
void EmitMatrix(OperandBuilder& to, MemoryAccess& memory, FragmentMemory& fragments,
                const ptx::Instruction& instruction);

// matrix_rows.cc

// ldmatrix, stmatrix.
void EmitMatrixRows(OperandBuilder& to, MemoryAccess& memory, const ptx::Instruction& instruction);
// movmatrix.
void EmitMatrixTranspose(OperandBuilder& to, const ptx::Instruction& instruction);

}  // namespace torpor::emulator
