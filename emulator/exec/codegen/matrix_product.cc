#include "emulator/exec/codegen/matrix_product.h"

#include <llvm/IR/IRBuilder.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "emulator/exec/codegen/builder/function_declarations.h"
#include "emulator/exec/interface/warp_context.h"

namespace torpor::emulator {
namespace {

constexpr char kProductAttribute[] = "torpor-matrix-product";

using llvm::Value;
using ptx::MatrixPart;
using ptx::Type;

// Computes a row of D at a time: a vector that sums A's elements times B's rows.
class ProductBuilder {
 public:
  ProductBuilder(llvm::Function& function, const ptx::MatrixInstruction& matrix)
      : function_(function),
        matrix_(matrix),
        b_(function.getContext()),
        depth_(IsBits() ? matrix.k / 32 : matrix.k) {
    number_ = matrix.d == Type::kF64   ? b_.getDoubleTy()
              : ptx::IsFloat(matrix.c) ? b_.getFloatTy()
                                       : static_cast<llvm::Type*>(b_.getInt32Ty());
  }

  void Build() {
    entry_ = llvm::BasicBlock::Create(b_.getContext(), "entry", &function_);
    b_.SetInsertPoint(entry_);
    a_ = ArrangeA();
    b_rows_ = Scratch(depth_ * matrix_.n);
    ArrangeB();
    c_rows_ = HasRows(MatrixPart::kC) ? Argument(MatrixPart::kC) : ArrangeC();
    d_rows_ = HasRows(MatrixPart::kD) ? Argument(MatrixPart::kD) : Scratch(matrix_.m * matrix_.n);
    MultiplyRows();
    if (!HasRows(MatrixPart::kD)) DisarrangeD();
    b_.CreateRetVoid();
  }

 private:
  // Rows computed at once: each row is a chain of dependent steps.
  static constexpr unsigned kRows = 8;

  bool IsBits() const { return matrix_.a == Type::kB1; }
  // Elements in a register of a lane; words of bits count as elements.
  unsigned Packed(MatrixPart part) const {
    if (matrix_.type(part) == Type::kB1) return 1;
    return matrix_.register_bits(part) / ptx::BitWidth(matrix_.type(part));
  }
  // A and B of mma.sync are cut along k, into blocks of four lanes.
  unsigned BlockDepth(MatrixPart part) const { return matrix_.wmma ? depth_ : 4 * Packed(part); }
  // Whether a fragment of C or D is its matrix row by row already, in the type of the sums.
  bool HasRows(MatrixPart part) const { return matrix_.wmma && matrix_.type(part) != Type::kF16; }
  unsigned chunk() const { return number_->isDoubleTy() ? 8 : 16; }

  Value* Argument(MatrixPart part) {
    // Arguments are in the order of the instruction: D, A, B, C.
    return function_.getArg((static_cast<unsigned>(part) + 1) % 4);
  }
  llvm::Type* RegisterType(MatrixPart part) {
    return llvm::FixedVectorType::get(b_.getIntNTy(matrix_.register_bits(part)), kWarpLanes);
  }
  Value* RegisterAt(MatrixPart part, unsigned index) {
    return b_.CreateConstInBoundsGEP1_64(RegisterType(part), Argument(part), index);
  }
  Value* LoadRegister(MatrixPart part, unsigned index) {
    return b_.CreateAlignedLoad(RegisterType(part), RegisterAt(part, index), llvm::Align(64));
  }
  Value* Scratch(unsigned numbers) {
    llvm::IRBuilder<> entry(entry_, entry_->begin());
    llvm::AllocaInst* memory = entry.CreateAlloca(llvm::ArrayType::get(number_, numbers));
    memory->setAlignment(llvm::Align(64));
    return memory;
  }
  Value* NumberAt(Value* memory, std::uint64_t index) {
    return b_.CreateConstInBoundsGEP1_64(number_, memory, index);
  }
  void Store(Value* value, Value* memory, std::uint64_t index) {
    b_.CreateAlignedStore(value, NumberAt(memory, index), llvm::Align(16));
  }
  Value* Load(unsigned numbers, Value* memory, std::uint64_t index) {
    return b_.CreateAlignedLoad(llvm::FixedVectorType::get(number_, numbers),
                                NumberAt(memory, index), llvm::Align(16));
  }

  static unsigned Size(const Value* vector) {
    return llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
  }
  Value* Cast(Value* vector, llvm::Type* scalar) {
    const unsigned bits = Size(vector) * vector->getType()->getScalarSizeInBits();
    return b_.CreateBitCast(
        vector, llvm::FixedVectorType::get(scalar, bits / scalar->getScalarSizeInBits()));
  }
  Value* Splat(const Value* like, std::uint64_t bits) {
    return llvm::ConstantInt::get(like->getType(), bits);
  }
  llvm::Type* Numbers(const Value* like) { return llvm::FixedVectorType::get(number_, Size(like)); }

