#pragma once

#include <cstdint>

#include "emulator/exec/codegen/builder/context_builder.h"
#include "emulator/exec/codegen/builder/lane_builder.h"

namespace torpor::emulator {

// The warp's stack of local memory and the function's frame on it: lane after lane, each lane with
// all of the function's variables.
class LocalStack {
 public:
  using Value = llvm::Value;

  LocalStack(LaneBuilder& code, ContextBuilder& context) : code_(code), context_(context) {}

  // Begins a frame of `bytes`; the kernel ends if the stack has no room.
  void Open(std::uint64_t bytes);
  // Frees the frame and all later allocations. Does nothing without a frame.
  void Close();
  // Where the frame begins; null without a frame.
  Value* frame() const { return frame_; }
  // Where free memory begins, as `type`: a pointer or an i64.
  Value* Top(llvm::Type* type);
  void SetTop(Value* top);
  // As SetTop; the kernel ends if the stack has no room up to `top`, a pointer.
  void MoveTop(Value* top);

 private:
  LaneBuilder& code_;
  ContextBuilder& context_;
  Value* frame_ = nullptr;
};

}  // namespace torpor::emulator
