// Addresses that are contiguous in each row of a block whose rows are shorter than a warp: a few
// vector accesses instead of a gather.
#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

bool FunctionEmitter::IsContiguous(const Address& address, const Access& access) const {
  const std::int64_t bytes = access.bytes();
  return address.linear() && address.shape.stride == bytes &&
         (row_lanes() == kWarpLanes || address.shape.row_stride == bytes * row_lanes());
}

bool FunctionEmitter::HasContiguousRows(const Address& address, const Access& access) const {
  const std::int64_t stride = address.shape.stride;
  return address.shape.stepped() && row_lanes() < kWarpLanes && access.element_bytes >= 4 &&
         (stride == 0 || stride == access.bytes());
}

// The addresses of the first lanes of all rows, which are not linear.
llvm::Value* FunctionEmitter::RowStarts(const Address& address) {
  std::vector<int> indices;
  for (unsigned lane = 0; lane < kWarpLanes; lane += row_lanes()) {
    indices.push_back(static_cast<int>(lane));
  }
  return b_.CreateShuffleVector(address.value, indices);
}

// The address of the first lane of a row.
FunctionEmitter::Address FunctionEmitter::RowOf(const Address& address, unsigned row) {
  Address result = address;
  if (address.linear()) {
    const std::uint64_t step = row * static_cast<std::uint64_t>(address.shape.row_stride);
    result.value = b_.CreateAdd(address.value, Like(address.value, step));
  } else {
    result.value = b_.CreateExtractElement(address.value, std::uint64_t{row} * row_lanes());
  }
  return result;
}

llvm::Value* FunctionEmitter::RowPart(Value* lanes, unsigned row) {
  std::vector<int> indices;
  for (unsigned i = 0; i < row_lanes(); ++i) {
    indices.push_back(static_cast<int>(row * row_lanes() + i));
  }
  return b_.CreateShuffleVector(lanes, indices);
}

// The elements that all lanes of a row load; none is loaded where no lane wants it.
std::vector<llvm::Value*> FunctionEmitter::LoadRowScalars(const Address& row, const Access& access,
                                                          Value* mask) {
  const auto load = [&] {
    std::vector<Value*> values;
    for (unsigned i = 0; i < access.count; ++i) {
      const Address at = Advanced(row, std::uint64_t{i} * access.element_bytes);
      values.push_back(b_.CreateAlignedLoad(access.element, Pointer(at, at.value),
                                            llvm::Align(access.element_bytes)));
    }
    return values;
  };
  if (const auto* constant = llvm::dyn_cast<llvm::Constant>(mask)) {
    if (constant->isAllOnesValue()) return load();
  }
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* wanted = NewBlock("row");
  llvm::BasicBlock* after = NewBlock("row_done");
  b_.CreateCondBr(b_.CreateOrReduce(mask), wanted, after);
  b_.SetInsertPoint(wanted);
  std::vector<Value*> values = load();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  for (Value*& value : values) {
    llvm::PHINode* either = b_.CreatePHI(access.element, 2);
    either->addIncoming(value, wanted);
    either->addIncoming(llvm::PoisonValue::get(access.element), before);
    value = either;
  }
  return values;
}

std::vector<llvm::Value*> FunctionEmitter::LoadUniformRows(const Address& address,
                                                           const Access& access, Value* mask) {
  std::vector<std::vector<Value*>> parts(access.count);  // of each element, by row
  for (unsigned row = 0; row < kWarpLanes / row_lanes(); ++row) {
    const std::vector<Value*> scalars =
        LoadRowScalars(RowOf(address, row), access, RowPart(mask, row));
    for (unsigned i = 0; i < access.count; ++i) {
      parts[i].push_back(b_.CreateVectorSplat(row_lanes(), scalars[i]));
    }
  }
  std::vector<Value*> values;
  values.reserve(parts.size());
  for (std::vector<Value*>& of_element : parts) {
    values.push_back(Concatenate(std::move(of_element)));
  }
  return values;
}

std::vector<llvm::Value*> FunctionEmitter::LoadRows(const Address& address, const Access& access,
                                                    Value* mask) {
  if (address.shape.stride == 0) return LoadUniformRows(address, access, mask);
  const unsigned rows = kWarpLanes / row_lanes();
  auto* row_type = llvm::FixedVectorType::get(access.element, row_lanes() * access.count);
  const auto load = [&](const Address& at, Value* row_mask) {
    return b_.CreateMaskedLoad(row_type, Pointer(at, at.value), llvm::Align(access.element_bytes),
                               Repeat(row_mask, access.count));
  };
  std::vector<Value*> parts;
  if (address.linear() && address.shape.row_stride == 0) {
    Value* any = RowPart(mask, 0);
    for (unsigned row = 1; row < rows; ++row) any = b_.CreateOr(any, RowPart(mask, row));
    parts.assign(rows, load(address, any));
  } else {
    for (unsigned row = 0; row < rows; ++row) {
      parts.push_back(load(RowOf(address, row), RowPart(mask, row)));
    }
  }
  return PartElements(Concatenate(std::move(parts)), access);
}

// Later rows win where they overlap, as lanes do in a scatter.
void FunctionEmitter::StoreRows(const Address& address, const Access& access, Value* value,
                                Value* mask) {
  for (unsigned row = 0; row < kWarpLanes / row_lanes(); ++row) {
    const Address at = RowOf(address, row);
    b_.CreateMaskedStore(RowPart(value, row), Pointer(at, at.value),
                         llvm::Align(access.element_bytes), RowPart(mask, row));
  }
}

// A power of two of equally long vectors.
llvm::Value* FunctionEmitter::Concatenate(std::vector<Value*> parts) {
  while (parts.size() > 1) {
    std::vector<Value*> joined;
    for (std::size_t i = 0; i < parts.size(); i += 2) {
      const auto width = llvm::cast<llvm::FixedVectorType>(parts[i]->getType())->getNumElements();
      std::vector<int> indices;
      for (unsigned k = 0; k < 2 * width; ++k) indices.push_back(static_cast<int>(k));
      joined.push_back(b_.CreateShuffleVector(parts[i], parts[i + 1], indices));
    }
    parts = std::move(joined);
  }
  return parts[0];
}

}  // namespace torpor::emulator
