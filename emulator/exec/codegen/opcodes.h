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
#include "emulator/exec/codegen/builder/texture_calls.h"

// The table of all opcodes, and the functions that translate an instruction. Each appends code
// where its builders build, after OperandBuilder::Begin, and reports instructions that the emulator
// does not know by OperandBuilder::Unsupported.
namespace torpor::emulator {

using EmitValue = void (*)(OperandBuilder&, const ptx::Instruction&);
using EmitMemory = void (*)(OperandBuilder&, MemoryAccess&, const ptx::Instruction&);
using EmitLoadStore = void (*)(OperandBuilder&, MemoryAccess&, ParameterMemory&,
                               const ptx::Instruction&);
using EmitStack = void (*)(OperandBuilder&, LocalStack&, const ptx::Instruction&);
using EmitCalls = void (*)(OperandBuilder&, CallBuilder&, const ptx::Instruction&);
using EmitTextures = void (*)(OperandBuilder&, TextureCalls&, const ptx::Instruction&);
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
void EmitAddSub(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitCarry(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitMul(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitMad(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitMul24(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitDivRem(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitMinMax(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitAbsNeg(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitSad(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitDotProduct(OperandBuilder& to, const ptx::Instruction& instruction);

// bits.cc
void EmitLogic(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitShift(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitFunnelShift(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitLop3(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitCount(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitBitField(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitFindBit(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitMask(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitSignExtend(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitPermute(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitFindNth(OperandBuilder& to, const ptx::Instruction& instruction);

// simd_video.cc
void EmitVideoPair(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitVideoQuad(OperandBuilder& to, const ptx::Instruction& instruction);

// floating.cc
void EmitFloat(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitFma(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitFloatMinMax(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitSpecial(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitTestProperty(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitCopySign(OperandBuilder& to, const ptx::Instruction& instruction);

// half.cc
// False, and no code, for instructions that are no arithmetic of halves.
bool EmitHalf(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitHalfCvt(OperandBuilder& to, const ptx::Instruction& instruction);

// convert.cc, narrow_float.cc
void EmitCvt(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitMatrixFloatCvt(OperandBuilder& to, const ptx::Instruction& instruction);

// compare.cc
void EmitSetp(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitSet(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitSelp(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitSlct(OperandBuilder& to, const ptx::Instruction& instruction);

// move.cc
void EmitMov(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitCvta(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitIsSpace(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitClusterAddress(OperandBuilder& to, const ptx::Instruction& instruction);

// load_store.cc
void EmitLoad(OperandBuilder& to, MemoryAccess& memory, ParameterMemory& parameters,
              const ptx::Instruction& instruction);
void EmitStore(OperandBuilder& to, MemoryAccess& memory, ParameterMemory& parameters,
               const ptx::Instruction& instruction);

// atomic.cc
void EmitAtomic(OperandBuilder& to, MemoryAccess& memory, const ptx::Instruction& instruction);

// async_copy.cc
void EmitAsyncCopy(OperandBuilder& to, MemoryAccess& memory, const ptx::Instruction& instruction);

// mbarrier.cc: mbarrier.*, cp.async.mbarrier.arrive and cp.async.bulk.
void EmitMbarrier(OperandBuilder& to, MemoryAccess& memory, const ptx::Instruction& instruction);
void EmitCopyArrival(OperandBuilder& to, MemoryAccess& memory, const ptx::Instruction& instruction);
void EmitBulkCopy(OperandBuilder& to, MemoryAccess& memory, const ptx::Instruction& instruction);

// dynamic_stack.cc
void EmitAlloca(OperandBuilder& to, LocalStack& stack, const ptx::Instruction& instruction);
void EmitStackSave(OperandBuilder& to, LocalStack& stack, const ptx::Instruction& instruction);
void EmitStackRestore(OperandBuilder& to, LocalStack& stack, const ptx::Instruction& instruction);

// call.cc
void EmitCall(OperandBuilder& to, CallBuilder& calls, const ptx::Instruction& instruction);

// texture.cc
void EmitTexture(OperandBuilder& to, TextureCalls& textures, const ptx::Instruction& instruction);
void EmitSurface(OperandBuilder& to, TextureCalls& textures, const ptx::Instruction& instruction);
void EmitTextureQuery(OperandBuilder& to, TextureCalls& textures,
                      const ptx::Instruction& instruction);

// warp.cc
void EmitShuffle(OperandBuilder& to, CollectiveBuilder& collectives,
                 const ptx::Instruction& instruction);
void EmitVote(OperandBuilder& to, CollectiveBuilder& collectives,
              const ptx::Instruction& instruction);
void EmitReduction(OperandBuilder& to, CollectiveBuilder& collectives,
                   const ptx::Instruction& instruction);
void EmitMatch(OperandBuilder& to, CollectiveBuilder& collectives,
               const ptx::Instruction& instruction);
void EmitElect(OperandBuilder& to, CollectiveBuilder& collectives,
               const ptx::Instruction& instruction);
void EmitDeposit(OperandBuilder& to, CollectiveBuilder& collectives,
                 const ptx::Instruction& instruction);
void EmitActiveMask(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitFence(OperandBuilder& to, const ptx::Instruction& instruction);
void EmitTrap(OperandBuilder& to, const ptx::Instruction& instruction);

// barrier.cc
void EmitBarrier(OperandBuilder& to, Suspension& suspension, const ptx::Instruction& instruction);
void EmitNanosleep(OperandBuilder& to, Suspension& suspension, const ptx::Instruction& instruction);

// matrix.cc
void EmitMatrix(OperandBuilder& to, MemoryAccess& memory, FragmentMemory& fragments,
                const ptx::Instruction& instruction);

// matrix_rows.cc
void EmitMatrixRows(OperandBuilder& to, MemoryAccess& memory, const ptx::Instruction& instruction);
void EmitMatrixTranspose(OperandBuilder& to, const ptx::Instruction& instruction);

}  // namespace torpor::emulator
