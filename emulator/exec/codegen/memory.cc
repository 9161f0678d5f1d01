// ld, st, mov, cvta.
#include <cstddef>

#include "emulator/exec/codegen/function_emitter.h"
#include "emulator/exec/interface/arena_layout.h"

namespace torpor::emulator {

using ptx::Space;

ptx::Space FunctionEmitter::SpaceOf(const Instruction& instruction, const Operand& operand) const {
  if (operand.symbol != ptx::kNoIndex) return module_.variables[operand.symbol].space;
  return instruction.space();
}

FunctionEmitter::Address FunctionEmitter::AddressOf(const Operand& operand, Space space) {
  // See SpillParameters.
  if (space == Space::kParam && !function_.is_kernel) space = Space::kLocal;
  Address address;
  address.space = space;
  if (operand.symbol != ptx::kNoIndex) {
    const ptx::Variable& variable = module_.variables[operand.symbol];
    address.shape = ptx::LaneShape::Uniform();
    if (space == Space::kShared) {
      address.value = b_.getInt32(unit_.layout().shared_offsets.at(operand.symbol));
    } else if (space == Space::kLocal) {
      const auto offset = unit_.layout().local_offsets.find(operand.symbol);
      if (offset == unit_.layout().local_offsets.end()) {
        unit_.Fail("the address of '" + std::string(variable.name) + "' is taken in " +
                   std::string(function_.name));
        return Address{};
      }
      address.value = b_.CreateAdd(b_.CreatePtrToInt(local_frame_, b_.getInt64Ty()),
                                   b_.getInt64(offset->second));
      const std::int64_t row_stride =
          row_lanes() < kWarpLanes ? local_stride_ * std::int64_t{row_lanes()} : 0;
      address.shape = ptx::LaneShape::Linear(local_stride_, row_stride, 0);
    } else if (space == Space::kParam) {
      if (!function_.HasParameter(operand.symbol)) {
        unit_.Fail("the address of parameter '" + std::string(variable.name) + "' is taken in " +
                   std::string(function_.name));
        return Address{};
      }
      Value* base = ContextField(offsetof(WarpContext, parameters), b_.getInt64Ty());
      address.value = b_.CreateAdd(base, b_.getInt64(variable.parameter_offset));
    } else {
      Value* symbols = ContextField(offsetof(WarpContext, symbols), b_.getPtrTy());
      llvm::LoadInst* load = b_.CreateLoad(
          b_.getInt64Ty(), b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), symbols, operand.symbol));
      load->setMetadata(llvm::LLVMContext::MD_invariant_load,
                        llvm::MDNode::get(b_.getContext(), {}));
      address.value = load;
    }
  } else if (operand.reg != ptx::kNoIndex) {
    address.shape = lanes_.shape(operand.reg);
    address.value = ReadRegister(operand.reg, address.linear());
  } else {
    address.shape = ptx::LaneShape::Uniform();
    address.value = b_.getInt64(0);
  }
  address.value = Resize(address.value, space == Space::kShared ? 32 : 64, false);
  return Advanced(address, operand.bits);
}

// Small offsets in shared memory stay apart: a 32-bit sum could wrap, and each one that the
// compiler cannot prove not to would be a register of its own instead of a part of an instruction.
FunctionEmitter::Address FunctionEmitter::Advanced(Address address, std::uint64_t bytes) {
  const auto offset = static_cast<std::int64_t>(bytes);
  const auto small = [](std::int64_t number) {
    return number >= -kMaxSharedOffset / 2 && number <= kMaxSharedOffset / 2;
  };
  if (address.space == Space::kShared && small(offset) && small(address.offset)) {
    address.offset += offset;
  } else if (bytes != 0) {
    address.value = b_.CreateAdd(address.value, Like(address.value, bytes));
  }
  return address;
}

llvm::Value* FunctionEmitter::LaneAddresses(const Address& address) {
  if (!address.linear()) return address.value;
  return Spread(address.value, address.shape.stride, address.shape.row_stride);
}

