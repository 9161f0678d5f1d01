#include "nvidia/elf_file.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/nvidia/cubin_builder.h"

namespace torpor {
namespace {

std::span<const std::byte> BytesOf(const std::string& file) {
  return std::as_bytes(std::span(file.data(), file.size()));
}

Elf64_Ehdr& HeaderOf(std::string& file) { return *reinterpret_cast<Elf64_Ehdr*>(file.data()); }
Elf64_Shdr* SectionsOf(std::string& file) {
  return reinterpret_cast<Elf64_Shdr*>(file.data() + HeaderOf(file).e_shoff);
}

TEST(ElfFileTest, TablesAndTextsAreRead) {
  const std::string bytes = MakeCubin({{"counter", ".nv.global"}});
  const auto file = ElfFile::Open(BytesOf(bytes));
  ASSERT_TRUE(file.has_value());
  EXPECT_TRUE(file->IsWhole());
  ASSERT_EQ(file->sections().size(), 4U);
  EXPECT_EQ(file->NameOf(file->sections()[3]), ".nv.global");
  EXPECT_EQ(file->Section(4), nullptr);
  const Elf64_Shdr& table = *file->Section(2);
  Elf64_Sym symbol;
  ASSERT_TRUE(file->Read(table, 0, symbol));
  EXPECT_EQ(file->TextAt(*file->Section(table.sh_link), symbol.st_name), "counter");
  EXPECT_FALSE(file->Read(table, 1, symbol));
}

TEST(ElfFileTest, WhatIsCutShortIsNotWhole) {
  const std::string bytes = MakeCubin({{"counter", ".nv.global"}});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ElfFile::Open(BytesOf(bytes.substr(0, size))).has_value()) << size;
  }
}

TEST(ElfFileTest, OtherFilesAndSizesAreRefused) {
  for (const auto spoil : std::initializer_list<void (*)(Elf64_Ehdr&)>{
           [](Elf64_Ehdr& h) { h.e_ident[0] = 0; },
           [](Elf64_Ehdr& h) { h.e_ident[EI_CLASS] = ELFCLASS32; },
           [](Elf64_Ehdr& h) { h.e_shentsize = sizeof(Elf64_Shdr) - 8; },
           [](Elf64_Ehdr& h) { h.e_shoff = ~std::uint64_t{0} - 64; },
           [](Elf64_Ehdr& h) { h.e_shnum = 0; }, [](Elf64_Ehdr& h) { h.e_phnum = 1; }}) {
    std::string bytes = MakeCubin({{"counter", ".nv.global"}});
    spoil(HeaderOf(bytes));
    EXPECT_FALSE(ElfFile::Open(BytesOf(bytes)).has_value());
  }
}

TEST(ElfFileTest, ASectionOutsideIsNeitherWholeNorRead) {
  std::string bytes = MakeCubin({{"counter", ".nv.global"}});
  SectionsOf(bytes)[2].sh_offset = ~std::uint64_t{0} - 8;
  const auto file = ElfFile::Open(BytesOf(bytes));
  ASSERT_TRUE(file.has_value());
  EXPECT_FALSE(file->IsWhole());
  Elf64_Sym symbol;
  EXPECT_FALSE(file->Read(file->sections()[2], 0, symbol));
}

TEST(ElfFileTest, TextsEndWithTheFile) {
  std::string bytes = MakeCubin({{"counter", ".nv.global"}});
  SectionsOf(bytes)[1].sh_offset = bytes.size() - 1;
  const auto file = ElfFile::Open(BytesOf(bytes));
  ASSERT_TRUE(file.has_value());
  EXPECT_LE(file->TextAt(file->sections()[1], 0).size(), 1U);
  EXPECT_EQ(file->TextAt(file->sections()[1], 1), "");
  EXPECT_EQ(file->TextAt(file->sections()[1], ~std::uint64_t{0}), "");
}

// Where a file ends that has something behind it.
std::uint64_t BytesByItself(std::string file) {
  file.append(100, 'x');
  return ElfFileBytes(file.data());
}

TEST(ElfFileTest, AFileKnowsWhereItEnds) {
  const std::string bytes = MakeCubin({{"counter", ".nv.global"}});
  EXPECT_EQ(BytesByItself(bytes), bytes.size());
  // What a section would have beyond the rest is its own, unless it has nothing in the file.
  for (const auto& [type, more] : {std::pair(SHT_PROGBITS, 16U), std::pair(SHT_NOBITS, 0U)}) {
    std::string longer = bytes;
    SectionsOf(longer)[3].sh_type = static_cast<Elf64_Word>(type);
    SectionsOf(longer)[3].sh_offset = bytes.size();
    SectionsOf(longer)[3].sh_size = 16;
    EXPECT_EQ(BytesByItself(longer), bytes.size() + more);
  }
}

TEST(ElfFileTest, TextsAndOtherFilesEndNowhere) {
  EXPECT_EQ(ElfFileBytes(""), 0U);
  EXPECT_EQ(ElfFileBytes("\x7f"
                         "ELF"),
            0U);
  EXPECT_EQ(ElfFileBytes(".version 9.0"), 0U);
  std::string narrow = MakeCubin({{"counter", ".nv.global"}});
  HeaderOf(narrow).e_ident[EI_CLASS] = ELFCLASS32;
  EXPECT_EQ(ElfFileBytes(narrow.data()), 0U);
}

}  // namespace
}  // namespace torpor
