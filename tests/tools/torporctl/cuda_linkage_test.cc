#include "tools/torporctl/cuda_linkage.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace torpor::torporctl {
namespace {

using ::testing::HasSubstr;

// A minimal ELF file: section names, a dynamic section with its needed libraries, and whatever
// other section is asked for.
std::vector<std::uint8_t> Elf(const std::vector<std::string>& needed,
                              const std::string& other_section) {
  std::string texts = std::string(1, '\0') + ".dynamic" + '\0';
  const auto add_text = [&](const std::string& text) {
    const std::size_t at = texts.size();
    texts += text + '\0';
    return at;
  };
  const std::size_t other_name = add_text(other_section);
  std::vector<Elf64_Dyn> dynamic;
  for (const std::string& library : needed) {
    Elf64_Dyn entry{};
    entry.d_tag = DT_NEEDED;
    entry.d_un.d_val = add_text(library);
    dynamic.push_back(entry);
  }
  dynamic.push_back({});
  const std::size_t dynamic_bytes = dynamic.size() * sizeof(Elf64_Dyn);

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  header.e_shstrndx = 0;
  header.e_shoff = sizeof header + dynamic_bytes + texts.size();
  Elf64_Shdr sections[3] = {};
  sections[0].sh_type = SHT_STRTAB;
  sections[0].sh_offset = sizeof header + dynamic_bytes;
  sections[0].sh_size = texts.size();
  sections[1].sh_name = 1;
  sections[1].sh_type = SHT_DYNAMIC;
  sections[1].sh_link = 0;
  sections[1].sh_offset = sizeof header;
  sections[1].sh_size = dynamic_bytes;
  sections[2].sh_name = static_cast<Elf64_Word>(other_name);
  sections[2].sh_type = SHT_PROGBITS;

  std::string bytes;
  const auto append = [&](const void* data, std::size_t size) {
    bytes.append(static_cast<const char*>(data), size);
  };
  append(&header, sizeof header);
  append(dynamic.data(), dynamic_bytes);
  append(texts.data(), texts.size());
  append(sections, sizeof sections);
  return {bytes.begin(), bytes.end()};
}

TEST(CudaLinkageTest, ASharedRuntimeIsFine) {
  EXPECT_EQ(LinkageWarning(Elf({"libc.so.6", "libcudart.so.13"}, ".nvFatBinSegment")), "");
}

TEST(CudaLinkageTest, AStaticRuntimeIsNot) {
  EXPECT_THAT(LinkageWarning(Elf({"libc.so.6"}, ".nvFatBinSegment")), HasSubstr("-cudart shared"));
}

TEST(CudaLinkageTest, KernelsForTheDriverApiNeedNoRuntime) {
  EXPECT_EQ(LinkageWarning(Elf({"libcuda.so.1", "libc.so.6"}, ".nv_fatbin")), "");
}

TEST(CudaLinkageTest, AnotherVersionIsNamed) {
  EXPECT_THAT(LinkageWarning(Elf({"libcudart.so.12"}, ".nvFatBinSegment")),
              HasSubstr("libcudart.so.12"));
}

TEST(CudaLinkageTest, TheDriversLibraryIsFine) {
  EXPECT_EQ(LinkageWarning(Elf({"libcuda.so.1"}, ".text")), "");
}

TEST(CudaLinkageTest, ProgramsWithoutCudaAndScriptsPass) {
  EXPECT_EQ(LinkageWarning(Elf({"libc.so.6"}, ".text")), "");
  EXPECT_EQ(LinkageWarningOfFile("/proc/self/exe"), "");
  EXPECT_EQ(LinkageWarningOfFile("/nowhere"), "");
  const std::string script = "#!/bin/sh\n";
  EXPECT_EQ(LinkageWarning({reinterpret_cast<const std::uint8_t*>(script.data()), script.size()}),
            "");
}

TEST(CudaLinkageTest, ACutFileIsNoTrouble) {
  const std::vector<std::uint8_t> whole = Elf({"libcudart.so.12"}, ".nvFatBinSegment");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    LinkageWarning({whole.data(), size});
  }
}

}  // namespace
}  // namespace torpor::torporctl