  // Converts the elements of a register, lane after lane, to numbers.
  Value* Widen(Value* packed, Type type) {
    switch (type) {
      case Type::kF16: {
        Value* halves = Cast(packed, b_.getHalfTy());
        return b_.CreateFPExt(halves, Numbers(halves));
      }
      case Type::kBf16: {
        Value* halves = Cast(packed, b_.getInt16Ty());
        return WidenBits(halves, 16);
      }
      case Type::kTf32:
        return Cast(b_.CreateAnd(packed, Splat(packed, 0xffffe000)), number_);
      case Type::kE4m3:
        return WidenE4m3(Cast(packed, b_.getInt8Ty()));
      case Type::kE5m2: {
        Value* bytes = Cast(packed, b_.getInt8Ty());
        Value* wide =
            b_.CreateZExt(bytes, llvm::FixedVectorType::get(b_.getInt16Ty(), Size(bytes)));
        Value* halves = Cast(b_.CreateShl(wide, Splat(wide, 8)), b_.getHalfTy());
        return b_.CreateFPExt(halves, Numbers(halves));
      }
      case Type::kS8:
      case Type::kU8: {
        Value* bytes = Cast(packed, b_.getInt8Ty());
        return type == Type::kS8 ? b_.CreateSExt(bytes, Numbers(bytes))
                                 : b_.CreateZExt(bytes, Numbers(bytes));
      }
      case Type::kS4:
      case Type::kU4:
        return WidenNibbles(Cast(packed, b_.getInt8Ty()), type == Type::kS4);
      default:
        return Cast(packed, number_);
    }
  }

  // The upper bits of f32.
  Value* WidenBits(Value* bits, unsigned shift) {
    Value* wide = b_.CreateZExt(bits, llvm::FixedVectorType::get(b_.getInt32Ty(), Size(bits)));
    return Cast(b_.CreateShl(wide, Splat(wide, shift)), number_);
  }

  // As f16 the exponent is 8 too low.
  Value* WidenE4m3(Value* bytes) {
    Value* wide = b_.CreateZExt(bytes, llvm::FixedVectorType::get(b_.getInt16Ty(), Size(bytes)));
    Value* magnitude = b_.CreateAnd(wide, Splat(wide, 0x7f));
    Value* sign = b_.CreateShl(b_.CreateAnd(wide, Splat(wide, 0x80)), Splat(wide, 8));
    Value* bits = b_.CreateOr(sign, b_.CreateShl(magnitude, Splat(wide, 7)));
    Value* value = b_.CreateFPExt(Cast(bits, b_.getHalfTy()), Numbers(bytes));
    value = b_.CreateFMul(value, llvm::ConstantFP::get(value->getType(), 256.0));
    Value* nan = b_.CreateICmpEQ(magnitude, Splat(wide, 0x7f));
    return b_.CreateSelect(nan, llvm::ConstantFP::getNaN(value->getType()), value);
  }

  Value* WidenNibbles(Value* bytes, bool is_signed) {
    Value* low = b_.CreateAnd(bytes, Splat(bytes, 15));
    Value* high = b_.CreateLShr(bytes, Splat(bytes, 4));
    Value* nibbles = Interleave(low, high, 0, Size(bytes));
    if (!is_signed) return b_.CreateZExt(nibbles, Numbers(nibbles));
    Value* flipped = b_.CreateXor(nibbles, Splat(nibbles, 8));
    nibbles = b_.CreateSub(flipped, Splat(nibbles, 8));
    return b_.CreateSExt(nibbles, Numbers(nibbles));
  }

  // x[first], y[first], x[first + 1], ...: of `count` elements of each.
  Value* Interleave(Value* x, Value* y, unsigned first, unsigned count) {
    std::vector<int> indices;
    for (unsigned i = 0; i < count; ++i) {
      indices.push_back(static_cast<int>(first + i));
      indices.push_back(static_cast<int>(first + i + Size(x)));
    }
    return b_.CreateShuffleVector(x, y, indices);
  }

  Value* Slice(Value* vector, unsigned first, unsigned count, unsigned step = 1) {
    std::vector<int> indices;
    for (unsigned i = 0; i < count; ++i) indices.push_back(static_cast<int>(first + i * step));
    return b_.CreateShuffleVector(vector, indices);
  }

