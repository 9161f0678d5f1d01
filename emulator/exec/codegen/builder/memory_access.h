#pragma once

#include <vector>

#include "emulator/exec/codegen/builder/access_check.h"
#include "emulator/exec/codegen/builder/address.h"
#include "emulator/exec/codegen/builder/address_builder.h"
#include "emulator/exec/codegen/builder/lane_builder.h"
#include "emulator/exec/interface/warp_context.h"

namespace torpor::emulator {

// Loads and stores of a warp, in as few processor instructions as the pattern of the lanes'
// addresses allows. Checks every access first; `mask` holds the accessing lanes.
class MemoryAccess {
 public:
  using Value = llvm::Value;

  // Notes in `traits` whether lanes write to global memory apart.
  MemoryAccess(LaneBuilder& code, AddressBuilder& addresses, AccessCheck& check, CodeTraits& traits)
      : code_(code), addresses_(addresses), check_(check), traits_(traits) {}

  AddressBuilder& addresses() { return addresses_; }
  AccessCheck& check() { return check_; }

  // Returns a value for each element: a scalar if the address is uniform, else 32 lanes.
  std::vector<Value*> Load(const LaneAddress& address, const Access& access, Value* mask);
  // Takes a value for each element, scalar or of 32 lanes. If lanes write to the same place, the
  // last lane wins.
  void Store(const LaneAddress& address, const Access& access, const std::vector<Value*>& values,
             Value* mask);
  // As Load and Store, but other threads see all elements of a lane change at once. The access is
  // whole (Access::is_whole).
  std::vector<Value*> LoadWhole(const LaneAddress& address, const Access& access, Value* mask);
  void StoreWhole(const LaneAddress& address, const Access& access,
                  const std::vector<Value*>& values, Value* mask);
  // Whether the lanes' elements lie one after the other, lane 0's first.
  bool IsContiguous(const LaneAddress& address, const Access& access) const;

 private:
  unsigned row_lanes() const { return code_.row_lanes(); }
  bool HasContiguousRows(const LaneAddress& address, const Access& access) const;
  std::vector<Value*> LoadContiguous(const LaneAddress& address, const Access& access, Value* mask);
  std::vector<Value*> LoadRows(const LaneAddress& address, const Access& access, Value* mask);
  std::vector<Value*> LoadRowScalars(const LaneAddress& row, const Access& access, Value* mask);
  std::vector<Value*> LoadUniformRows(const LaneAddress& address, const Access& access,
                                      Value* mask);
  std::vector<Value*> Gather(const LaneAddress& address, const Access& access, Value* mask);
  Value* GatherSmall(LaneAddress address, Value* addresses, const Access& access, Value* mask);
  void PrefetchNextTile(const LaneAddress& address, const Access& access);
  std::vector<Value*> PartElements(Value* all, const Access& access);
  Value* JoinElements(const std::vector<Value*>& values, const Access& access);
  void StoreContiguous(const LaneAddress& address, const Access& access,
                       const std::vector<Value*>& values, Value* mask);
  void StoreRows(const LaneAddress& address, const Access& access, Value* value, Value* mask);
  void StoreUniform(const LaneAddress& address, const Access& access,
                    const std::vector<Value*>& values, Value* mask);
  void Scatter(const LaneAddress& address, const Access& access, const std::vector<Value*>& values,
               Value* mask);
  llvm::Type* WholeType(const Access& access);

  LaneBuilder& code_;
  AddressBuilder& addresses_;
  AccessCheck& check_;
  CodeTraits& traits_;
};

}  // namespace torpor::emulator
