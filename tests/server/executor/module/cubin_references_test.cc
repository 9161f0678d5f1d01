#include "server/executor/module/cubin_references.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "tests/nvidia/cubin_builder.h"

namespace torpor::executor {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  EXPECT_FALSE(bytes.empty()) << path;
  return bytes;
}

bool MayUse(const std::string& cubin) {
  return CubinMayUseVariables(std::as_bytes(std::span(cubin.data(), cubin.size())));
}

std::string Linked(const std::vector<CubinSymbol>& symbols) {
  std::string cubin = MakeCubin(symbols);
  reinterpret_cast<Elf64_Ehdr*>(cubin.data())->e_type = ET_EXEC;
  return cubin;
}

// All have what PyTorch's modules have: variables that nothing uses, constants, texts, asserts and
// the tables of mathematical functions.
TEST(CubinReferencesTest, NvccsCubinsTell) {
  for (const std::string architecture : {"75", "80", "90"}) {
    const auto of = [&](const std::string& variant) {
      std::string path = VARIABLES_DIR "/variables_";
      for (const std::string_view part : {variant.c_str(), ".sm_", architecture.c_str(), ".cubin"})
        path += part;
      return MayUse(ReadFile(path));
    };
    EXPECT_FALSE(of("NOTHING")) << architecture;
    EXPECT_TRUE(of("USES_VARIABLE")) << architecture;
    EXPECT_TRUE(of("USES_LOCAL")) << architecture;
    EXPECT_TRUE(of("HOLDS_ADDRESS")) << architecture;
  }
}

TEST(CubinReferencesTest, WhatIsNotKnownMayUseAll) {
  EXPECT_TRUE(MayUse(ReadFile(VARIABLES_DIR "/variables_NOTHING.sm_120.cubin")));
  EXPECT_TRUE(MayUse(ReadFile(COUNTER_RELOCATABLE_CUBIN)));
  EXPECT_TRUE(MayUse(ReadFile(COUNTER_CUBIN)));
  EXPECT_TRUE(MayUse(""));
  EXPECT_TRUE(MayUse(MakeCubin({})));
  EXPECT_FALSE(MayUse(Linked({})));
}

TEST(CubinReferencesTest, RelocationsOfDataCountWhereTheyNameVariables) {
  std::string cubin = Linked({{"variable", ".nv.global"}, {"text", ".nv.global", 1, true}});
  EXPECT_TRUE(MayUse(cubin)) << "without a table of symbols";
  const auto sections = [&cubin] {
    const auto at = reinterpret_cast<const Elf64_Ehdr*>(cubin.data())->e_shoff;
    return reinterpret_cast<Elf64_Shdr*>(cubin.data() + at);
  };
  const auto point_at = [&](std::uint64_t symbol) {
    Elf64_Shdr& relocations = sections()[5];
    relocations.sh_link = 2;
    reinterpret_cast<Elf64_Rela*>(cubin.data() + relocations.sh_offset)->r_info =
        ELF64_R_INFO(symbol, 2);
  };
  point_at(0);
  EXPECT_TRUE(MayUse(cubin));
  point_at(2);
  EXPECT_TRUE(MayUse(cubin)) << "of no symbol";
  sections()[5].sh_size += 1;
  EXPECT_TRUE(MayUse(cubin)) << "half a relocation";
  cubin = Linked({{"$str", ".nv.global"}, {"text", ".nv.global", 1, true}});
  point_at(0);
  EXPECT_FALSE(MayUse(cubin));
  cubin = Linked({{"function", ".text.kernel", STT_FUNC}, {"text", ".nv.global", 1, true}});
  point_at(0);
  EXPECT_FALSE(MayUse(cubin));
}

}  // namespace
}  // namespace torpor::executor