  void WidenInto(Value* memory, MatrixPart part) {
    const unsigned numbers = kWarpLanes * Packed(part);
    for (unsigned i = 0; i < matrix_.distinct_registers(part); ++i) {
      Store(Widen(LoadRegister(part, i), matrix_.type(part)), memory, std::uint64_t{i} * numbers);
    }
  }

  // Uses doubles in the fragment's order. D may lie at the same place as A: D is written after all
  // rows computed at once.
  Value* ArrangeA() {
    if (matrix_.a == Type::kF64 && matrix_.m == kRows) return Argument(MatrixPart::kA);
    Value* numbers = Scratch(matrix_.m * depth_);
    WidenInto(numbers, MatrixPart::kA);
    return numbers;
  }

  void ArrangeB() {
    if (matrix_.wmma && !matrix_.b_column) return WidenInto(b_rows_, MatrixPart::kB);
    const unsigned block = matrix_.n * BlockDepth(MatrixPart::kB);
    const unsigned registers = block / (kWarpLanes * Packed(MatrixPart::kB));
    for (unsigned first = 0; first < matrix_.distinct_registers(MatrixPart::kB);
         first += registers) {
      std::vector<Value*> chunks;
      for (unsigned i = first; i < first + registers; ++i) {
        Value* wide = Widen(LoadRegister(MatrixPart::kB, i), matrix_.b);
        for (unsigned at = 0; at < Size(wide); at += chunk()) {
          chunks.push_back(Slice(wide, at, chunk()));
        }
      }
      Transpose(chunks);
      for (std::size_t i = 0; i < chunks.size(); ++i) {
        Store(chunks[i], b_rows_, std::uint64_t{first} / registers * block + i * chunk());
      }
    }
  }

  // From n lines to lines of n. To interleave the halves of a sequence moves the highest bit of
  // each element's index to the lowest place; doing so for all bits of n swaps it with the rest.
  void Transpose(std::vector<Value*>& chunks) {
    for (unsigned left = matrix_.n; left > 1; left /= 2) {
      std::vector<Value*> next;
      const std::size_t half = chunks.size() / 2;
      for (std::size_t i = 0; i < half; ++i) {
        next.push_back(Interleave(chunks[i], chunks[i + half], 0, chunk() / 2));
        next.push_back(Interleave(chunks[i], chunks[i + half], chunk() / 2, chunk() / 2));
      }
      chunks = std::move(next);
    }
  }

  Value* ArrangeC() {
    Value* rows = Scratch(matrix_.m * matrix_.n);
    if (matrix_.c == Type::kF16) {
      WidenInto(rows, MatrixPart::kC);
      return rows;
    }
    // mma.sync: two registers hold the even and the odd columns of eight rows.
    for (unsigned i = 0; i < matrix_.distinct_registers(MatrixPart::kC); i += 2) {
      Value* even = Cast(LoadRegister(MatrixPart::kC, i), number_);
      Value* odd = Cast(LoadRegister(MatrixPart::kC, i + 1), number_);
      Store(Interleave(even, odd, 0, kWarpLanes), rows, std::uint64_t{i} * kWarpLanes);
    }
    return rows;
  }

  void StoreRegister(Value* value, unsigned index) {
    b_.CreateAlignedStore(b_.CreateBitCast(value, RegisterType(MatrixPart::kD)),
                          RegisterAt(MatrixPart::kD, index), llvm::Align(64));
  }

  void DisarrangeD() {
    const bool halves = matrix_.d == Type::kF16;
    const unsigned registers = matrix_.distinct_registers(MatrixPart::kD);
    for (unsigned i = 0; i < registers; i += halves ? 1 : 2) {
      const std::uint64_t first = std::uint64_t{i} * kWarpLanes * (halves ? 2 : 1);
      Value* numbers = Load(2 * kWarpLanes, d_rows_, first);
      if (halves) {
        llvm::Type* half = llvm::FixedVectorType::get(b_.getHalfTy(), 2 * kWarpLanes);
        StoreRegister(b_.CreateFPTrunc(numbers, half), i);
        continue;
      }
      StoreRegister(Slice(numbers, 0, kWarpLanes, 2), i);
      StoreRegister(Slice(numbers, 1, kWarpLanes, 2), i + 1);
    }
  }

  // Offset of A's element (0, k).
  unsigned OffsetInA(unsigned k) const {
    if (matrix_.a_column) return k * matrix_.m;
    const unsigned block = BlockDepth(MatrixPart::kA);
    return k / block * matrix_.m * block + k % block;
  }

