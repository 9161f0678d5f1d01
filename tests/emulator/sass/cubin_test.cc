#include "emulator/sass/cubin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "nvidia/elf_file.h"
#include "tests/emulator/sass/test_cubin.h"

namespace torpor::sass {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

class CubinTest : public testing::Test {
 protected:
  void SetUp() override {
    file_ = ReadTestCubin("variables");
    auto cubin = ReadCubin(BytesOf(file_));
    ASSERT_TRUE(cubin.ok()) << cubin.failure().message;
    cubin_ = *cubin;
  }

  const CubinKernel& KernelNamed(const std::string& name) const {
    const CubinKernel* const kernel = cubin_.FindKernel(name);
    EXPECT_NE(kernel, nullptr) << name;
    static const CubinKernel none;
    return kernel == nullptr ? none : *kernel;
  }

  const CubinVariable& VariableNamed(const std::string& name) const {
    for (const CubinVariable& variable : cubin_.variables) {
      if (variable.name == name) return variable;
    }
    ADD_FAILURE() << "no variable " << name;
    static const CubinVariable none;
    return none;
  }

  // In file_.
  Elf64_Shdr& SectionNamed(std::string_view name) {
    const auto file = ElfFile::Open(BytesOf(file_));
    const auto& sections = file->sections();
    const auto found = std::ranges::find_if(
        sections, [&](const Elf64_Shdr& section) { return file->NameOf(section) == name; });
    EXPECT_NE(found, sections.end()) << name;
    Elf64_Ehdr header;
    std::memcpy(&header, file_.data(), sizeof header);
    auto* const table = reinterpret_cast<Elf64_Shdr*>(file_.data() + header.e_shoff);
    return table[found == sections.end() ? 0 : found - sections.begin()];
  }

