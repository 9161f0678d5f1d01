#include "emulator/ptx/link.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "emulator/ptx/parser.h"

namespace torpor::ptx {
namespace {

bool IsPrint(std::string_view name) { return name == "vprintf"; }

Result<Module, LinkError> LinkTexts(const std::vector<std::string>& texts) {
  std::vector<LinkPart> parts;
  for (const std::string& text : texts) {
    auto parsed = Parse(".version 9.0\n.target sm_75\n.address_size 64\n" + text);
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.failure().message);
    parts.push_back({"part " + std::to_string(parts.size() + 1), std::move(*parsed)});
  }
  return Link(std::move(parts), IsPrint);
}

Module MustLink(const std::vector<std::string>& texts) {
  auto linked = LinkTexts(texts);
  EXPECT_TRUE(linked) << (linked ? "" : linked.failure().message);
  return linked ? std::move(*linked) : Module{};
}

std::string ErrorOf(const std::vector<std::string>& texts) {
  const auto linked = LinkTexts(texts);
  return linked ? "" : linked.failure().message;
}

std::uint32_t IndexOf(const Module& module, std::string_view name) {
  for (std::uint32_t i = 0; i < module.variables.size(); ++i) {
    if (module.variables[i].name == name) return i;
  }
  return kNoIndex;
}

std::size_t Count(const Module& module, std::string_view name) {
  return static_cast<std::size_t>(
      std::count_if(module.variables.begin(), module.variables.end(),
                    [&](const Variable& variable) { return variable.name == name; }));
}

const Operand& LastOperand(const Module& module, std::string_view function, std::size_t at) {
  const std::uint32_t index = module.FindFunction(function);
  EXPECT_NE(index, kNoIndex) << function;
  return module.functions[index].instructions[at].operands.back();
}

constexpr char kReadX[] =
    ".extern .global .u32 x;\n"
    ".visible .func read() { .reg .b32 %r<2>; ld.global.u32 %r1, [x+4]; ret; }";

TEST(LinkTest, CallsOfAnotherPartMayEndThreads) {
  const Module module =
      MustLink({".extern .func leave();\n.extern .func stay();\n"
                ".visible .entry k() { call leave; call stay; ret; }",
                ".visible .func leave() { exit; }\n.visible .func stay() { ret; }"});
  const Function& kernel = module.functions[module.FindFunction("k")];
  EXPECT_TRUE(kernel.instructions[0].ends_threads);
  EXPECT_FALSE(kernel.instructions[1].ends_threads);
}

TEST(LinkTest, UsesFindTheirDefinition) {
  const Module module = MustLink({kReadX, ".visible .global .u32 x = 7;"});
  EXPECT_EQ(Count(module, "x"), 1U);
  const std::uint32_t x = IndexOf(module, "x");
  ASSERT_NE(x, kNoIndex);
  EXPECT_EQ(module.variables[x].initial.size(), 4U);
  const Operand& use = LastOperand(module, "read", 0);
  EXPECT_EQ(use.symbol, x);
  EXPECT_EQ(use.bits, 4U);
}

TEST(LinkTest, FunctionsOfOtherParts) {
  const Module module =
      MustLink({".extern .func (.param .b32 r) f(.param .b32 p);\n"
                ".visible .entry k() { .param .b32 a; .param .b32 b; call (b), f, (a); ret; }",
                ".global .u32 pad;\n.visible .func (.param .b32 r) f(.param .b32 p) { ret; }"});
  const std::uint32_t f = module.FindFunction("f");
  ASSERT_NE(f, kNoIndex);
  EXPECT_TRUE(module.functions[f].has_body);
  EXPECT_EQ(module.functions.size(), 2U);
  const std::uint32_t k = module.FindFunction("k");
  const auto& operands = module.functions[k].instructions[0].operands;
  EXPECT_EQ(operands[1].symbol, f);
  // The functions' own variables follow them.
  EXPECT_EQ(module.variables[operands[2].elements[0].symbol].name, "a");
  EXPECT_EQ(module.variables[operands[2].elements[0].symbol].function, k);
  EXPECT_EQ(module.variables[module.functions[f].parameters[0]].function, f);
  EXPECT_EQ(Count(module, "p"), 1U) << "the prototype's parameter is gone";
}

TEST(LinkTest, LocalNamesStayApart) {
  const std::string unit = ".global .u32 own = ";
  const std::string reader =
      "() { .reg .b32 %r<2>; ld.global.u32 %r1, [own]; call helper; ret; }\n";
  const std::string helper = ";\n.func helper() { ret; }\n.visible .func ";
  const Module module =
      MustLink({unit + "1" + helper + "a" + reader, unit + "2" + helper + "b" + reader});
  EXPECT_EQ(Count(module, "own"), 2U);
  EXPECT_EQ(module.functions.size(), 4U);
  EXPECT_EQ(module.variables[LastOperand(module, "a", 0).symbol].initial[0], 1);
  EXPECT_EQ(module.variables[LastOperand(module, "b", 0).symbol].initial[0], 2);
  EXPECT_NE(LastOperand(module, "a", 1).symbol, LastOperand(module, "b", 1).symbol);
}

TEST(LinkTest, WeakGivesWayAndTheFirstIsTaken) {
  const std::string weak = ".weak .global .u32 w = ";
  Module module = MustLink({weak + "1;", weak + "2;"});
  EXPECT_EQ(module.variables.at(IndexOf(module, "w")).initial[0], 1);
  module = MustLink({weak + "1;", ".visible .global .u32 w = 3;", weak + "2;"});
  EXPECT_EQ(Count(module, "w"), 1U);
  EXPECT_EQ(module.variables.at(IndexOf(module, "w")).initial[0], 3);
  module = MustLink({".weak .func f() { .local .b8 l[8]; ret; }",
                     ".weak .func f() { .local .b8 l[8]; ret; }\n.visible .func g() { call f; }"});
  EXPECT_EQ(module.functions.size(), 2U);
  EXPECT_EQ(Count(module, "l"), 1U) << "what belongs to a dropped function goes with it";
  EXPECT_EQ(LastOperand(module, "g", 0).symbol, module.FindFunction("f"));
}

TEST(LinkTest, TheLargestCommonIsTaken) {
  const Module module =
      MustLink({".common .global .align 16 .b8 c[4];", ".common .global .align 4 .b8 c[64];",
                ".common .global .align 4 .b8 c[8];"});
  ASSERT_EQ(Count(module, "c"), 1U);
  EXPECT_EQ(module.variables[0].bytes, 64U);
  EXPECT_EQ(module.variables[0].align, 16U);
}

TEST(LinkTest, DynamicSharedMemoryIsOneArray) {
  const std::string text = " .b8 pool[];\n.visible .func ";
  const std::string body = "() { .reg .b64 %rd<2>; mov.u64 %rd1, pool; ret; }";
  const Module module = MustLink({".extern .shared .align 4" + text + "a" + body,
                                  ".extern .shared .align 16" + text + "b" + body});
  ASSERT_EQ(Count(module, "pool"), 1U);
  EXPECT_EQ(module.variables[IndexOf(module, "pool")].align, 16U);
  EXPECT_EQ(LastOperand(module, "a", 0).symbol, LastOperand(module, "b", 0).symbol);
}

TEST(LinkTest, InitialisersPointAcrossParts) {
  const Module module =
      MustLink({".extern .global .u32 x;\n.extern .func f();\n"
                ".visible .global .u64 table[2] = {generic(x), f};",
                ".visible .func f() { ret; }\n.visible .global .u32 pad;\n"
                ".visible .global .u32 x;"});
  const auto& relocations = module.variables[IndexOf(module, "table")].relocations;
  ASSERT_EQ(relocations.size(), 2U);
  EXPECT_EQ(relocations[0].symbol, IndexOf(module, "x"));
  EXPECT_EQ(relocations[1].symbol, module.FindFunction("f"));
}

TEST(LinkTest, ASystemFunctionIsDeclaredOnce) {
  const std::string print = ".extern .func vprintf();\n.visible .func ";
  const Module module =
      MustLink({print + "a() { call vprintf; }", print + "b() { call vprintf; }"});
  EXPECT_EQ(module.functions.size(), 3U);
  EXPECT_EQ(LastOperand(module, "a", 0).symbol, LastOperand(module, "b", 0).symbol);
}

TEST(LinkTest, WhatIsMissingIsNamed) {
  EXPECT_EQ(ErrorOf({kReadX}), "undefined reference to 'x' in part 1");
  EXPECT_EQ(ErrorOf({".extern .func f();", ".extern .func f();\n.visible .func g() { call f; }"}),
            "undefined reference to 'f' in part 2");
  EXPECT_EQ(ErrorOf({".extern .global .u32 unused;"}), "");
}

TEST(LinkTest, WhatIsDefinedTwiceIsNamed) {
  EXPECT_EQ(ErrorOf({".visible .global .u32 x;", ".visible .global .u32 x;"}),
            "multiple definition of 'x' in part 2, first defined in part 1");
  EXPECT_EQ(ErrorOf({".visible .entry k() { ret; }", ".visible .entry k() { ret; }"}),
            "multiple definition of 'k' in part 2, first defined in part 1");
}

}  // namespace
}  // namespace torpor::ptx
