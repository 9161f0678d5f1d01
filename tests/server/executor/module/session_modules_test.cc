#include "server/executor/module/session_modules.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/server/executor/session/batch_test.h"

namespace torpor::executor {
namespace {

const std::vector<std::string> kVariables = {"counter"};

constexpr const char* kTenant = "tenant";

// Sessions' modules on one GPU. They share an image, which is nothing to them, but have blocks of
// their own.
class SessionModulesTest : public BatchTest {
 protected:
  // Module 1 with its block at `block`.
  void Load(SessionModules& modules, std::uint64_t block,
            const std::vector<std::uint8_t>& image = EmptyFatbin()) {
    const Sha256Digest digest = Sha256(image.data(), image.size());
    ASSERT_TRUE(s_.modules->Store(digest, kTenant, image).ok());
    wire::ModuleLoadResult result;
    ASSERT_TRUE(modules.Load(1, digest, kVariables, false, &result).ok());
    EXPECT_EQ(result.globals_bytes, 32u) << "a header and one variable";
    const auto is_own = modules.BindGlobals(1, block, s_.stream);
    ASSERT_TRUE(is_own.ok());
    if (*is_own) {
      ASSERT_TRUE(modules.TakeOwn(1, s_.stream).ok());
    }
    ASSERT_TRUE(modules.CreateKernel(2, 1, "record").ok());
  }
  static std::uint64_t& ValueOf(const SessionModules& modules) {
    return *reinterpret_cast<std::uint64_t*>(modules.FindVariable(1, "counter")->address);
  }

