#pragma once

#include "emulator/exec/codegen/builder/lane_builder.h"
#include "emulator/ptx/module.h"

namespace torpor::emulator {

// Records the lanes that ended in the function or in functions called, as bits of an i32. Device
// functions return the bits: the callers go on without such lanes.
class EndedLanes {
 public:
  using Value = llvm::Value;

  // Allocates a slot where `code` builds.
  EndedLanes(LaneBuilder& code, const ptx::Function& function)
      : code_(code), function_(function), slot_(code->CreateAlloca(code->getInt32Ty())) {
    code_->CreateStore(code_->getInt32(0), slot_);
  }

  Value* Load() { return code_->CreateLoad(code_->getInt32Ty(), slot_); }
  void Record(Value* bits) {
    Value* ended = Load();
    code_->CreateStore(code_->CreateOr(ended, bits), slot_);
  }
  // Records the lanes of the mask if `branch` ends threads. A kernel needs no record.
  void RecordBranch(const ptx::Instruction& branch, Value* mask) {
    if (function_.is_kernel || branch.opcode != ptx::Opcode::kExit) return;
    Record(code_.MaskBits(mask));
  }

 private:
  LaneBuilder& code_;
  const ptx::Function& function_;
  llvm::AllocaInst* slot_;
};

}  // namespace torpor::emulator
