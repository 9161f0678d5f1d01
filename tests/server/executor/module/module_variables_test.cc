#include "server/executor/module/module_variables.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/nvidia/cubin_builder.h"
#include "tests/nvidia/fatbin_builder.h"

namespace torpor::executor {
namespace {

using Names = std::set<std::string>;

std::vector<std::uint8_t> Image(std::string_view text) { return {text.begin(), text.end()}; }

Names OfText(std::string_view text) { return *VariablesOf(Image(text)); }

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

TEST(ModuleVariablesTest, InvalidCodeHasNone) {
  for (const std::string_view text : {"", ".global", ".global .u32", "{", "/*", "\"", ".global ("})
    EXPECT_EQ(OfText(text), Names{}) << text;
  EXPECT_EQ(OfText("\x7f"
                   "ELF, but no more than that"),
            Names{});
  EXPECT_EQ(OfText("P\xed\x55\xba and then something else"), Names{});
}

TEST(ModuleVariablesTest, VariablesOfACubinAreItsObjects) {
  constexpr unsigned char kCudaObject = 13;  // in relocatable ones
  const std::string cubin = MakeCubin({{"counter", ".nv.global"},
                                       {"table", ".nv.constant3"},
                                       {"relocatable", ".nv.global.init", kCudaObject},
                                       {"kernel", ".text.kernel", STT_FUNC},
                                       {"$str", ".nv.global.init"},
                                       {"pointer", ".nv.global.init", STT_OBJECT, true},
                                       {"shared", ".nv.shared.kernel"}});
  EXPECT_EQ(OfText(cubin), (Names{"counter", "table", "relocatable"}));
}

TEST(ModuleVariablesTest, NvccsCubinsAreRead) {
  for (const char* const path : {COUNTER_CUBIN, COUNTER_RELOCATABLE_CUBIN}) {
    std::ifstream file(path, std::ios::binary);
    const std::string cubin((std::istreambuf_iterator<char>(file)), {});
    ASSERT_FALSE(cubin.empty()) << path;
    EXPECT_EQ(OfText(cubin), Names{"counter"}) << path;
  }
}

TEST(ModuleVariablesTest, EveryEntryOfAFatbinIsLookedAtCompressedOrNot) {
  EXPECT_EQ(OfText(MakeContainer(
                {{.kind = 1, .payload = ".visible .global .u32 text;"},
                 ZstdEntry(".visible .global .u32 packed_text;"),
                 {.kind = 2, .payload = MakeCubin({{"raw", ".nv.global"}})},
                 ZstdEntry(MakeCubin({{"zstd", ".nv.global"}, {"raw", ".nv.global"}}), 2),
                 Lz4Entry(MakeCubin({{"lz4", ".nv.global"}}), 2)})),
            (Names{"text", "packed_text", "raw", "zstd", "lz4"}));
}

TEST(ModuleVariablesTest, MoreNamesThanAnyModuleHasAreRefused) {
  std::string many;
  for (int i = 0; i <= 1 << 16; ++i) many += ".global .u8 v" + std::to_string(i) + ";";
  EXPECT_TRUE(absl::IsResourceExhausted(VariablesOf(Image(many)).status()));
  // Few bytes, but each symbol's name is nearly all of them.
  const std::string long_name(std::size_t{1} << 16, 'x');
  std::vector<CubinSymbol> symbols(1, {long_name, ".nv.global"});
  std::string cubin = MakeCubin(symbols);
  EXPECT_EQ(OfText(cubin), Names{long_name});
  symbols.resize(1 << 10, {"y", ".nv.global"});
  cubin = MakeCubin(symbols);
  for (std::size_t i = 1; i < symbols.size(); ++i) {
    std::memcpy(cubin.data() + sizeof(Elf64_Ehdr) + i * sizeof(Elf64_Sym),
                cubin.data() + sizeof(Elf64_Ehdr), sizeof(Elf64_Word));
  }
  EXPECT_TRUE(absl::IsResourceExhausted(VariablesOf(Image(cubin)).status()));
}

TEST(ModuleVariablesTest, OneSymbolTableIsRead) {
  std::string cubin = MakeCubin({{"counter", ".nv.global"}, {"other", ".nv.global"}, {"", ""}});
  const auto table_at = reinterpret_cast<const Elf64_Ehdr*>(cubin.data())->e_shoff;
  auto* const sections = reinterpret_cast<Elf64_Shdr*>(cubin.data() + table_at);
  sections[2].sh_size = sizeof(Elf64_Sym);
  sections[5] = sections[2];
  sections[5].sh_offset += sizeof(Elf64_Sym);
  EXPECT_EQ(OfText(cubin), Names{"counter"});
}

// A test of time: with one more loop than needed each of these takes hours.
TEST(ModuleVariablesTest, LongTextsAreReadOnce) {
  constexpr std::size_t kLength = std::size_t{4} << 20;
  const std::string declaration = ".visible .global .u32 last;";
  EXPECT_EQ(OfText(std::string(kLength, '\n') + declaration), Names{"last"});
  EXPECT_EQ(OfText(std::string(kLength, 'a') + "=" + std::string(kLength, '{') + ";" + declaration),
            Names{"last"});
}

}  // namespace
}  // namespace torpor::executor