  void MultiplyRows() {
    llvm::BasicBlock* before = b_.GetInsertBlock();
    llvm::BasicBlock* loop = llvm::BasicBlock::Create(b_.getContext(), "rows", &function_);
    llvm::BasicBlock* after = llvm::BasicBlock::Create(b_.getContext(), "done", &function_);
    b_.CreateBr(loop);
    b_.SetInsertPoint(loop);
    llvm::PHINode* row = b_.CreatePHI(b_.getInt64Ty(), 2);
    row->addIncoming(b_.getInt64(0), before);
    const unsigned row_stride = matrix_.a_column ? 1 : BlockDepth(MatrixPart::kA);
    Value* a = b_.CreateInBoundsGEP(number_, a_, b_.CreateMul(row, b_.getInt64(row_stride)));
    Value* at = b_.CreateMul(row, b_.getInt64(matrix_.n));
    Value* c = b_.CreateInBoundsGEP(number_, c_rows_, at);
    Value* d = b_.CreateInBoundsGEP(number_, d_rows_, at);
    std::vector<Value*> before_sums;
    std::vector<Value*> sums;
    for (unsigned i = 0; i < kRows; ++i) {
      before_sums.push_back(Load(matrix_.n, c, std::uint64_t{i} * matrix_.n));
      sums.push_back(number_->isIntegerTy() ? Splat(before_sums[i], 0) : before_sums[i]);
    }
    for (unsigned k = 0; k < depth_; ++k) {
      Value* b = Load(matrix_.n, b_rows_, std::uint64_t{k} * matrix_.n);
      for (unsigned i = 0; i < kRows; ++i) {
        Value* factor =
            b_.CreateLoad(number_, NumberAt(a, std::uint64_t{i} * row_stride + OffsetInA(k)));
        sums[i] = MultiplyAdd(b_.CreateVectorSplat(matrix_.n, factor), b, sums[i]);
      }
    }
    for (unsigned i = 0; i < kRows; ++i) {
      Value* sum = sums[i];
      if (number_->isIntegerTy()) {
        sum = matrix_.saturates
                  ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::sadd_sat, before_sums[i], sum)
                  : b_.CreateAdd(before_sums[i], sum);
      }
      Store(sum, d, std::uint64_t{i} * matrix_.n);
    }
    Value* next = b_.CreateAdd(row, b_.getInt64(kRows));
    row->addIncoming(next, loop);
    b_.CreateCondBr(b_.CreateICmpULT(next, b_.getInt64(matrix_.m)), loop, after);
    b_.SetInsertPoint(after);
  }

  Value* MultiplyAdd(Value* a, Value* b, Value* sum) {
    if (!number_->isIntegerTy()) {
      return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, sum});
    }
    if (!IsBits()) return b_.CreateAdd(sum, b_.CreateMul(a, b));
    const bool exclusive = matrix_.bit_operation == ptx::MatrixInstruction::BitOperation::kXor;
    Value* bits = exclusive ? b_.CreateXor(a, b) : b_.CreateAnd(a, b);
    return b_.CreateAdd(sum, b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, bits));
  }

  llvm::Function& function_;
  const ptx::MatrixInstruction& matrix_;
  llvm::IRBuilder<> b_;
  unsigned depth_;
  llvm::Type* number_ = nullptr;
  llvm::BasicBlock* entry_ = nullptr;
  Value* a_ = nullptr;  // as numbers, in the fragment's order
  Value* b_rows_ = nullptr;
  Value* c_rows_ = nullptr;
  Value* d_rows_ = nullptr;
};

}  // namespace

llvm::Function* MatrixProduct(llvm::Module& module, const ptx::MatrixInstruction& matrix,
                              std::string_view name) {
  const llvm::StringRef symbol(name.data(), name.size());
  if (llvm::Function* made = module.getFunction(symbol)) return made;
  llvm::LLVMContext& context = module.getContext();
  const std::vector<llvm::Type*> arguments(4, llvm::PointerType::get(context, 0));
  llvm::Function* function = llvm::Function::Create(
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), arguments, false),
      llvm::Function::InternalLinkage, symbol, module);
  SetTargetAttributes(*function);
  // There are thousands of calls in some kernels.
  function->addFnAttr(llvm::Attribute::NoInline);
  function->addFnAttr(kProductAttribute);
  function->setOnlyAccessesArgMemory();
  for (llvm::Argument& argument : function->args()) {
    argument.addAttr(llvm::Attribute::NoCapture);
  }
  ProductBuilder(*function, matrix).Build();
  return function;
}

bool HasMatrixProduct(const llvm::Module& module) {
  return std::any_of(module.begin(), module.end(), [](const llvm::Function& function) {
    return function.hasFnAttribute(kProductAttribute);
  });
}

}  // namespace torpor::emulator
