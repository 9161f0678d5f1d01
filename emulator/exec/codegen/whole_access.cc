// ld and st of vectors that other threads must see whole. PTX promises it of the elements only, but
// GPUs do it for all of a lane's vector, and programs build on that: CUB's look-back over 16 bytes
// of state and value, for one.
#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

// The processor moves so much at once, if it is aligned as PTX demands; of an i128 the compiler
// would make two moves.
llvm::Type* FunctionEmitter::WholeType(const Access& access) {
  if (access.bytes() == 16) return llvm::FixedVectorType::get(b_.getInt64Ty(), 2);
  return IntType(access.bytes() * 8);
}

// Volatile: else the compiler may leave out what of the vector is not used, and cut the rest.
std::vector<llvm::Value*> FunctionEmitter::LoadWhole(const Address& address, const Access& access,
                                                     Value* mask) {
  CheckAccess(address, access.bytes(), mask);
  llvm::Type* whole = WholeType(access);
  Value* places = Spill(LaneAddresses(address));
  Value* loaded = LaneArray(whole);
  llvm::Type* number = address.value->getType()->getScalarType();
  ForEachLane(mask, [&](Value* lane) {
    Value* place = b_.CreateLoad(number, LaneSlot(places, number, lane));
    Value* value =
        b_.CreateAlignedLoad(whole, Pointer(address, place), llvm::Align(access.element_bytes),
                             /*isVolatile=*/true);
    b_.CreateStore(value, LaneSlot(loaded, whole, lane));
  });
  auto* all = llvm::FixedVectorType::get(access.element, kWarpLanes * access.count);
  return PartElements(b_.CreateAlignedLoad(all, loaded, llvm::Align(64)), access);
}

void FunctionEmitter::StoreWhole(const Address& address, const Access& access,
                                 const std::vector<Value*>& values, Value* mask) {
  CheckAccess(address, access.bytes(), mask);
  if (address.space == ptx::Space::kGlobal) unit_.SetScatters();
  llvm::Type* whole = WholeType(access);
  Value* places = Spill(LaneAddresses(address));
  Value* stored = LaneArray(whole);
  b_.CreateAlignedStore(JoinElements(values, access), stored, llvm::Align(64));
  llvm::Type* number = address.value->getType()->getScalarType();
  ForEachLane(mask, [&](Value* lane) {
    Value* place = b_.CreateLoad(number, LaneSlot(places, number, lane));
    Value* value = b_.CreateLoad(whole, LaneSlot(stored, whole, lane));
    b_.CreateAlignedStore(value, Pointer(address, place), llvm::Align(access.element_bytes),
                          /*isVolatile=*/true);
  });
}

}  // namespace torpor::emulator