// Offsets in shared memory are signed here: what reaches before the block's buffer must fault in
// the guard pages before it, not wrap to 4 GiB behind it.
llvm::Value* FunctionEmitter::Pointer(const Address& address, Value* value) {
  if (address.space == Space::kShared) {
    Value* base = ContextField(offsetof(WarpContext, shared), b_.getPtrTy());
    Value* pointer = b_.CreateGEP(b_.getInt8Ty(), base, value);
    return address.offset == 0
               ? pointer
               : b_.CreateGEP(b_.getInt8Ty(), pointer,
                              b_.getInt64(static_cast<std::uint64_t>(address.offset)));
  }
  return b_.CreateGEP(b_.getInt8Ty(), llvm::ConstantPointerNull::get(b_.getPtrTy()), value);
}

llvm::Value* FunctionEmitter::Repeat(Value* mask, unsigned count) {
  if (count == 1) return mask;
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(mask->getType())->getNumElements();
  std::vector<int> indices;
  for (unsigned i = 0; i < lanes * count; ++i) indices.push_back(static_cast<int>(i / count));
  return b_.CreateShuffleVector(mask, indices);
}

std::vector<llvm::Value*> FunctionEmitter::Load(const Address& address, const Access& access,
                                                Value* mask) {
  CheckAccess(address, access.bytes(), mask);
  if (address.shape.uniform()) {
    std::vector<Value*> values;
    for (unsigned i = 0; i < access.count; ++i) {
      const Address at = Advanced(address, std::uint64_t{i} * access.element_bytes);
      values.push_back(b_.CreateAlignedLoad(access.element, Pointer(at, at.value),
                                            llvm::Align(access.element_bytes)));
    }
    return values;
  }
  if (IsContiguous(address, access)) return LoadContiguous(address, access, mask);
  if (HasContiguousRows(address, access)) return LoadRows(address, access, mask);
  return Gather(address, access, mask);
}

std::vector<llvm::Value*> FunctionEmitter::LoadContiguous(const Address& address,
                                                          const Access& access, Value* mask) {
  auto* type = llvm::FixedVectorType::get(access.element, kWarpLanes * access.count);
  if (in_tile_) PrefetchNextTile(address, access);
  Value* all = b_.CreateMaskedLoad(type, Pointer(address, address.value),
                                   llvm::Align(access.element_bytes), Repeat(mask, access.count));
  return PartElements(all, access);
}

// What lanes have loaded one after the other, element by element.
std::vector<llvm::Value*> FunctionEmitter::PartElements(Value* all, const Access& access) {
  if (access.count == 1) return {all};
  std::vector<Value*> values;
  for (unsigned i = 0; i < access.count; ++i) {
    std::vector<int> indices;
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      indices.push_back(static_cast<int>(lane * access.count + i));
    }
    values.push_back(b_.CreateShuffleVector(all, indices));
  }
  return values;
}

// The blocks of a grid usually read one tile of memory after the other, but each tile warp by warp
// in several parts, which processors do not recognise as the stream that it is. The lines go to the
// second cache: into the first one, whose sets these streams share, they would displace each other.
void FunctionEmitter::PrefetchNextTile(const Address& address, const Access& access) {
  constexpr std::uint64_t kAhead = 6144;  // a few blocks, whose time is memory's latency
  constexpr std::uint32_t kSecondCache = 2;
  constexpr std::uint64_t kCacheLine = 64;
  for (std::uint64_t line = 0; line < std::uint64_t{kWarpLanes} * access.bytes();
       line += kCacheLine) {
    const Address ahead = Advanced(address, kAhead + line);
    b_.CreateIntrinsic(
        llvm::Intrinsic::prefetch, {b_.getPtrTy()},
        {Pointer(ahead, ahead.value), b_.getInt32(0), b_.getInt32(kSecondCache), b_.getInt32(1)});
  }
}

std::vector<llvm::Value*> FunctionEmitter::Gather(const Address& address, const Access& access,
                                                  Value* mask) {
  std::vector<Value*> values;
  for (unsigned i = 0; i < access.count; ++i) {
    const Address at = Advanced(address, std::uint64_t{i} * access.element_bytes);
    Value* addresses = LaneAddresses(at);
    if (access.element_bytes < 4) {
      values.push_back(GatherSmall(at, addresses, access, mask));
      continue;
    }
    values.push_back(b_.CreateMaskedGather(Lanes(access.element), Pointer(at, addresses),
                                           llvm::Align(access.element_bytes), mask));
  }
  return values;
}

