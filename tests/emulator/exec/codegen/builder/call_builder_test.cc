#include "emulator/exec/codegen/builder/call_builder.h"

#include "tests/emulator/exec/codegen/builder/builder_test.h"

namespace torpor::emulator {
namespace {

using CallBuilderTest = BuilderTest;

TEST_F(CallBuilderTest, CallsForTheLanesOfAMaskAndRecordsWhatEnded) {
  Open("call f;\nret;", ".func f()\n{\nret;\n}\n");
  FunctionDeclarations declarations(*module_, generated_.module());
  ParameterMemory parameters(code(), *source_);
  EndedLanes ended(code(), source_->function);
  CallBuilder calls(parts_->operands, parameters, declarations, ended);
  const std::uint32_t index = module_->FindFunction("f");
  calls.Call(index, {}, Mask(0xf));
  calls.Call(index, {}, Mask(0x100));
  StoreResult(0, ended.Load());
  Close();

  // A body for `f`: all lanes that call end in it.
  llvm::Function* const function = declarations.Of(index);
  EXPECT_EQ(function, declarations.Of(index));
  LaneBuilder body(*function, 32);
  body->CreateRet(function->getArg(1));
  Run();
  EXPECT_EQ(results_[0][0], 0x10fU);
}

TEST_F(CallBuilderTest, OnlyFunctionsRecordLanesThatExit) {
  Open("exit;");
  EndedLanes of_kernel(code(), source_->function);
  of_kernel.RecordBranch(instruction(0), Mask(0xf));
  StoreResult(0, of_kernel.Load());
  ptx::Function function = source_->function;
  function.is_kernel = false;
  EndedLanes of_function(code(), function);
  of_function.RecordBranch(instruction(0), Mask(0xf));
  StoreResult(1, of_function.Load());
  Close();
  Run();
  EXPECT_EQ(results_[0][0], 0U);
  EXPECT_EQ(results_[1][0], 0xfU);
}

}  // namespace
}  // namespace torpor::emulator
