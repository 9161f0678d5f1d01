// ld and st of vectors that other threads must see whole. PTX promises atomicity for elements only,
// but GPUs move the whole vector of a lane at once, and programs rely on GPUs: CUB's look-back
// reads 16 bytes of state and value.
#include "emulator/exec/codegen/builder/memory_access.h"

namespace torpor::emulator {

// The processor moves so much at once, if it is aligned as PTX demands; of an i128 the compiler
// would make two moves.
llvm::Type* MemoryAccess::WholeType(const Access& access) {
  if (access.bytes() == 16) return llvm::FixedVectorType::get(code_->getInt64Ty(), 2);
  return code_.IntType(access.bytes() * 8);
}

// Volatile: otherwise the compiler may drop unused elements and split the access.
std::vector<llvm::Value*> MemoryAccess::LoadWhole(const LaneAddress& address, const Access& access,
                                                  Value* mask) {
  check_.Check(address, access.bytes(), mask);
  llvm::Type* whole = WholeType(access);
  Value* places = code_.Spill(addresses_.LaneAddresses(address));
  Value* loaded = code_.LaneArray(whole);
  llvm::Type* number = address.value->getType()->getScalarType();
  code_.ForEachLane(mask, [&](Value* lane) {
    Value* place = code_->CreateLoad(number, code_.LaneSlot(places, number, lane));
    Value* value = code_->CreateAlignedLoad(whole, addresses_.Pointer(address, place),
                                            llvm::Align(access.element_bytes),
                                            /*isVolatile=*/true);
    code_->CreateStore(value, code_.LaneSlot(loaded, whole, lane));
  });
  auto* all = llvm::FixedVectorType::get(access.element, kWarpLanes * access.count);
  return PartElements(code_->CreateAlignedLoad(all, loaded, llvm::Align(64)), access);
}

void MemoryAccess::StoreWhole(const LaneAddress& address, const Access& access,
                              const std::vector<Value*>& values, Value* mask) {
  check_.Check(address, access.bytes(), mask);
  if (address.space == ptx::Space::kGlobal) traits_.scatters = 1;
  llvm::Type* whole = WholeType(access);
  Value* places = code_.Spill(addresses_.LaneAddresses(address));
  Value* stored = code_.LaneArray(whole);
  code_->CreateAlignedStore(JoinElements(values, access), stored, llvm::Align(64));
  llvm::Type* number = address.value->getType()->getScalarType();
  code_.ForEachLane(mask, [&](Value* lane) {
    Value* place = code_->CreateLoad(number, code_.LaneSlot(places, number, lane));
    Value* value = code_->CreateLoad(whole, code_.LaneSlot(stored, whole, lane));
    code_->CreateAlignedStore(value, addresses_.Pointer(address, place),
                              llvm::Align(access.element_bytes),
                              /*isVolatile=*/true);
  });
}

}  // namespace torpor::emulator