// No machine gathers bytes: take the aligned words that hold them. A word lies in one page, so
// this touches no page that the byte does not.
llvm::Value* FunctionEmitter::GatherSmall(Address address, Value* addresses, const Access& access,
                                          Value* mask) {
  addresses = b_.CreateAdd(addresses, Like(addresses, static_cast<std::uint64_t>(address.offset)));
  address.offset = 0;
  Value* words = b_.CreateAnd(addresses, Like(addresses, ~std::uint64_t{3}));
  Value* loaded =
      b_.CreateMaskedGather(Lanes(b_.getInt32Ty()), Pointer(address, words), llvm::Align(4), mask);
  Value* byte = Resize(b_.CreateAnd(addresses, Like(addresses, 3)), 32, false);
  Value* shifted = b_.CreateLShr(loaded, b_.CreateShl(byte, Like(byte, 3)));
  return b_.CreateTrunc(shifted, Lanes(access.element));
}

void FunctionEmitter::Store(const Address& address, const Access& access,
                            const std::vector<Value*>& values, Value* mask) {
  CheckAccess(address, access.bytes(), mask);
  if (address.shape.uniform()) return StoreUniform(address, access, values, mask);
  if (IsContiguous(address, access)) return StoreContiguous(address, access, values, mask);
  if (HasContiguousRows(address, access) && address.shape.stride != 0 && access.count == 1) {
    return StoreRows(address, access, Vector(values[0]), mask);
  }
  Scatter(address, access, values, mask);
}

// All lanes write one place: some lane's value stays, here that of the last one.
void FunctionEmitter::StoreUniform(const Address& address, const Access& access,
                                   const std::vector<Value*>& values, Value* mask) {
  for (unsigned i = 0; i < access.count; ++i) {
    Value* value = values[i];
    if (IsVector(value)) {
      Value* empty = b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, MaskBits(mask), b_.getTrue());
      value = b_.CreateExtractElement(value, b_.CreateSub(b_.getInt32(31), empty));
    }
    const Address at = Advanced(address, std::uint64_t{i} * access.element_bytes);
    b_.CreateAlignedStore(value, Pointer(at, at.value), llvm::Align(access.element_bytes));
  }
}

void FunctionEmitter::StoreContiguous(const Address& address, const Access& access,
                                      const std::vector<Value*>& values, Value* mask) {
  b_.CreateMaskedStore(JoinElements(values, access), Pointer(address, address.value),
                       llvm::Align(access.element_bytes), Repeat(mask, access.count));
}

// What lanes store one after the other, from element by element.
llvm::Value* FunctionEmitter::JoinElements(const std::vector<Value*>& values,
                                           const Access& access) {
  if (access.count == 1) return Vector(values[0]);
  std::vector<Value*> parts;
  parts.reserve(values.size());
  for (Value* value : values) parts.push_back(Vector(value));
  std::vector<int> indices;
  for (unsigned i = 0; i < kWarpLanes * access.count; ++i) {
    indices.push_back(static_cast<int>((i % access.count) * kWarpLanes + i / access.count));
  }
  return b_.CreateShuffleVector(Concatenate(std::move(parts)), indices);
}

void FunctionEmitter::Scatter(const Address& address, const Access& access,
                              const std::vector<Value*>& values, Value* mask) {
  if (address.space == Space::kGlobal) unit_.SetScatters();
  for (unsigned i = 0; i < access.count; ++i) {
    const Address at = Advanced(address, std::uint64_t{i} * access.element_bytes);
    Value* addresses = LaneAddresses(at);
    Value* value = Vector(values[i]);
    if (access.element_bytes >= 4) {
      b_.CreateMaskedScatter(value, Pointer(at, addresses), llvm::Align(access.element_bytes),
                             mask);
      continue;
    }
    // No machine scatters bytes.
    Value* spilled = Spill(value);
    Value* spilled_addresses = Spill(addresses);
    ForEachLane(mask, [&](Value* lane) {
      llvm::Type* index = addresses->getType()->getScalarType();
      Value* one = b_.CreateLoad(index, LaneSlot(spilled_addresses, index, lane));
      Value* element = b_.CreateLoad(access.element, LaneSlot(spilled, access.element, lane));
      b_.CreateStore(element, Pointer(at, one));
    });
  }
}

