#include "emulator/exec/codegen/builder/context_builder.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "tests/emulator/exec/codegen/builder/generated_function.h"

namespace torpor::emulator {
namespace {

TEST(ContextBuilderTest, ReadsAndWritesFields) {
  GeneratedFunction generated;
  LaneBuilder code(generated.function(), 32);
  ContextBuilder context(code, generated.function().getArg(0));
  code->CreateStore(code->getInt32(5), context.Place(offsetof(WarpContext, resume_point)));
  code->CreateRet(context.Field(offsetof(WarpContext, warps), code->getInt32Ty()));
  WarpContext warp;
  warp.warps = 12;
  EXPECT_EQ(generated.Run(&warp), 12U);
  EXPECT_EQ(warp.resume_point, 5U);
}

TEST(ContextBuilderTest, CallsTheRuntime) {
  GeneratedFunction generated;
  LaneBuilder code(generated.function(), 32);
  ContextBuilder context(code, generated.function().getArg(0));
  code->CreateRet(
      context.Call(offsetof(RuntimeCalls, yield), code->getInt32Ty(), {context.pointer()}));
  RuntimeCalls calls = {};
  calls.yield = [](WarpContext* warp) { return warp->warp + 1; };
  WarpContext warp;
  warp.calls = &calls;
  warp.warp = 41;
  EXPECT_EQ(generated.Run(&warp), 42U);
}

}  // namespace
}  // namespace torpor::emulator
