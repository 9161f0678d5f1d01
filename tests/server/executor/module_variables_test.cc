#include "server/executor/module_variables.h"

#include <gtest/gtest.h>

#include <cstring>

#include "server/executor/image_check.h"

namespace torpor::executor {
namespace {

using Names = std::vector<std::string>;

Names OfText(std::string_view text) {
  Names names;
  AppendPtxVariables(text, names);
  return names;
}

std::vector<std::uint8_t> Bytes(std::string_view text) { return {text.begin(), text.end()}; }

TEST(ModuleVariablesTest, VariablesOfTheModuleAreFound) {
  EXPECT_EQ(OfText(R"(
.version 8.0 // .global .u32 comment;
.target sm_75
.address_size 64
/* .global .u32 another; */
.visible .global .align 4 .u32 counter;
.global .align 16 .v4 .f32 vectors[3][2];
.visible .const .align 8 .f64 table[2] = {0d3FF0000000000000, 1.5};
.weak .global .attribute(.managed) .align 4 .u32 managed = 0x10;
.extern .global .align 4 .u32 elsewhere;
)"),
            (Names{"counter", "vectors", "table", "managed"}));
}

TEST(ModuleVariablesTest, FunctionsAndWhatIsInThemAreNoVariables) {
  EXPECT_EQ(OfText(R"(.visible .entry kernel(.param .u64 .ptr .global p)
{
  .local .align 4 .b8 stack[16];
  .shared .align 4 .u32 tile[4];
  { .reg .u32 %r<4>; ld.global.u32 %r1, [p]; }
}
.extern .func (.param .b32 result) vprintf (.param .b64 a, .param .b64 b);
.visible .global .u32 last;)"),
            Names{"last"});
}

TEST(ModuleVariablesTest, AddressesAndTheCompilersConstantsAreLeftOut) {
  EXPECT_EQ(OfText(".global .u64 table[2] = {first, second};"
                   ".global .align 1 .b8 $str[3] = {72, 105, 0};"
                   ".global .u64 generic_address = generic(first);"
                   ".visible .global .u32 kept = 7;"),
            Names{"kept"});
}

TEST(ModuleVariablesTest, NonsenseHasNone) {
  for (const std::string_view text : {"", ".global", ".global .u32", "{", "/*", "\"", ".global ("})
    EXPECT_EQ(OfText(text), Names{}) << text;
  EXPECT_EQ(VariablesOf(Bytes("\x7f"
                              "ELF, but no more than that")),
            Names{});
  EXPECT_EQ(VariablesOf(Bytes("P\xed\x55\xba and then something else")), Names{});
}

TEST(ImageCheckTest, TextEndsWithNul) {
  EXPECT_TRUE(CheckImage(Bytes(std::string_view(".version 8.0\0", 13))).ok());
  EXPECT_FALSE(CheckImage(Bytes(".version 8.0")).ok());
  EXPECT_FALSE(CheckImage(Bytes(std::string_view("\0\0\0\0\0", 5))).ok());
  EXPECT_FALSE(CheckImage({}).ok());
}

TEST(ImageCheckTest, LengthsStayInside) {
  std::vector<std::uint8_t> fatbin(32);
  const std::uint8_t header[] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 16};
  std::memcpy(fatbin.data(), header, sizeof header);
  EXPECT_TRUE(CheckImage(fatbin).ok());
  fatbin[8] = 17;
  EXPECT_FALSE(CheckImage(fatbin).ok());

  std::vector<std::uint8_t> cubin(64);
  const std::uint8_t magic[] = {0x7f, 'E', 'L', 'F', 2};
  std::memcpy(cubin.data(), magic, sizeof magic);
  EXPECT_TRUE(CheckImage(cubin).ok());
  cubin[60] = 1;  // one section header, where the file ends
  cubin[40] = 64;
  EXPECT_FALSE(CheckImage(cubin).ok());
  cubin.resize(63);
  EXPECT_FALSE(CheckImage(cubin).ok());
}

}  // namespace
}  // namespace torpor::executor
