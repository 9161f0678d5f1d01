// Calls of device functions, printf and assert.
#include <algorithm>
#include <cstddef>

#include "emulator/exec/codegen/function_emitter.h"
#include "emulator/exec/interface/system_functions.h"

namespace torpor::emulator {

// call {(results),} callee {, (arguments)} {, prototype}
void FunctionEmitter::EmitCall(const Instruction& instruction) {
  const auto is_callee = [](const Operand& operand) {
    return operand.kind != Operand::Kind::kVector;
  };
  const auto callee =
      std::find_if(instruction.operands.begin(), instruction.operands.end(), is_callee);
  if (callee == instruction.operands.end()) return Unsupported(instruction, "operands");
  CallArguments arguments;
  for (auto list : {instruction.operands.begin(), callee + 1}) {
    if (list == instruction.operands.end() || list == callee || is_callee(*list)) continue;
    for (const Operand& argument : list->elements) {
      if (!IsCallArgument(argument)) return Unsupported(instruction, "argument");
      arguments.memory.push_back(ParameterMemory(argument.symbol));
      arguments.bytes.push_back(module_.variables[argument.symbol].bytes);
    }
    if (list < callee) arguments.results = arguments.memory.size();
  }
  Value* mask = ActiveMask(instruction);
  if (callee->kind == Operand::Kind::kRegister) {
    IfAny(mask, [&] { CallIndirect(instruction, *callee, arguments); });
    return;
  }
  if (callee->kind != Operand::Kind::kFunction) {
    return Unsupported(instruction, std::string(callee->name));
  }
  const ptx::Function& function = module_.functions[callee->symbol];
  if (function.name == "vprintf") return EmitPrint(instruction, arguments);
  if (function.name == "__assertfail") return EmitAssertFail(instruction, arguments);
  const bool heap = !function.has_body && (function.name == "malloc" || function.name == "free");
  if (heap) return EmitHeap(instruction, arguments, function.name == "malloc");
  if (!function.has_body && IsDeviceRuntimeFunction(function.name)) {
    return unit_.Fail("launches from kernels (dynamic parallelism) are not supported: " +
                      std::string(function_.name) + " calls " + std::string(function.name));
  }
  if (!function.has_body || function.is_kernel || !Fits(function, arguments)) {
    return Unsupported(instruction, std::string(function.name));
  }
  IfAny(mask, [&] { CallFunction(callee->symbol, arguments.memory, mask); });
}

bool FunctionEmitter::IsCallArgument(const Operand& operand) const {
  return operand.kind == Operand::Kind::kSymbol &&
         module_.variables[operand.symbol].space == ptx::Space::kParam &&
         !(function_.is_kernel && function_.HasParameter(operand.symbol));
}

// A callee reads and writes as many bytes as it declares: the caller must bring as many.
bool FunctionEmitter::Fits(const ptx::Function& callee, const CallArguments& arguments) const {
  if (callee.results.size() != arguments.results) return false;
  std::vector<std::uint64_t> bytes;
  for (const auto* list : {&callee.results, &callee.parameters}) {
    for (const std::uint32_t variable : *list) bytes.push_back(module_.variables[variable].bytes);
  }
  return bytes == arguments.bytes;
}

void FunctionEmitter::CallFunction(std::uint32_t function, const std::vector<Value*>& arguments,
                                   Value* mask) {
  std::vector<Value*> all = {context_, MaskBits(mask)};
  all.insert(all.end(), arguments.begin(), arguments.end());
  RecordEnd(b_.CreateCall(unit_.FunctionOf(function), all));
}

// Lanes may call different functions: one after the other, all lanes of a function at once.
void FunctionEmitter::CallIndirect(const Instruction& instruction, const Operand& callee,
                                   const CallArguments& arguments) {
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
    if (!Fits(module_.functions[function], arguments)) continue;
    llvm::BasicBlock* target = NewBlock("target");
    choice->addCase(b_.getInt64(FunctionAddress(function)), target);
    b_.SetInsertPoint(target);
    CallFunction(function, arguments.memory, same);
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

void FunctionEmitter::EmitPrint(const Instruction& instruction, const CallArguments& arguments) {
  const auto& memory = arguments.memory;
  if (arguments.bytes != std::vector<std::uint64_t>{4, 8, 8}) {
    return Unsupported(instruction, "vprintf");
  }
  Value* mask = ActiveMask(instruction);
  IfAny(mask, [&] {
    Value* formats = Spill(LoadParameter(memory[1], 0, 8));
    Value* values = Spill(LoadParameter(memory[2], 0, 8));
    Value* results = LaneArray(b_.getInt32Ty());
    CallRuntime(offsetof(RuntimeCalls, print), b_.getVoidTy(),
                {context_, MaskBits(mask), formats, values, results});
    StoreParameter(memory[0], 0, Unspill(results, b_.getInt32Ty()), mask);
  });
}

// malloc: a result and a size; free: an address.
void FunctionEmitter::EmitHeap(const Instruction& instruction, const CallArguments& arguments,
                               bool allocate) {
  const auto& memory = arguments.memory;
  if (arguments.bytes != std::vector<std::uint64_t>(allocate ? 2 : 1, 8)) {
    return Unsupported(instruction, allocate ? "malloc" : "free");
  }
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
                                     const CallArguments& arguments) {
  if (arguments.bytes != std::vector<std::uint64_t>{8, 8, 4, 8, 8}) {
    return Unsupported(instruction, "__assertfail");
  }
  Value* mask = ActiveMask(instruction);
  IfAny(mask, [&] {
    std::vector<Value*> values = {context_, MaskBits(mask)};
    for (unsigned i = 0; i < 4; ++i) {
      Value* value = LoadParameter(arguments.memory[i], 0, i == 2 ? 4 : 8);
      values.push_back(Spill(Resize(value, 64, false)));
    }
    CallRuntime(offsetof(RuntimeCalls, assert_fail), b_.getVoidTy(), values);
  });
}

}  // namespace torpor::emulator
