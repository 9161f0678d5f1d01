// Calls of device functions, printf and assert.
#include <algorithm>
#include <cstddef>

#include "emulator/exec/codegen/opcodes.h"
#include "emulator/exec/interface/system_functions.h"

namespace torpor::emulator {

using llvm::Value;
using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

namespace {

// Arguments of a call, results first.
struct CallArguments {
  std::vector<Value*> memory;
  std::vector<std::uint64_t> bytes;
  std::size_t results = 0;
};

bool IsCallArgument(OperandBuilder& to, const Operand& operand) {
  return operand.kind == Operand::Kind::kSymbol &&
         to.source().module.variables[operand.symbol].space == ptx::Space::kParam &&
         !(to.source().function.is_kernel && to.source().function.HasParameter(operand.symbol));
}

// A callee reads and writes as many bytes as it declares: the caller must bring as many.
bool Fits(OperandBuilder& to, const ptx::Function& callee, const CallArguments& arguments) {
  if (callee.results.size() != arguments.results) return false;
  std::vector<std::uint64_t> bytes;
  for (const auto* list : {&callee.results, &callee.parameters}) {
    for (const std::uint32_t variable : *list) {
      bytes.push_back(to.source().module.variables[variable].bytes);
    }
  }
  return bytes == arguments.bytes;
}

// Lanes may call different functions: one after the other, all lanes of a function at once.
void CallIndirect(OperandBuilder& to, CallBuilder& calls, const Instruction& instruction,
                  const Operand& callee, const CallArguments& arguments) {
  LaneBuilder& code = to.code();
  Value* addresses = to.ReadVector(callee, Type::kU64);
  llvm::BasicBlock* loop = code.NewBlock("indirect");
  llvm::BasicBlock* next = code.NewBlock("indirect_next");
  llvm::BasicBlock* wild = code.NewBlock("wild_call");
  llvm::BasicBlock* after = code.NewBlock("indirect_done");
  Value* all = code.MaskBits(to.masks().Active(instruction));
  llvm::BasicBlock* before = code->GetInsertBlock();
  code->CreateBr(loop);
  code->SetInsertPoint(loop);
  llvm::PHINode* left = code->CreatePHI(code->getInt32Ty(), 2);
  left->addIncoming(all, before);
  Value* lane = code->CreateBinaryIntrinsic(llvm::Intrinsic::cttz, left, code->getTrue());
  Value* address = code->CreateExtractElement(addresses, lane);
  Value* same = code->CreateAnd(code.BitsToMask(left),
                                code->CreateICmpEQ(addresses, code.Spread(address, 0)));
  llvm::SwitchInst* choice = code->CreateSwitch(address, wild);
  for (const std::uint32_t function : to.source().layout.address_taken) {
    if (!Fits(to, to.source().module.functions[function], arguments)) continue;
    llvm::BasicBlock* target = code.NewBlock("target");
    choice->addCase(code->getInt64(FunctionAddress(function)), target);
    code->SetInsertPoint(target);
    calls.Call(function, arguments.memory, same);
    code->CreateBr(next);
  }
  code->SetInsertPoint(wild);
  to.context().Call(offsetof(RuntimeCalls, trap), code->getVoidTy(),
                    {to.context().pointer(), code.MaskBits(same)});
  code->CreateBr(next);
  code->SetInsertPoint(next);
  Value* rest = code->CreateAnd(left, code->CreateNot(code.MaskBits(same)));
  left->addIncoming(rest, next);
  code->CreateCondBr(code->CreateICmpNE(rest, code->getInt32(0)), loop, after);
  code->SetInsertPoint(after);
}

// malloc: a result and a size; free: an address.
void EmitHeap(OperandBuilder& to, CallBuilder& calls, const Instruction& instruction,
              const CallArguments& arguments, bool allocate) {
  LaneBuilder& code = to.code();
  const auto& places = arguments.memory;
  if (arguments.bytes != std::vector<std::uint64_t>(allocate ? 2 : 1, 8)) {
    return to.Unsupported(instruction, allocate ? "malloc" : "free");
  }
  Value* mask = to.masks().Active(instruction);
  to.masks().IfAny(mask, [&] {
    Value* argument = code.Spill(calls.parameters().Load(places.back(), 0, 8));
    if (!allocate) {
      to.context().Call(offsetof(RuntimeCalls, release), code->getVoidTy(),
                        {to.context().pointer(), code.MaskBits(mask), argument});
      return;
    }
    Value* addresses = code.LaneArray(code->getInt64Ty());
    to.context().Call(offsetof(RuntimeCalls, allocate), code->getVoidTy(),
                      {to.context().pointer(), code.MaskBits(mask), argument, addresses});
    calls.parameters().Store(places[0], 0, code.Unspill(addresses, code->getInt64Ty()), mask);
  });
}

void EmitPrint(OperandBuilder& to, CallBuilder& calls, const Instruction& instruction,
               const CallArguments& arguments) {
  LaneBuilder& code = to.code();
  const auto& places = arguments.memory;
  if (arguments.bytes != std::vector<std::uint64_t>{4, 8, 8}) {
    return to.Unsupported(instruction, "vprintf");
  }
  Value* mask = to.masks().Active(instruction);
  to.masks().IfAny(mask, [&] {
    Value* formats = code.Spill(calls.parameters().Load(places[1], 0, 8));
    Value* values = code.Spill(calls.parameters().Load(places[2], 0, 8));
    Value* results = code.LaneArray(code->getInt32Ty());
    to.context().Call(offsetof(RuntimeCalls, print), code->getVoidTy(),
                      {to.context().pointer(), code.MaskBits(mask), formats, values, results});
    calls.parameters().Store(places[0], 0, code.Unspill(results, code->getInt32Ty()), mask);
  });
}

void EmitAssertFail(OperandBuilder& to, CallBuilder& calls, const Instruction& instruction,
                    const CallArguments& arguments) {
  LaneBuilder& code = to.code();
  if (arguments.bytes != std::vector<std::uint64_t>{8, 8, 4, 8, 8}) {
    return to.Unsupported(instruction, "__assertfail");
  }
  Value* mask = to.masks().Active(instruction);
  to.masks().IfAny(mask, [&] {
    std::vector<Value*> values = {to.context().pointer(), code.MaskBits(mask)};
    for (unsigned i = 0; i < 4; ++i) {
      Value* value = calls.parameters().Load(arguments.memory[i], 0, i == 2 ? 4 : 8);
      values.push_back(code.Spill(code.Resize(value, 64, false)));
    }
    to.context().Call(offsetof(RuntimeCalls, assert_fail), code->getVoidTy(), values);
  });
}

}  // namespace

// call {(results),} callee {, (arguments)} {, prototype}
void EmitCall(OperandBuilder& to, CallBuilder& calls, const Instruction& instruction) {
  const auto is_callee = [](const Operand& operand) {
    return operand.kind != Operand::Kind::kVector;
  };
  const auto callee =
      std::find_if(instruction.operands.begin(), instruction.operands.end(), is_callee);
  if (callee == instruction.operands.end()) return to.Unsupported(instruction, "operands");
  CallArguments arguments;
  for (auto list : {instruction.operands.begin(), callee + 1}) {
    if (list == instruction.operands.end() || list == callee || is_callee(*list)) continue;
    for (const Operand& argument : list->elements) {
      if (!IsCallArgument(to, argument)) return to.Unsupported(instruction, "argument");
      arguments.memory.push_back(calls.parameters().Of(argument.symbol));
      arguments.bytes.push_back(to.source().module.variables[argument.symbol].bytes);
    }
    if (list < callee) arguments.results = arguments.memory.size();
  }
  Value* mask = to.masks().Active(instruction);
  if (callee->kind == Operand::Kind::kRegister) {
    to.masks().IfAny(mask, [&] { CallIndirect(to, calls, instruction, *callee, arguments); });
    return;
  }
  if (callee->kind != Operand::Kind::kFunction) {
    return to.Unsupported(instruction, std::string(callee->name));
  }
  const ptx::Function& function = to.source().module.functions[callee->symbol];
  if (function.name == "vprintf") return EmitPrint(to, calls, instruction, arguments);
  if (function.name == "__assertfail") return EmitAssertFail(to, calls, instruction, arguments);
  const bool heap = !function.has_body && (function.name == "malloc" || function.name == "free");
  if (heap) return EmitHeap(to, calls, instruction, arguments, function.name == "malloc");
  if (!function.has_body && IsDeviceRuntimeFunction(function.name)) {
    return to.error().Set("launches from kernels (dynamic parallelism) are not supported: " +
                          std::string(to.source().function.name) + " calls " +
                          std::string(function.name));
  }
  if (!function.has_body || function.is_kernel || !Fits(to, function, arguments)) {
    return to.Unsupported(instruction, std::string(function.name));
  }
  to.masks().IfAny(mask, [&] { calls.Call(callee->symbol, arguments.memory, mask); });
}

}  // namespace torpor::emulator
