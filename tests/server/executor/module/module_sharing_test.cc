#include "server/executor/module/module_sharing.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "proto/wire/relocatable_module.h"
#include "tests/nvidia/cubin_builder.h"
#include "tests/nvidia/fatbin_builder.h"

namespace torpor::executor {
namespace {

constexpr unsigned kDevice = 75;

bool MayUse(std::string_view image) {
  const std::vector<std::uint8_t> bytes(image.begin(), image.end());
  return CodeMayUseVariables(bytes, kDevice);
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  EXPECT_FALSE(bytes.empty()) << path;
  return bytes;
}

// `body` is that of a kernel.
std::string WithVariable(const std::string& body) {
  return "// counter, counter\n.version 8.0\n.visible .global .align 4 .u32 counter;\n"
         ".const .align 4 .u32 table[4];\n.global .align 1 .b8 $str[3] = {72, 105, 0};\n"
         ".visible .entry kernel(.param .u64 .ptr .global p) {" +
         body + "}\n";
}

TEST(ModuleSharingTest, NvccsTextsTell) {
  const auto of = [](const std::string& variant) {
    return MayUse(ReadFile(VARIABLES_DIR "/variables_" + variant + ".ptx"));
  };
  EXPECT_FALSE(of("NOTHING"));
  EXPECT_TRUE(of("USES_VARIABLE"));
  EXPECT_TRUE(of("USES_LOCAL"));
  EXPECT_TRUE(of("HOLDS_ADDRESS"));
}

TEST(ModuleSharingTest, AVariableThatIsNamedAgainIsUsed) {
  EXPECT_FALSE(MayUse(WithVariable("mov.u64 %rd1, $str; ld.const.u32 %r1, [table];")));
  EXPECT_FALSE(MayUse(WithVariable("/* counter */ ld.global.u32 %r1, [p]; // counter")));
  EXPECT_FALSE(MayUse(WithVariable("mov.u32 %r1, counters;")));
  EXPECT_TRUE(MayUse(WithVariable("mov.u64 %rd1, counter;")));
  EXPECT_TRUE(MayUse(WithVariable("st.global.u32 [counter+4], %r1;")));
  EXPECT_TRUE(MayUse(WithVariable("") + ".global .u64 pointers[2] = {0, generic(counter)};"));
  EXPECT_TRUE(MayUse(WithVariable("") + ".const .u64 pointer = counter;"));
}

TEST(ModuleSharingTest, DeclarationsThatNvccDoesNotWriteMayHideOne) {
  EXPECT_TRUE(MayUse(WithVariable("") + ".global .u32 a, b;"));
  EXPECT_TRUE(MayUse(WithVariable("{ .global .u32 inner; }")));
  EXPECT_FALSE(MayUse(".extern .global .attribute(.managed) .align 4 .b8 elsewhere[];"));
  EXPECT_TRUE(MayUse(".extern .global .attribute(.managed) .align 4 .b8 elsewhere[];" +
                     WithVariable("st.global.u32 [elsewhere], 1;")));
  for (const std::string_view text : {"", ".global (", ".global", "{", "\""}) MayUse(text);
}

TEST(ModuleSharingTest, OfAFatbinCountsWhatMayRun) {
  const std::string idle = WithVariable("");
  const std::string used = WithVariable("st.global.u32 [counter], 1;");
  const auto in_fatbin = [](const std::vector<TestEntry>& entries) {
    return MayUse(MakeContainer(entries));
  };
  EXPECT_FALSE(in_fatbin({}));
  EXPECT_FALSE(in_fatbin({{.architecture = 75, .payload = idle}}));
  EXPECT_TRUE(in_fatbin({{.architecture = 52, .payload = used}}));
  EXPECT_TRUE(in_fatbin({ZstdEntry(idle), ZstdEntry(used)}));
  EXPECT_FALSE(in_fatbin({{.architecture = 120, .payload = used}}));
  const std::string no_cubin = "no cubin";
  EXPECT_TRUE(in_fatbin({{.kind = 2, .architecture = 75, .payload = no_cubin}}));
  EXPECT_FALSE(in_fatbin({{.kind = 2, .architecture = 90, .payload = no_cubin}}));
  EXPECT_TRUE(in_fatbin({{.kind = 8, .payload = idle}})) << "to be linked";
}

TEST(ModuleSharingTest, WhatIsLinkedWhenItIsLoadedMayUseAll) {
  const std::vector<std::uint8_t> bytes = wire::Encoded(wire::RelocatableModule());
  EXPECT_TRUE(CodeMayUseVariables(bytes, kDevice));
  EXPECT_TRUE(MayUse(MakeCubin({})));
}

}  // namespace
}  // namespace torpor::executor
