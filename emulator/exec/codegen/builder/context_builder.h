#pragma once

#include <cstddef>
#include <vector>

#include "emulator/exec/codegen/builder/lane_builder.h"

namespace torpor::emulator {

// Reads fields of the warp's WarpContext and calls the runtime behind it. Fields and calls are
// named by offsetof(WarpContext, ...) and offsetof(RuntimeCalls, ...).
class ContextBuilder {
 public:
  using Value = llvm::Value;

  // `context` points to the WarpContext.
  ContextBuilder(LaneBuilder& code, Value* context) : code_(code), context_(context) {}

  Value* pointer() const { return context_; }
  // Loads a field. `invariant` is false for fields that change during a call (from `local` on).
  Value* Field(std::size_t offset, llvm::Type* type, bool invariant = true);
  // Address of a field, for stores.
  Value* Place(std::size_t offset);
  // Calls a function of RuntimeCalls.
  Value* Call(std::size_t offset, llvm::Type* result, const std::vector<Value*>& arguments);

 private:
  LaneBuilder& code_;
  Value* context_;
};

}  // namespace torpor::emulator
