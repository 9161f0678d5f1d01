#include "emulator/exec/codegen/builder/memory_access.h"

namespace torpor::emulator {

using ptx::Space;

bool MemoryAccess::IsContiguous(const LaneAddress& address, const Access& access) const {
  const std::int64_t bytes = access.bytes();
  return address.linear() && address.shape.stride == bytes &&
         (row_lanes() == kWarpLanes || address.shape.row_stride == bytes * row_lanes());
}

std::vector<llvm::Value*> MemoryAccess::Load(const LaneAddress& address, const Access& access,
                                             Value* mask) {
  check_.Check(address, access.bytes(), mask);
  if (address.shape.uniform()) {
    std::vector<Value*> values;
    for (unsigned i = 0; i < access.count; ++i) {
      const LaneAddress at = addresses_.Advanced(address, std::uint64_t{i} * access.element_bytes);
      values.push_back(code_->CreateAlignedLoad(access.element, addresses_.Pointer(at, at.value),
                                                llvm::Align(access.element_bytes)));
    }
    return values;
  }
  if (IsContiguous(address, access)) return LoadContiguous(address, access, mask);
  if (HasContiguousRows(address, access)) return LoadRows(address, access, mask);
  return Gather(address, access, mask);
}

std::vector<llvm::Value*> MemoryAccess::LoadContiguous(const LaneAddress& address,
                                                       const Access& access, Value* mask) {
  auto* type = llvm::FixedVectorType::get(access.element, kWarpLanes * access.count);
  if (access.in_tile) PrefetchNextTile(address, access);
  Value* all =
      code_->CreateMaskedLoad(type, addresses_.Pointer(address, address.value),
                              llvm::Align(access.element_bytes), code_.Repeat(mask, access.count));
  return PartElements(all, access);
}

// Splits the lanes' data in memory order into a vector for each element.
std::vector<llvm::Value*> MemoryAccess::PartElements(Value* all, const Access& access) {
  if (access.count == 1) return {all};
  std::vector<Value*> values;
  for (unsigned i = 0; i < access.count; ++i) {
    std::vector<int> indices;
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      indices.push_back(static_cast<int>(lane * access.count + i));
    }
    values.push_back(code_->CreateShuffleVector(all, indices));
  }
  return values;
}

// The blocks of a grid usually read one tile of memory after the other, but each tile warp by warp
// in several parts: processors do not recognise such a stream. Fetches lines to the second cache,
// since the streams share sets of the first cache and would displace lines there.
void MemoryAccess::PrefetchNextTile(const LaneAddress& address, const Access& access) {
  constexpr std::uint64_t kAhead = 6144;  // a few blocks, whose time is memory's latency
  constexpr std::uint32_t kSecondCache = 2;
  constexpr std::uint64_t kCacheLine = 64;
  for (std::uint64_t line = 0; line < std::uint64_t{kWarpLanes} * access.bytes();
       line += kCacheLine) {
    const LaneAddress ahead = addresses_.Advanced(address, kAhead + line);
    code_->CreateIntrinsic(llvm::Intrinsic::prefetch, {code_->getPtrTy()},
                           {addresses_.Pointer(ahead, ahead.value), code_->getInt32(0),
                            code_->getInt32(kSecondCache), code_->getInt32(1)});
  }
}

std::vector<llvm::Value*> MemoryAccess::Gather(const LaneAddress& address, const Access& access,
                                               Value* mask) {
  std::vector<Value*> values;
  for (unsigned i = 0; i < access.count; ++i) {
    const LaneAddress at = addresses_.Advanced(address, std::uint64_t{i} * access.element_bytes);
    Value* addresses = addresses_.LaneAddresses(at);
    if (access.element_bytes < 4) {
      values.push_back(GatherSmall(at, addresses, access, mask));
      continue;
    }
    values.push_back(code_->CreateMaskedGather(Lanes(access.element),
                                               addresses_.Pointer(at, addresses),
                                               llvm::Align(access.element_bytes), mask));
  }
  return values;
}

