// ld and st, of memory and of parameters.
#include <algorithm>
#include <cstddef>

#include "emulator/exec/codegen/opcodes.h"

namespace torpor::emulator {

using llvm::Value;
using ptx::Instruction;
using ptx::Operand;
using ptx::Space;
using ptx::Type;

namespace {

// Keeps the compiler from caching or moving an access that other threads may observe; the
// processor orders loads and stores strongly enough by itself.
void OrderMemory(LaneBuilder& code, const Instruction& instruction) {
  if (!instruction.is_ordered()) return;
  code->CreateFence(llvm::AtomicOrdering::SequentiallyConsistent, llvm::SyncScope::SingleThread);
}

// The parameters of a kernel are uniform and invariant: scalar loads that the optimiser may merge.
void EmitKernelParameterLoad(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  const Operand& source = instruction.operands[1];
  const Operand& destination = instruction.operands[0];
  const ptx::Variable& variable = to.source().module.variables[source.symbol];
  const Type type = instruction.type();
  const unsigned bytes = ptx::ByteWidth(type);
  const unsigned count = instruction.vector_width();
  const bool fits = bytes <= 8 && source.bits <= variable.bytes &&
                    source.bits + std::uint64_t{bytes} * count <= variable.bytes &&
                    (count == 1 || destination.elements.size() == count);
  if (!fits) return to.Unsupported(instruction, "outside the parameter");
  Value* base = to.context().Field(offsetof(WarpContext, parameters), code->getPtrTy());
  for (unsigned i = 0; i < count; ++i) {
    const std::uint64_t offset = variable.parameter_offset + source.bits + std::uint64_t{i} * bytes;
    Value* at = code->CreateConstInBoundsGEP1_64(code->getInt8Ty(), base, offset);
    llvm::LoadInst* load = code->CreateAlignedLoad(code.IntType(8 * bytes), at, llvm::Align(1));
    code.Invariant(load);
    to.Write(instruction, count == 1 ? destination : destination.elements[i], load, type);
  }
}

void EmitParameterLoad(OperandBuilder& to, ParameterMemory& parameters,
                       const Instruction& instruction) {
  const Operand& source = instruction.operands[1];
  const Operand& destination = instruction.operands[0];
  const Type type = instruction.type();
  const unsigned bytes = ptx::ByteWidth(type);
  const unsigned count = instruction.vector_width();
  const std::uint64_t size = to.source().module.variables[source.symbol].bytes;
  const bool fits = bytes <= 8 && source.bits % std::min(bytes, 4U) == 0 && source.bits <= size &&
                    source.bits + std::uint64_t{bytes} * count <= size &&
                    (count == 1 || destination.elements.size() == count);
  if (!fits) return to.Unsupported(instruction, "outside the parameter");
  Value* place = parameters.Of(source.symbol);
  for (unsigned i = 0; i < count; ++i) {
    Value* value = parameters.Load(place, source.bits + std::uint64_t{i} * bytes, bytes);
    to.Write(instruction, count == 1 ? destination : destination.elements[i], value, type);
  }
}

void EmitParameterStore(OperandBuilder& to, ParameterMemory& parameters,
                        const Instruction& instruction) {
  LaneBuilder& code = to.code();
  const Operand& target = instruction.operands[0];
  const Operand& source = instruction.operands[1];
  const Type type = instruction.type();
  const unsigned bytes = ptx::ByteWidth(type);
  const unsigned count = instruction.vector_width();
  if (target.symbol == ptx::kNoIndex) return to.Unsupported(instruction, "computed address");
  const std::uint64_t size = to.source().module.variables[target.symbol].bytes;
  const bool fits = bytes <= 8 && target.bits % std::min(bytes, 4U) == 0 && target.bits <= size &&
                    target.bits + std::uint64_t{bytes} * count <= size &&
                    (count == 1 || source.elements.size() == count);
  if (!fits) return to.Unsupported(instruction, "outside the parameter");
  Value* place = parameters.Of(target.symbol);
  Value* mask = to.masks().Active(instruction);
  for (unsigned i = 0; i < count; ++i) {
    Value* value = code.ToInt(to.ReadVector(count == 1 ? source : source.elements[i], type));
    parameters.Store(place, target.bits + std::uint64_t{i} * bytes, value, mask);
  }
}

}  // namespace

void EmitLoad(OperandBuilder& to, MemoryAccess& memory, ParameterMemory& parameters,
              const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 2)) return;
  const Operand& source = instruction.operands[1];
  if (source.kind != Operand::Kind::kAddress) return to.Unsupported(instruction, "address");
  const Space space = memory.addresses().SpaceOf(instruction, source);
  if (space == Space::kParam && source.symbol != ptx::kNoIndex) {
    return to.source().function.HasParameter(source.symbol) && to.source().function.is_kernel
               ? EmitKernelParameterLoad(to, instruction)
               : EmitParameterLoad(to, parameters, instruction);
  }
  const Type type = instruction.type();
  const unsigned count = instruction.vector_width();
  Access access{code.IntType(ptx::BitWidth(type)), ptx::ByteWidth(type), count};
  const Operand& destination = instruction.operands[0];
  const bool fits = access.element_bytes <= 8 && type != Type::kPred &&
                    (count == 1 || destination.elements.size() == count);
  if (!fits) return to.Unsupported(instruction, "width");
  Value* mask = to.masks().Active(instruction);
  to.masks().IfAny(mask, [&] {
    OrderMemory(code, instruction);
    const LaneAddress address = memory.addresses().Of(source, space);
    if (address.value == nullptr) return;
    access.in_tile = to.source().tile_loads.Contains(to.source().IndexOf(instruction));
    const std::vector<Value*> values = instruction.is_ordered() && access.is_whole()
                                           ? memory.LoadWhole(address, access, mask)
                                           : memory.Load(address, access, mask);
    OrderMemory(code, instruction);
    for (unsigned i = 0; i < count; ++i) {
      to.Write(instruction, count == 1 ? destination : destination.elements[i], values[i], type);
    }
  });
}

void EmitStore(OperandBuilder& to, MemoryAccess& memory, ParameterMemory& parameters,
               const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 2)) return;
  const Operand& target = instruction.operands[0];
  if (target.kind != Operand::Kind::kAddress) return to.Unsupported(instruction, "address");
  const Space space = memory.addresses().SpaceOf(instruction, target);
  if (space == Space::kParam) return EmitParameterStore(to, parameters, instruction);
  const Type type = instruction.type();
  const unsigned count = instruction.vector_width();
  const Access access{code.IntType(ptx::BitWidth(type)), ptx::ByteWidth(type), count};
  const Operand& source = instruction.operands[1];
  const bool fits = access.element_bytes <= 8 && type != Type::kPred &&
                    (count == 1 || source.elements.size() == count);
  if (!fits) return to.Unsupported(instruction, "width");
  Value* mask = to.masks().Active(instruction);
  to.masks().IfAny(mask, [&] {
    OrderMemory(code, instruction);
    const LaneAddress address = memory.addresses().Of(target, space);
    if (address.value == nullptr) return;
    std::vector<Value*> values;
    for (unsigned i = 0; i < count; ++i) {
      const Operand& element = count == 1 ? source : source.elements[i];
      const bool uniform = to.source().lanes.OperandShape(element, 64).uniform();
      values.push_back(code.ToInt(to.ReadAny(element, type, uniform)));
    }
    if (instruction.is_ordered() && access.is_whole()) {
      memory.StoreWhole(address, access, values, mask);
    } else {
      memory.Store(address, access, values, mask);
    }
    OrderMemory(code, instruction);
  });
}

}  // namespace torpor::emulator