// Keeps the compiler from caching or moving an access that other threads may observe; the
// processor orders loads and stores strongly enough by itself.
void FunctionEmitter::OrderMemory(const Instruction& instruction) {
  if (!instruction.is_ordered()) return;
  b_.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent, llvm::SyncScope::SingleThread);
}

void FunctionEmitter::EmitLoad(const Instruction& instruction) {
  if (!Expect(instruction, 2)) return;
  const Operand& source = instruction.operands[1];
  if (source.kind != Operand::Kind::kAddress) return Unsupported(instruction, "address");
  const Space space = SpaceOf(instruction, source);
  if (space == Space::kParam && source.symbol != ptx::kNoIndex) {
    return function_.HasParameter(source.symbol) && function_.is_kernel
               ? EmitKernelParameterLoad(instruction)
               : EmitParameterLoad(instruction);
  }
  const Type type = instruction.type();
  const unsigned count = instruction.vector_width();
  const Access access{IntType(ptx::BitWidth(type)), ptx::ByteWidth(type), count};
  const Operand& destination = instruction.operands[0];
  const bool fits = access.element_bytes <= 8 && type != Type::kPred &&
                    (count == 1 || destination.elements.size() == count);
  if (!fits) return Unsupported(instruction, "width");
  Value* mask = ActiveMask(instruction);
  IfAny(mask, [&] {
    OrderMemory(instruction);
    const Address address = AddressOf(source, space);
    if (address.value == nullptr) return;
    in_tile_ = tile_loads_.Contains(IndexOf(instruction));
    const std::vector<Value*> values = instruction.is_ordered() && access.is_whole()
                                           ? LoadWhole(address, access, mask)
                                           : Load(address, access, mask);
    in_tile_ = false;
    OrderMemory(instruction);
    for (unsigned i = 0; i < count; ++i) {
      Write(instruction, count == 1 ? destination : destination.elements[i], values[i], type);
    }
  });
}

void FunctionEmitter::EmitStore(const Instruction& instruction) {
  if (!Expect(instruction, 2)) return;
  const Operand& target = instruction.operands[0];
  if (target.kind != Operand::Kind::kAddress) return Unsupported(instruction, "address");
  const Space space = SpaceOf(instruction, target);
  if (space == Space::kParam) return EmitParameterStore(instruction);
  const Type type = instruction.type();
  const unsigned count = instruction.vector_width();
  const Access access{IntType(ptx::BitWidth(type)), ptx::ByteWidth(type), count};
  const Operand& source = instruction.operands[1];
  const bool fits = access.element_bytes <= 8 && type != Type::kPred &&
                    (count == 1 || source.elements.size() == count);
  if (!fits) return Unsupported(instruction, "width");
  Value* mask = ActiveMask(instruction);
  IfAny(mask, [&] {
    OrderMemory(instruction);
    const Address address = AddressOf(target, space);
    if (address.value == nullptr) return;
    std::vector<Value*> values;
    for (unsigned i = 0; i < count; ++i) {
      const Operand& element = count == 1 ? source : source.elements[i];
      const bool uniform = lanes_.OperandShape(element, 64).uniform();
      values.push_back(ToInt(ReadAny(element, type, uniform)));
    }
    if (instruction.is_ordered() && access.is_whole()) {
      StoreWhole(address, access, values, mask);
    } else {
      Store(address, access, values, mask);
    }
    OrderMemory(instruction);
  });
}

void FunctionEmitter::EmitMov(const Instruction& instruction) {
  if (!Expect(instruction, 2)) return;
  const bool vector = instruction.operands[0].kind == Operand::Kind::kVector ||
                      instruction.operands[1].kind == Operand::Kind::kVector;
  if (vector) return EmitMovVector(instruction);
  const Type type = instruction.type();
  if (ptx::BitWidth(type) > 64) return Unsupported(instruction);
  Write(instruction, instruction.operands[0], Read(instruction.operands[1], type), type);
}