  SessionModules ours_{*s_.device, *s_.modules, s_.memory->image(), kTenant};
  SessionModules theirs_{*s_.device, *s_.modules, s_.memory->image(), kTenant};
  const std::uint64_t our_block_ = base();
  const std::uint64_t their_block_ = base() + 4096;
};

TEST_F(SessionModulesTest, AModuleWhoseCodeUsesNoVariablesIsLoadedOnce) {
  Load(ours_, our_block_);
  Load(theirs_, their_block_);
  EXPECT_EQ(s_.cuda.modules_loaded(), 1u);
  EXPECT_TRUE(ours_.IsShared(1));
  EXPECT_FALSE(ours_.FindKernel(2)->reads_variables);
  const std::uint64_t variable = ours_.FindVariable(1, "counter")->address;
  EXPECT_FALSE(ours_.OwnsVariable(variable, 8)) << "whoever guesses the address";
  const std::vector<std::uint8_t> parameters(reinterpret_cast<const std::uint8_t*>(&variable),
                                             reinterpret_cast<const std::uint8_t*>(&variable + 1));
  EXPECT_FALSE(ours_.PointToVariable(parameters));
}

// Somebody may have heard of the hash. Whether the module is loaded already makes no difference.
TEST_F(SessionModulesTest, AHashAloneTellsAnotherTenantNothing) {
  Load(ours_, our_block_);
  SessionModules others(*s_.device, *s_.modules, s_.memory->image(), "another tenant");
  const std::vector<std::uint8_t> image = EmptyFatbin();
  const Sha256Digest digest = Sha256(image.data(), image.size());
  wire::ModuleLoadResult result;
  EXPECT_TRUE(absl::IsNotFound(others.Load(1, digest, kVariables, false, &result)));
  EXPECT_TRUE(result.kernels.empty());
  EXPECT_FALSE(others.CreateKernel(2, 1, "record").ok());
  ASSERT_TRUE(others.Store(digest, image).ok());
  EXPECT_TRUE(others.Load(1, digest, kVariables, false, &result).ok()) << "it has the bytes itself";
}

TEST_F(SessionModulesTest, OneWhoseCodeDoesIsEachSessionsOwn) {
  Load(ours_, our_block_, UsingModule());
  Load(theirs_, their_block_, UsingModule());
  EXPECT_EQ(s_.cuda.modules_loaded(), 2u);
  EXPECT_FALSE(ours_.IsShared(1));
  EXPECT_TRUE(ours_.FindKernel(2)->reads_variables);
  ValueOf(ours_) = 42;
  EXPECT_EQ(ValueOf(theirs_), 0u);
}

TEST_F(SessionModulesTest, VariablesThatNobodyRegisteredCountToo) {
  const std::vector<std::uint8_t> image = UsingModule();
  const Sha256Digest digest = Sha256(image.data(), image.size());
  ASSERT_TRUE(s_.modules->Store(digest, kTenant, image).ok());
  EXPECT_FALSE(s_.modules->Load(digest, kTenant, {}, false)->is_shared);
  EXPECT_FALSE(s_.modules->Load(digest, kTenant, {}, true)->is_shared);
}

TEST_F(SessionModulesTest, SessionsThatAskForOtherVariablesShareNothing) {
  const std::vector<std::uint8_t> image = EmptyFatbin();
  const Sha256Digest digest = Sha256(image.data(), image.size());
  ASSERT_TRUE(s_.modules->Store(digest, kTenant, image).ok());
  const auto none = s_.modules->Load(digest, kTenant, {}, false)->module;
  const auto named = s_.modules->Load(digest, kTenant, kVariables, false)->module;
  EXPECT_TRUE(none->variables().empty());
  EXPECT_EQ(named->variables().size(), 1u);
  EXPECT_EQ(s_.modules->Load(digest, kTenant, kVariables, false)->module, named);
}

TEST_F(SessionModulesTest, WhoTakesItsOwnIsNotSeenByOthers) {
  Load(ours_, our_block_);
  Load(theirs_, their_block_);
  const CUfunction shared = ours_.FindKernel(2)->kernel->function;
  ASSERT_TRUE(ours_.TakeOwn(1, s_.stream).ok());
  EXPECT_EQ(s_.cuda.modules_loaded(), 2u);
  EXPECT_FALSE(ours_.IsShared(1));
  EXPECT_TRUE(ours_.FindKernel(2)->reads_variables);
  EXPECT_NE(ours_.FindKernel(2)->kernel->function, shared);
  EXPECT_EQ(theirs_.FindKernel(2)->kernel->function, shared);
  ValueOf(ours_) = 42;
  EXPECT_EQ(ValueOf(theirs_), 0u);
  EXPECT_TRUE(ours_.OwnsVariable(ours_.FindVariable(1, "counter")->address, 8));
  ASSERT_TRUE(ours_.SaveVariables(s_.stream).ok());
  ASSERT_TRUE(theirs_.SaveVariables(s_.stream).ok());

  // Both come to another GPU.
  SessionModules ours_there(*s_.device, *s_.modules, s_.memory->image(), kTenant);
  SessionModules theirs_there(*s_.device, *s_.modules, s_.memory->image(), kTenant);
  Load(ours_there, our_block_);
  Load(theirs_there, their_block_);
  EXPECT_FALSE(ours_there.IsShared(1));
  EXPECT_EQ(ValueOf(ours_there), 42u);
  EXPECT_TRUE(theirs_there.IsShared(1));
  EXPECT_EQ(ValueOf(theirs_there), 0u);
}

TEST_F(SessionModulesTest, AKernelsLimitOutlivesTheExchange) {
  Load(ours_, our_block_);
  constexpr auto kLimit = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  ASSERT_TRUE(ours_.SetAttribute(2, kLimit, 100).ok());
  ASSERT_TRUE(ours_.TakeOwn(1, s_.stream).ok());
  EXPECT_EQ(ours_.FindKernel(2)->dynamic_shared, 100);
  int value = 0;
  s_.cuda.driver().FuncGetAttribute(&value, kLimit, ours_.FindKernel(2)->kernel->function);
  EXPECT_EQ(value, 100);
}

TEST_F(SessionModulesTest, TheLastSessionUnloadsIt) {
  Load(ours_, our_block_);
  Load(theirs_, their_block_);
  ASSERT_TRUE(ours_.Unload(1).ok());
  ASSERT_TRUE(theirs_.Unload(1).ok());
  Load(ours_, our_block_);
  EXPECT_EQ(s_.cuda.modules_loaded(), 2u);
}

// By the session's calls.
class SharedModuleTest : public BatchTest {
 protected:
  void SetUp() override {
    LoadKernel(kVariables);
    ASSERT_EQ(ErrorOf(wire::ModuleBindGlobals{1, base()}), cudaSuccess);
    ASSERT_EQ(s_.cuda.modules_loaded(), 1u);
  }
  void MoveAway() {
    ASSERT_TRUE(s_.session->EndLease({kLease}, SteadyClock().Now() + std::chrono::seconds(1)).ok());
    ASSERT_TRUE(s_.session->SwapOut({.drop = true}, s_.stream, s_.findings).ok());
  }
  void ComeBack() { ASSERT_TRUE(s_.session->SwapIn({{{0, 4096}}}, /*is_whole=*/true).ok()); }
};

TEST_F(SharedModuleTest, ACopyToAVariableGoesToTheSessionsOwn) {
  const std::uint64_t value = 42;
  wire::MemcpyToSymbol write;
  write.module = 1;
  write.variable = "counter";
  write.bytes = sizeof value;
  write.data = {reinterpret_cast<const std::uint8_t*>(&value), sizeof value};
  EXPECT_EQ(ErrorOf(write), cudaSuccess);
  EXPECT_EQ(s_.cuda.modules_loaded(), 2u);
  EXPECT_EQ(s_.cuda.variable(1), 0u);
  EXPECT_EQ(s_.cuda.variable(2), 42u);
  MoveAway();
  s_.cuda.SetVariable(0);
  ComeBack();
  EXPECT_EQ(s_.cuda.variable(2), 42u);
}

TEST_F(SharedModuleTest, SoDoesAskingForItsAddress) {
  wire::SymbolAddress ask;
  ask.module = 1;
  ask.variable = "counter";
  EXPECT_EQ(Call(BatchBuilder().Add(ask)).status, 0);
  EXPECT_EQ(s_.cuda.modules_loaded(), 2u);
  ask.variable = "nobody";
  EXPECT_EQ(Call(BatchBuilder().Add(ask)).status, cudaErrorInvalidSymbol);
  EXPECT_EQ(s_.cuda.modules_loaded(), 2u);
}

TEST_F(SharedModuleTest, ASwapTouchesNothingOfAModuleThatIsShared) {
  s_.cuda.SetVariable(42);
  MoveAway();
  s_.cuda.SetVariable(43);
  ComeBack();
  EXPECT_EQ(s_.cuda.variable(), 43u);
  EXPECT_EQ(s_.cuda.modules_loaded(), 1u);
}

TEST_F(SharedModuleTest, WhatWasNamedOnAnotherGpuIsTheSessionsOwnHereToo) {
  SessionModules there(*s_.device, *s_.modules, s_.memory->image(), s_.memory->tenant());
  const std::vector<std::uint8_t> image = EmptyFatbin();
  ASSERT_TRUE(there.Load(1, Sha256(image.data(), image.size()), kVariables, false, nullptr).ok());
  ASSERT_TRUE(there.BindGlobals(1, base(), s_.stream).ok());
  ASSERT_TRUE(there.TakeOwn(1, s_.stream).ok());
  s_.cuda.SetVariable(42);
  ASSERT_TRUE(there.SaveVariables(s_.stream).ok());
  MoveAway();
  ComeBack();
  EXPECT_EQ(s_.cuda.modules_loaded(), 3u);
  EXPECT_EQ(s_.cuda.variable(3), 42u);
  EXPECT_EQ(s_.cuda.variable(1), 0u);
}

}  // namespace
}  // namespace torpor::executor
