#include "emulator/exec/codegen/comparison.h"

namespace torpor::emulator {

using llvm::Value;
using ptx::Instruction;
using ptx::Modifier;
using ptx::Type;

namespace {

using Predicate = llvm::CmpInst::Predicate;

struct Comparison {
  Modifier modifier;
  Predicate is_signed;
  Predicate is_unsigned;
  Predicate real;
};

constexpr Predicate kNone = Predicate::BAD_ICMP_PREDICATE;
constexpr Comparison kComparisons[] = {
    {Modifier::kEq, Predicate::ICMP_EQ, Predicate::ICMP_EQ, Predicate::FCMP_OEQ},
    {Modifier::kNe, Predicate::ICMP_NE, Predicate::ICMP_NE, Predicate::FCMP_ONE},
    {Modifier::kLt, Predicate::ICMP_SLT, Predicate::ICMP_ULT, Predicate::FCMP_OLT},
    {Modifier::kLe, Predicate::ICMP_SLE, Predicate::ICMP_ULE, Predicate::FCMP_OLE},
    {Modifier::kGt, Predicate::ICMP_SGT, Predicate::ICMP_UGT, Predicate::FCMP_OGT},
    {Modifier::kGe, Predicate::ICMP_SGE, Predicate::ICMP_UGE, Predicate::FCMP_OGE},
    {Modifier::kLo, Predicate::ICMP_ULT, Predicate::ICMP_ULT, kNone},
    {Modifier::kLs, Predicate::ICMP_ULE, Predicate::ICMP_ULE, kNone},
    {Modifier::kHi, Predicate::ICMP_UGT, Predicate::ICMP_UGT, kNone},
    {Modifier::kHs, Predicate::ICMP_UGE, Predicate::ICMP_UGE, kNone},
    {Modifier::kEqu, kNone, kNone, Predicate::FCMP_UEQ},
    {Modifier::kNeu, kNone, kNone, Predicate::FCMP_UNE},
    {Modifier::kLtu, kNone, kNone, Predicate::FCMP_ULT},
    {Modifier::kLeu, kNone, kNone, Predicate::FCMP_ULE},
    {Modifier::kGtu, kNone, kNone, Predicate::FCMP_UGT},
    {Modifier::kGeu, kNone, kNone, Predicate::FCMP_UGE},
    {Modifier::kNum, kNone, kNone, Predicate::FCMP_ORD},
    {Modifier::kNan, kNone, kNone, Predicate::FCMP_UNO},
};

}  // namespace

Value* CompareValues(OperandBuilder& to, const Instruction& instruction, Type type, Value* a,
                     Value* b) {
  LaneBuilder& code = to.code();
  for (const Comparison& comparison : kComparisons) {
    if (!instruction.Has(comparison.modifier)) continue;
    const bool real = a->getType()->isFPOrFPVectorTy();
    const Predicate predicate = real                  ? comparison.real
                                : ptx::IsSigned(type) ? comparison.is_signed
                                                      : comparison.is_unsigned;
    if (predicate != kNone) return code->CreateCmp(predicate, a, b);
  }
  to.Unsupported(instruction, "comparison");
  return code->CreateIsNull(code.ToInt(a));
}

}  // namespace torpor::emulator
