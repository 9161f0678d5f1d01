// Calls of device functions, printf and assert.
#include <algorithm>
#include <cstddef>

#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

// call {(results),} callee {, (arguments)} {, prototype}
void FunctionEmitter::EmitCall(const Instruction& instruction) {
  const auto is_callee = [](const Operand& operand) {
    return operand.kind != Operand::Kind::kVector;
  };
  const auto callee =
      std::find_if(instruction.operands.begin(), instruction.operands.end(), is_callee);
  if (callee == instruction.operands.end()) return Unsupported(instruction, "operands");
  std::vector<Value*> memory;
  std::size_t results = 0;
  for (auto list : {instruction.operands.begin(), callee + 1}) {
    if (list == instruction.operands.end() || list == callee || is_callee(*list)) continue;
    for (const Operand& argument : list->elements) {
      if (argument.kind != Operand::Kind::kSymbol) return Unsupported(instruction, "argument");
      memory.push_back(ParameterMemory(argument.symbol));
    }
    if (list < callee) results = memory.size();
  }
  Value* mask = ActiveMask(instruction);
  if (callee->kind == Operand::Kind::kRegister) {
    IfAny(mask, [&] { CallIndirect(instruction, *callee, memory, results); });
    return;
  }
  if (callee->kind != Operand::Kind::kFunction) {
    return Unsupported(instruction, std::string(callee->name));
  }
  const ptx::Function& function = module_.functions[callee->symbol];
  if (function.name == "vprintf") return EmitPrint(instruction, memory);
  if (function.name == "__assertfail") return EmitAssertFail(instruction, memory);
  if (!function.has_body && function.name == "malloc") return EmitHeap(instruction, memory, true);
  if (!function.has_body && function.name == "free") return EmitHeap(instruction, memory, false);
  const bool matches = function.has_body && !function.is_kernel &&
                       function.results.size() + function.parameters.size() == memory.size();
  if (!matches) return Unsupported(instruction, std::string(function.name));
  IfAny(mask, [&] { CallFunction(callee->symbol, memory, mask); });
}

void FunctionEmitter::CallFunction(std::uint32_t function, const std::vector<Value*>& arguments,
                                   Value* mask) {
  std::vector<Value*> all = {context_, MaskBits(mask)};
  all.insert(all.end(), arguments.begin(), arguments.end());
  b_.CreateCall(unit_.FunctionOf(function), all);
}

// Lanes may call different functions: one after the other, all lanes of a function at once.
void FunctionEmitter::CallIndirect(const Instruction& instruction, const Operand& callee,
                                   const std::vector<Value*>& memory, std::size_t results) {
  Value* addresses = ReadVector(callee, Type::kU64);
  llvm::BasicBlock* loop = NewBlock("indirect");
  llvm::BasicBlock* next = NewBlock("indirect_next");
  llvm::BasicBlock* wild = NewBlock("wild_call");
  llvm::BasicBlock* after = NewBlock("indirect_done");
  Value* all = MaskBits(ActiveMask(instruction));
  llvm::BasicBlock* before = b_.GetInsertBlock();
  b_.CreateBr(loop);
  b_.SetInsertPoint(loop);
  llvm::PHINode* left = b_.CreatePHI(b_.getInt32Ty(), 2);
  left->addIncoming(all, before);
  Value* lane = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, left, b_.getTrue());
  Value* address = b_.CreateExtractElement(addresses, lane);
  Value* same = b_.CreateAnd(BitsToMask(left), b_.CreateICmpEQ(addresses, Spread(address, 0)));
  llvm::SwitchInst* choice = b_.CreateSwitch(address, wild);
  for (const std::uint32_t function : unit_.layout().address_taken) {
    const ptx::Function& candidate = module_.functions[function];
    if (candidate.results.size() != results ||
        candidate.parameters.size() != memory.size() - results) {
      continue;
    }
    llvm::BasicBlock* target = NewBlock("target");
    choice->addCase(b_.getInt64(FunctionAddress(function)), target);
    b_.SetInsertPoint(target);
    CallFunction(function, memory, same);
    b_.CreateBr(next);
  }
  b_.SetInsertPoint(wild);
  CallRuntime(offsetof(RuntimeCalls, trap), b_.getVoidTy(), {context_, MaskBits(same)});
  b_.CreateBr(next);
  b_.SetInsertPoint(next);
  Value* rest = b_.CreateAnd(left, b_.CreateNot(MaskBits(same)));
  left->addIncoming(rest, next);
  b_.CreateCondBr(b_.CreateICmpNE(rest, b_.getInt32(0)), loop, after);
  b_.SetInsertPoint(after);
}

void FunctionEmitter::EmitPrint(const Instruction& instruction, const std::vector<Value*>& memory) {
  if (memory.size() != 3) return Unsupported(instruction, "vprintf");
  Value* mask = ActiveMask(instruction);
  IfAny(mask, [&] {
    Value* formats = Spill(LoadParameter(memory[1], 0, 8));
    Value* arguments = Spill(LoadParameter(memory[2], 0, 8));
    Value* results = LaneArray(b_.getInt32Ty());
    CallRuntime(offsetof(RuntimeCalls, print), b_.getVoidTy(),
                {context_, MaskBits(mask), formats, arguments, results});
    StoreParameter(memory[0], 0, Unspill(results, b_.getInt32Ty()), mask);
  });
}

// malloc: a result and a size; free: an address.
void FunctionEmitter::EmitHeap(const Instruction& instruction, const std::vector<Value*>& memory,
                               bool allocate) {
  if (memory.size() != (allocate ? 2U : 1U)) return Unsupported(instruction, "operands");
  Value* mask = ActiveMask(instruction);
  IfAny(mask, [&] {
    Value* argument = Spill(LoadParameter(memory.back(), 0, 8));
    if (!allocate) {
      CallRuntime(offsetof(RuntimeCalls, release), b_.getVoidTy(),
                  {context_, MaskBits(mask), argument});
      return;
    }
    Value* addresses = LaneArray(b_.getInt64Ty());
    CallRuntime(offsetof(RuntimeCalls, allocate), b_.getVoidTy(),
                {context_, MaskBits(mask), argument, addresses});
    StoreParameter(memory[0], 0, Unspill(addresses, b_.getInt64Ty()), mask);
  });
}

void FunctionEmitter::EmitAssertFail(const Instruction& instruction,
                                     const std::vector<Value*>& memory) {
  if (memory.size() != 5) return Unsupported(instruction, "__assertfail");
  Value* mask = ActiveMask(instruction);
  IfAny(mask, [&] {
    std::vector<Value*> arguments = {context_, MaskBits(mask)};
    for (unsigned i = 0; i < 4; ++i) {
      Value* value = LoadParameter(memory[i], 0, i == 2 ? 4 : 8);
      arguments.push_back(Spill(Resize(value, 64, false)));
    }
    CallRuntime(offsetof(RuntimeCalls, assert_fail), b_.getVoidTy(), arguments);
  });
}

}  // namespace torpor::emulator