  std::string file_;
  Cubin cubin_;
};

TEST_F(CubinTest, HasTheArchitecture) { EXPECT_EQ(cubin_.architecture, 75U); }

TEST_F(CubinTest, HasKernelsWithTheirCode) {
  EXPECT_EQ(cubin_.kernels.size(), 5U);
  for (const CubinKernel& kernel : cubin_.kernels) {
    const Text& text = cubin_.texts.at(kernel.text);
    EXPECT_EQ(text.name, kernel.name);
    EXPECT_EQ(text.code.size() % kInstructionBytes, 0U);
    EXPECT_NE(text.code_address, 0U);
    EXPECT_GT(kernel.registers, 0U);
    EXPECT_EQ(text.functions.at(0).name, kernel.name);
  }
  EXPECT_EQ(cubin_.FindKernel("Absent"), nullptr);
}

TEST_F(CubinTest, ReadsParametersInTheirOrder) {
  const CubinKernel& sum = KernelNamed("_Z3Sum5LargePix");
  const auto parameter = [](std::uint32_t offset, std::uint32_t bytes) {
    return AllOf(Field(&Parameter::offset, offset), Field(&Parameter::bytes, bytes));
  };
  EXPECT_THAT(sum.parameters, ElementsAre(parameter(0, 84), parameter(88, 8), parameter(96, 8)));
  EXPECT_EQ(sum.parameter_bytes, 104U);
  EXPECT_EQ(sum.parameter_base, 0x160U);
  EXPECT_THAT(KernelNamed("Nothing").parameters, IsEmpty());
  EXPECT_EQ(KernelNamed("Nothing").parameter_base, 0x160U);
}

TEST_F(CubinTest, ParametersAreWholeDoubleWords) {
  const CubinKernel& last = KernelNamed("Last");
  ASSERT_EQ(last.parameters.size(), 2U);
  EXPECT_EQ(last.parameters[1].bytes, 1U);
  EXPECT_EQ(last.parameter_bytes, 16U);
}

TEST_F(CubinTest, ReadsWhatABlockNeeds) {
  EXPECT_EQ(KernelNamed("_Z3Sum5LargePix").shared_bytes, 256U);
  EXPECT_EQ(KernelNamed("Nothing").shared_bytes, 0U);
  const CubinKernel& print = KernelNamed("_Z5PrintPi");
  EXPECT_EQ(print.max_threads, 256U);
  EXPECT_GE(print.local_bytes, 4U);
}

TEST_F(CubinTest, KnowsSubroutines) {
  const Text& text = cubin_.texts.at(KernelNamed("_Z3Sum5LargePix").text);
  ASSERT_EQ(text.functions.size(), 2U);
  EXPECT_THAT(std::string(text.functions[1].name), HasSubstr("div_s64"));
  EXPECT_GT(text.functions[1].offset, 0U);
  EXPECT_LE(text.functions[1].offset + text.functions[1].bytes, text.code.size());
}

TEST_F(CubinTest, KnowsWhereIndirectBranchesGo) {
  const CubinKernel& choose = KernelNamed("Choose");
  ASSERT_FALSE(choose.branches.empty());
  for (const IndirectBranch& branch : choose.branches) {
    EXPECT_FALSE(branch.targets.empty());
    for (const std::uint64_t target : branch.targets) {
      EXPECT_LT(target, cubin_.texts[choose.text].code.size());
      EXPECT_EQ(target % kInstructionBytes, 0U);
    }
  }
  EXPECT_FALSE(choose.bank2.empty());
}

TEST_F(CubinTest, HasVariablesInTheirMemory) {
  const CubinVariable& counters = VariableNamed("counters");
  EXPECT_EQ(counters.bytes, 12U);
  const Memory& initialised = cubin_.memories.at(counters.memory);
  EXPECT_EQ(initialised.kind, Memory::Kind::kGlobal);
  int values[3];
  std::memcpy(values, initialised.initial.data() + counters.offset, sizeof values);
  EXPECT_THAT(values, ElementsAre(1, 2, 3));

  const CubinVariable& zeros = VariableNamed("zeros");
  EXPECT_EQ(zeros.bytes, 400U);
  EXPECT_THAT(cubin_.memories.at(zeros.memory).initial, IsEmpty());

  const CubinVariable& table = VariableNamed("table");
  const Memory* const constants = cubin_.Bank(3);
  ASSERT_NE(constants, nullptr);
  EXPECT_EQ(&cubin_.memories[table.memory], constants);
  int first = 0;
  std::memcpy(&first, constants->initial.data() + table.offset, sizeof first);
  EXPECT_EQ(first, 5);
}

TEST_F(CubinTest, RelocatesAddressesInData) {
  const CubinVariable& second = VariableNamed("second");
  const CubinVariable& counters = VariableNamed("counters");
  const Memory& memory = cubin_.memories.at(second.memory);
  ASSERT_EQ(memory.relocations.size(), 1U);
  EXPECT_EQ(memory.relocations[0].offset, second.offset);
  EXPECT_EQ(memory.relocations[0].memory, counters.memory);
  EXPECT_EQ(memory.relocations[0].addend, counters.offset + 4);
}

TEST_F(CubinTest, RelocatesTheBankOfAddresses) {
  const Memory* const addresses = cubin_.Bank(4);
  ASSERT_NE(addresses, nullptr);
  EXPECT_THAT(cubin_.externals, ElementsAre("vprintf"));
  unsigned externals = 0;
  for (const CubinRelocation& relocation : addresses->relocations) {
    EXPECT_LE(relocation.offset + 8, addresses->bytes);
    if (relocation.external != kNoIndex) ++externals;
    EXPECT_NE(relocation.external == kNoIndex, relocation.memory == kNoIndex);
  }
  EXPECT_EQ(externals, 1U);
}

TEST_F(CubinTest, RefusesWhatIsNoCubin) {
  EXPECT_EQ(ReadCubin({}).failure().code, CubinError::kMalformed);
  std::string other = file_;
  other[18] = 62;  // e_machine: x86-64
  const auto read = ReadCubin(BytesOf(other));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.failure().code, CubinError::kMalformed);
  EXPECT_THAT(read.failure().message, HasSubstr("another machine"));
}

TEST_F(CubinTest, RefusesWhatIsNotLinked) {
  std::string relocatable = file_;
  relocatable[16] = 1;  // e_type: ET_REL
  const auto read = ReadCubin(BytesOf(relocatable));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.failure().code, CubinError::kUnsupported);
}

TEST_F(CubinTest, BanksOfConstantsAreBounded) {
  constexpr std::uint64_t kMaxBytes = 64 << 10;
  for (const char* name : {".nv.constant3", ".nv.constant4"}) {
    Elf64_Shdr& section = SectionNamed(name);
    section.sh_type = SHT_NOBITS;
    section.sh_size = kMaxBytes + 1;
    const auto read = ReadCubin(BytesOf(file_));
    ASSERT_FALSE(read.ok()) << name;
    EXPECT_THAT(read.failure().message, HasSubstr(name));
    section.sh_size = kMaxBytes;
  }
}

TEST_F(CubinTest, SurvivesDamage) {
  for (std::size_t i = 0; i < file_.size(); i += 3) {
    std::string damaged = file_;
    damaged[i] = static_cast<char>(damaged[i] ^ 0xff);
    (void)ReadCubin(BytesOf(damaged));
  }
  for (std::size_t size = 0; size < file_.size(); size += 61) {
    EXPECT_FALSE(ReadCubin(BytesOf(file_).first(size)).ok());
  }
}

}  // namespace
}  // namespace torpor::sass