// Packs {a, b, ...} into one register, or unpacks one into several.
void FunctionEmitter::EmitMovVector(const Instruction& instruction) {
  const Type type = instruction.type();
  const Operand& destination = instruction.operands[0];
  const Operand& source = instruction.operands[1];
  const unsigned bits = ptx::BitWidth(type);
  const bool unpack = destination.kind == Operand::Kind::kVector;
  const Operand& parts = unpack ? destination : source;
  const auto count = static_cast<unsigned>(parts.elements.size());
  if (count == 0 || bits % count != 0 || bits / count < 8 || bits > 128 ||
      (unpack && source.kind == Operand::Kind::kVector)) {
    return Unsupported(instruction);
  }
  const unsigned part_bits = bits / count;
  const Type part_type = part_bits == 8    ? Type::kB8
                         : part_bits == 16 ? Type::kB16
                         : part_bits == 32 ? Type::kB32
                                           : Type::kB64;
  if (unpack) {
    Value* whole = ToInt(Read(source, type));
    for (unsigned i = 0; i < count; ++i) {
      Value* part = b_.CreateLShr(whole, Like(whole, std::uint64_t{i} * part_bits));
      Write(instruction, destination.elements[i], Resize(part, part_bits, false), part_type);
    }
    return;
  }
  Value* whole = nullptr;
  for (unsigned i = 0; i < count; ++i) {
    Value* part = Resize(Read(source.elements[i], part_type), bits, false);
    part = b_.CreateShl(part, Like(part, std::uint64_t{i} * part_bits));
    whole = whole == nullptr ? part : b_.CreateOr(whole, part);
  }
  Write(instruction, destination, whole, type);
}

// Generic addresses are addresses of this process; only shared memory has offsets of its own.
void FunctionEmitter::EmitCvta(const Instruction& instruction) {
  if (!Expect(instruction, 2)) return;
  const Type type = instruction.type();
  Value* value = Resize(Read(instruction.operands[1], type), 64, false);
  if (instruction.Has(Modifier::kShared)) {
    Value* base = ContextField(offsetof(WarpContext, shared), b_.getInt64Ty());
    if (IsVector(value)) base = Spread(base, 0);
    value = instruction.Has(Modifier::kTo)
                ? b_.CreateSub(value, base)
                : b_.CreateAdd(b_.CreateSExt(Resize(value, 32, false), value->getType()), base);
  }
  Write(instruction, instruction.operands[0], value, type);
}

void FunctionEmitter::EmitIsSpace(const Instruction& instruction) {
  if (instruction.operands.size() < 2) return Unsupported(instruction);
  Value* address = Read(instruction.operands[1], Type::kU64);
  const auto field = [&](std::size_t offset) {
    Value* value = ContextField(offset, b_.getInt64Ty());
    return IsVector(address) ? Spread(value, 0) : value;
  };
  const auto within = [&](Value* begin, Value* bytes) {
    return b_.CreateICmpULT(b_.CreateSub(address, begin), bytes);
  };
  Value* arena =
      within(field(offsetof(WarpContext, arena_begin)), field(offsetof(WarpContext, arena_bytes)));
  // Shared offsets are 32 bits; the block's buffer is followed by guard pages.
  Value* shared = within(field(offsetof(WarpContext, shared)), Like(address, 1U << 20));
  Value* result = nullptr;
  switch (instruction.space()) {
    case Space::kShared:
      result = shared;
      break;
    case Space::kLocal:
      result = b_.CreateAnd(arena, b_.CreateNot(shared));
      break;
    case Space::kGlobal:
      result = b_.CreateNot(arena);
      break;
    default:
      return Unsupported(instruction);
  }
  Write(instruction, instruction.operands[0], result, Type::kPred);
}

// mapa d, address, block; getctarank d, address; createpolicy d, ...: a cluster is one block, of
// rank 0, and a cache policy is nothing.
void FunctionEmitter::EmitClusterAddress(const Instruction& instruction) {
  if (!Expect(instruction, 1)) return;
  const Type type = instruction.type();
  if (ptx::IsFloat(type) || ptx::BitWidth(type) < 32) return Unsupported(instruction);
  const bool maps = instruction.opcode == ptx::Opcode::kMapa && instruction.operands.size() == 3;
  Value* value = maps      ? Read(instruction.operands[1], type)
                 : scalar_ ? Constant(ScalarType(type), 0)
                           : llvm::Constant::getNullValue(Lanes(ScalarType(type)));
  Write(instruction, instruction.operands[0], value, type);
}

}  // namespace torpor::emulator
