#include "tests/emulator/exec/codegen/builder/builder_test.h"

#include <cstddef>
#include <utility>

#include "emulator/ptx/parser.h"

namespace torpor::emulator {

BuilderTest::Parts::Parts(const FunctionSource& source, llvm::Function& target)
    : code(target, source.row_lanes()),
      context(code, target.getArg(0)),
      registers(code, source),
      masks(code, context, source, registers),
      stack(code, context),
      addresses(code, context, source, registers, stack, error),
      operands(code, context, source, registers, masks, addresses, error) {}

BuilderTest::BuilderTest() {
  context_.calls = &calls_;
  context_.parameters = reinterpret_cast<const std::uint8_t*>(results_.data());
  context_.mask = 0xffffffff;
}

void BuilderTest::Open(const std::string& body, const std::string& before,
                       const ptx::BlockShape& shape) {
  auto parsed = ptx::Parse(".version 9.0\n.target sm_90\n.address_size 64\n" + before +
                           ".visible .entry k()\n{\n.reg .b32 %r<10>; .reg .b64 %rd<10>;"
                           ".reg .pred %p<10>; .reg .b16 %h<10>;\n" +
                           body + "\n}\n");
  ASSERT_TRUE(parsed) << parsed.failure().message;
  module_ = std::make_unique<ptx::Module>(std::move(*parsed));
  const std::uint32_t kernel = module_->FindFunction("k");
  layout_ = LayOutKernel(*module_, kernel);
  source_ = std::make_unique<FunctionSource>(*module_, kernel, layout_, shape);
  parts_ = std::make_unique<Parts>(*source_, generated_.function());
  parts_->masks.Start();
  parts_->masks.SelectFirst();
  code()->CreateBr(parts_->masks.entry(0));
  parts_->masks.Begin(0);
}

void BuilderTest::Close(std::uint32_t result) {
  code()->CreateRet(code()->getInt32(result));
  for (llvm::BasicBlock& block : generated_.function()) {
    if (block.getTerminator() != nullptr) continue;
    code()->SetInsertPoint(&block);
    code()->CreateUnreachable();
  }
}

void BuilderTest::StoreResult(unsigned index, llvm::Value* value) {
  llvm::Value* const results =
      parts_->context.Field(offsetof(WarpContext, parameters), code()->getPtrTy());
  llvm::Value* const place = code()->CreateConstInBoundsGEP1_64(
      code()->getInt8Ty(), results, std::uint64_t{index} * sizeof(LaneNumbers));
  code()->CreateAlignedStore(code().Resize(value, 32, false), place, llvm::Align(4));
}

llvm::Value* BuilderTest::Mask(std::uint32_t bits) {
  return code().BitsToMask(code()->getInt32(bits));
}

}  // namespace torpor::emulator