// Processors do not gather bytes: gathers the aligned words around the bytes. A word lies in a
// single page, so the gather touches only pages of the bytes.
llvm::Value* MemoryAccess::GatherSmall(LaneAddress address, Value* addresses, const Access& access,
                                       Value* mask) {
  addresses =
      code_->CreateAdd(addresses, Like(addresses, static_cast<std::uint64_t>(address.offset)));
  address.offset = 0;
  Value* words = code_->CreateAnd(addresses, Like(addresses, ~std::uint64_t{3}));
  Value* loaded = code_->CreateMaskedGather(
      Lanes(code_->getInt32Ty()), addresses_.Pointer(address, words), llvm::Align(4), mask);
  Value* byte = code_.Resize(code_->CreateAnd(addresses, Like(addresses, 3)), 32, false);
  Value* shifted = code_->CreateLShr(loaded, code_->CreateShl(byte, Like(byte, 3)));
  return code_->CreateTrunc(shifted, Lanes(access.element));
}

void MemoryAccess::Store(const LaneAddress& address, const Access& access,
                         const std::vector<Value*>& values, Value* mask) {
  check_.Check(address, access.bytes(), mask);
  if (address.shape.uniform()) return StoreUniform(address, access, values, mask);
  if (IsContiguous(address, access)) return StoreContiguous(address, access, values, mask);
  if (HasContiguousRows(address, access) && address.shape.stride != 0 && access.count == 1) {
    return StoreRows(address, access, code_.Vector(values[0]), mask);
  }
  Scatter(address, access, values, mask);
}

// All lanes write to the same place. PTX lets any value win; here the last lane's wins.
void MemoryAccess::StoreUniform(const LaneAddress& address, const Access& access,
                                const std::vector<Value*>& values, Value* mask) {
  for (unsigned i = 0; i < access.count; ++i) {
    Value* value = values[i];
    if (IsVector(value)) {
      Value* empty = code_->CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, code_.MaskBits(mask),
                                                  code_->getTrue());
      value = code_->CreateExtractElement(value, code_->CreateSub(code_->getInt32(31), empty));
    }
    const LaneAddress at = addresses_.Advanced(address, std::uint64_t{i} * access.element_bytes);
    code_->CreateAlignedStore(value, addresses_.Pointer(at, at.value),
                              llvm::Align(access.element_bytes));
  }
}

void MemoryAccess::StoreContiguous(const LaneAddress& address, const Access& access,
                                   const std::vector<Value*>& values, Value* mask) {
  code_->CreateMaskedStore(JoinElements(values, access), addresses_.Pointer(address, address.value),
                           llvm::Align(access.element_bytes), code_.Repeat(mask, access.count));
}

// Joins a vector for each element into the lanes' data in memory order.
llvm::Value* MemoryAccess::JoinElements(const std::vector<Value*>& values, const Access& access) {
  if (access.count == 1) return code_.Vector(values[0]);
  std::vector<Value*> parts;
  parts.reserve(values.size());
  for (Value* value : values) parts.push_back(code_.Vector(value));
  std::vector<int> indices;
  for (unsigned i = 0; i < kWarpLanes * access.count; ++i) {
    indices.push_back(static_cast<int>((i % access.count) * kWarpLanes + i / access.count));
  }
  return code_->CreateShuffleVector(code_.Concatenate(std::move(parts)), indices);
}

void MemoryAccess::Scatter(const LaneAddress& address, const Access& access,
                           const std::vector<Value*>& values, Value* mask) {
  if (address.space == Space::kGlobal) traits_.scatters = 1;
  for (unsigned i = 0; i < access.count; ++i) {
    const LaneAddress at = addresses_.Advanced(address, std::uint64_t{i} * access.element_bytes);
    Value* addresses = addresses_.LaneAddresses(at);
    Value* value = code_.Vector(values[i]);
    if (access.element_bytes >= 4) {
      code_->CreateMaskedScatter(value, addresses_.Pointer(at, addresses),
                                 llvm::Align(access.element_bytes), mask);
      continue;
    }
    // No machine scatters bytes.
    Value* spilled = code_.Spill(value);
    Value* spilled_addresses = code_.Spill(addresses);
    code_.ForEachLane(mask, [&](Value* lane) {
      llvm::Type* index = addresses->getType()->getScalarType();
      Value* one = code_->CreateLoad(index, code_.LaneSlot(spilled_addresses, index, lane));
      Value* element =
          code_->CreateLoad(access.element, code_.LaneSlot(spilled, access.element, lane));
      code_->CreateStore(element, addresses_.Pointer(at, one));
    });
  }
}

}  // namespace torpor::emulator
