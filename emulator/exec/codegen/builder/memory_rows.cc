// Accesses to contiguous addresses in each row, for blocks with rows shorter than a warp: a few
// vector accesses instead of a gather.
#include "emulator/exec/codegen/builder/memory_access.h"

namespace torpor::emulator {

bool MemoryAccess::HasContiguousRows(const LaneAddress& address, const Access& access) const {
  const std::int64_t stride = address.shape.stride;
  return address.shape.stepped() && row_lanes() < kWarpLanes && access.element_bytes >= 4 &&
         (stride == 0 || stride == access.bytes());
}

// Loads the elements for all lanes of a row; skips rows without active lanes.
std::vector<llvm::Value*> MemoryAccess::LoadRowScalars(const LaneAddress& row, const Access& access,
                                                       Value* mask) {
  const auto load = [&] {
    std::vector<Value*> values;
    for (unsigned i = 0; i < access.count; ++i) {
      const LaneAddress at = addresses_.Advanced(row, std::uint64_t{i} * access.element_bytes);
      values.push_back(code_->CreateAlignedLoad(access.element, addresses_.Pointer(at, at.value),
                                                llvm::Align(access.element_bytes)));
    }
    return values;
  };
  if (LaneBuilder::IsAllOnes(mask)) return load();
  llvm::BasicBlock* before = code_->GetInsertBlock();
  llvm::BasicBlock* wanted = code_.NewBlock("row");
  llvm::BasicBlock* after = code_.NewBlock("row_done");
  code_->CreateCondBr(code_->CreateOrReduce(mask), wanted, after);
  code_->SetInsertPoint(wanted);
  std::vector<Value*> values = load();
  code_->CreateBr(after);
  code_->SetInsertPoint(after);
  for (Value*& value : values) {
    llvm::PHINode* either = code_->CreatePHI(access.element, 2);
    either->addIncoming(value, wanted);
    either->addIncoming(llvm::PoisonValue::get(access.element), before);
    value = either;
  }
  return values;
}

std::vector<llvm::Value*> MemoryAccess::LoadUniformRows(const LaneAddress& address,
                                                        const Access& access, Value* mask) {
  std::vector<std::vector<Value*>> parts(access.count);  // of each element, by row
  for (unsigned row = 0; row < kWarpLanes / row_lanes(); ++row) {
    const std::vector<Value*> scalars =
        LoadRowScalars(addresses_.RowOf(address, row), access, code_.RowPart(mask, row));
    for (unsigned i = 0; i < access.count; ++i) {
      parts[i].push_back(code_->CreateVectorSplat(row_lanes(), scalars[i]));
    }
  }
  std::vector<Value*> values;
  values.reserve(parts.size());
  for (std::vector<Value*>& of_element : parts) {
    values.push_back(code_.Concatenate(std::move(of_element)));
  }
  return values;
}

std::vector<llvm::Value*> MemoryAccess::LoadRows(const LaneAddress& address, const Access& access,
                                                 Value* mask) {
  if (address.shape.stride == 0) return LoadUniformRows(address, access, mask);
  const unsigned rows = kWarpLanes / row_lanes();
  auto* row_type = llvm::FixedVectorType::get(access.element, row_lanes() * access.count);
  const auto load = [&](const LaneAddress& at, Value* row_mask) {
    return code_->CreateMaskedLoad(row_type, addresses_.Pointer(at, at.value),
                                   llvm::Align(access.element_bytes),
                                   code_.Repeat(row_mask, access.count));
  };
  std::vector<Value*> parts;
  if (address.linear() && address.shape.row_stride == 0) {
    Value* any = code_.RowPart(mask, 0);
    for (unsigned row = 1; row < rows; ++row) any = code_->CreateOr(any, code_.RowPart(mask, row));
    parts.assign(rows, load(address, any));
  } else {
    for (unsigned row = 0; row < rows; ++row) {
      parts.push_back(load(addresses_.RowOf(address, row), code_.RowPart(mask, row)));
    }
  }
  return PartElements(code_.Concatenate(std::move(parts)), access);
}

// Later rows win where they overlap, as lanes do in a scatter.
void MemoryAccess::StoreRows(const LaneAddress& address, const Access& access, Value* value,
                             Value* mask) {
  for (unsigned row = 0; row < kWarpLanes / row_lanes(); ++row) {
    const LaneAddress at = addresses_.RowOf(address, row);
    code_->CreateMaskedStore(code_.RowPart(value, row), addresses_.Pointer(at, at.value),
                             llvm::Align(access.element_bytes), code_.RowPart(mask, row));
  }
}

}  // namespace torpor::emulator
