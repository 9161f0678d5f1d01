#include "nvidia/machine_code/cubin_format.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tests/nvidia/cubin_builder.h"

namespace torpor::sass {
namespace {

constexpr unsigned char kAbiOld = 0x33;
constexpr unsigned char kAbiNew = 0x41;

std::string WithHeader(unsigned char abi, Elf64_Word flags, Elf64_Half type) {
  std::string file = MakeCubin({});
  Elf64_Ehdr header;
  std::memcpy(&header, file.data(), sizeof header);
  header.e_machine = 190;
  header.e_ident[EI_OSABI] = abi;
  header.e_flags = flags;
  header.e_type = type;
  std::memcpy(file.data(), &header, sizeof header);
  return file;
}

CubinHeader Read(const std::string& file) {
  return ReadCubinHeader(std::as_bytes(std::span(file)));
}

TEST(CubinFormatTest, TheArchitectureStandsWhereTheAbiSays) {
  const CubinHeader old = Read(WithHeader(kAbiOld, 0x0055'054b, ET_EXEC));
  EXPECT_TRUE(old.is_cuda);
  EXPECT_TRUE(old.has_known_abi);
  EXPECT_TRUE(old.is_linked);
  EXPECT_EQ(old.architecture, 75U);
  const CubinHeader recent = Read(WithHeader(kAbiNew, 0x0600'5a02, ET_REL));
  EXPECT_TRUE(recent.has_known_abi);
  EXPECT_FALSE(recent.is_linked);
  EXPECT_EQ(recent.architecture, 90U);
}

TEST(CubinFormatTest, OtherElfFilesAreToldApart) {
  EXPECT_FALSE(Read(MakeCubin({})).is_cuda);
  EXPECT_FALSE(Read(WithHeader(0, 0, ET_EXEC)).has_known_abi);
}

TEST(CubinFormatTest, NamesTellTheKindOfASection) {
  EXPECT_EQ(CubinSectionOf(".text.kernel"), CubinSection::kCode);
  EXPECT_EQ(CubinSectionOf(".nv.global.init"), CubinSection::kGlobal);
  EXPECT_EQ(CubinSectionOf(".nv.constant3"), CubinSection::kConstant);
  EXPECT_EQ(CubinSectionOf(".nv.shared.kernel"), CubinSection::kShared);
  EXPECT_EQ(CubinSectionOf(".nv_debug_line_sass"), CubinSection::kDebug);
  EXPECT_EQ(CubinSectionOf(".nv.info"), CubinSection::kOther);
  EXPECT_TRUE(HoldsVariables(CubinSection::kConstant));
  EXPECT_FALSE(HoldsVariables(CubinSection::kCode));
}

TEST(CubinFormatTest, RelocationsOfEitherFormAreRead) {
  const std::string bytes =
      MakeCubin({{.name = "v", .section = ".nv.global", .has_address = true}});
  const auto file = ElfFile::Open(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(file.has_value());
  Elf64_Shdr section = file->sections().back();
  ASSERT_EQ(section.sh_type, static_cast<Elf64_Word>(SHT_RELA));
  EXPECT_EQ(RelocationCount(section), 1U);
  ASSERT_TRUE(ReadRelocation(*file, section, 0).has_value());
  EXPECT_EQ(ReadRelocation(*file, section, 0)->r_offset, 8U);
  EXPECT_FALSE(ReadRelocation(*file, section, 1).has_value());
  section.sh_type = SHT_REL;
  section.sh_size = sizeof(Elf64_Rel);
  ASSERT_TRUE(ReadRelocation(*file, section, 0).has_value());
  EXPECT_EQ(ReadRelocation(*file, section, 0)->r_offset, 8U);
  EXPECT_EQ(ReadRelocation(*file, section, 0)->r_addend, 0);
}

TEST(CubinFormatTest, OnlyRelocationsOfTheTableAreKnown) {
  EXPECT_TRUE(IsKnownRelocation(static_cast<std::uint32_t>(RelocationType::kAbs47)));
  EXPECT_FALSE(IsKnownRelocation(1));
}

}  // namespace
}  // namespace torpor::sass
