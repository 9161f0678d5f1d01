#pragma once

#include <vector>

#include "emulator/exec/codegen/builder/address.h"
#include "emulator/exec/codegen/builder/address_builder.h"
#include "emulator/exec/codegen/builder/context_builder.h"
#include "emulator/exec/codegen/builder/lane_builder.h"

namespace torpor::emulator {

// Keeps wild pointers inside the device. Addresses in the device's window may fault, and a signal
// handler turns the fault into an error; code checks all other addresses before the access.
class AccessCheck {
 public:
  using Value = llvm::Value;

  AccessCheck(LaneBuilder& code, ContextBuilder& context, AddressBuilder& addresses)
      : code_(code), context_(context), addresses_(addresses) {}

  // Ends the kernel where a lane of `mask` may not access `bytes` (a power of two) at its address,
  // or where the address is no multiple of `bytes`.
  void Check(const LaneAddress& address, unsigned bytes, Value* mask);

 private:
  static bool IsMonotone(const LaneAddress& address);
  static bool IsAlignedStepped(const LaneAddress& address, unsigned bytes);
  Value* SteppedInRange(const LaneAddress& address, unsigned bytes);
  Value* InOneRange(const std::vector<Value*>& addresses, unsigned bytes, ptx::Space space);
  void CheckShared(const LaneAddress& address, unsigned bytes, Value* mask);

  LaneBuilder& code_;
  ContextBuilder& context_;
  AddressBuilder& addresses_;
};

}  // namespace torpor::emulator
