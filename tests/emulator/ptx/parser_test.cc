#include "emulator/ptx/parser.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>

namespace torpor::ptx {
namespace {

constexpr char kHeader[] = ".version 9.0\n.target sm_90a, debug\n.address_size 64\n";

Module MustParse(const std::string& text) {
  auto parsed = Parse(kHeader + text);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.failure().message);
  return parsed ? std::move(*parsed) : Module{};
}

std::string ErrorOf(const std::string& text) {
  const auto parsed = Parse(kHeader + text);
  return parsed ? "" : parsed.failure().message;
}

TEST(ParserTest, ReadsAKernelsParametersAndLimits) {
  const Module module = MustParse(
      ".visible .entry k(.param .u8 a, .param .align 8 .b8 b[20], .param .u64 .ptr .global "
      ".align 4 c)\n.maxntid 128, 2, 1\n.minnctapersm 2\n{ ret; }");
  EXPECT_EQ(module.target, 90U);
  ASSERT_EQ(module.functions.size(), 1U);
  const Function& kernel = module.functions[0];
  EXPECT_TRUE(kernel.is_kernel);
  EXPECT_EQ(kernel.max_threads, 256U);
  ASSERT_EQ(kernel.parameters.size(), 3U);
  EXPECT_EQ(module.variables[kernel.parameters[0]].parameter_offset, 0U);
  EXPECT_EQ(module.variables[kernel.parameters[1]].parameter_offset, 8U);
  EXPECT_EQ(module.variables[kernel.parameters[2]].parameter_offset, 32U);
  EXPECT_EQ(kernel.parameter_bytes, 40U);
}

TEST(ParserTest, ParametersHaveALimitTogether) {
  EXPECT_EQ(ErrorOf(".entry k(.param .b8 a[32764]) { ret; }"), "");
  EXPECT_EQ(ErrorOf(".entry k(.param .b8 a[32760], .param .b32 b) { ret; }"), "");
  EXPECT_NE(ErrorOf(".entry k(.param .b8 a[32765]) { ret; }"), "");
  EXPECT_NE(ErrorOf(".entry k(.param .b8 a[32764], .param .b8 b) { ret; }"), "");
  EXPECT_NE(ErrorOf(".entry k(.param .b8 a[32760], .param .b8 b, .param .b32 c) { ret; }"), "");
}

// CUDA's own hexp() writes so.
TEST(ParserTest, ATypeMayFollowWithoutABlank) {
  const Module module = MustParse(
      ".entry k(.param.u64 a) { {.reg.b32 f; .reg.b16 h, r; mov.b16 h, r; } .shared.align 8 .b8 "
      "s[4]; }");
  EXPECT_EQ(module.functions[0].registers.size(), 4U);  // and the carry
  EXPECT_EQ(module.functions[0].instructions[0].operands[0].kind, Operand::Kind::kRegister);
  EXPECT_EQ(module.variables.back().align, 8U);
}

TEST(ParserTest, UnknownDirectivesAreErrors) {
  EXPECT_EQ(ErrorOf(".entry k() { .pragma \"nounroll\"; ret; }"), "");
  EXPECT_NE(ErrorOf(".entry k() { .registers .b32 f; ret; }"), "");
}

TEST(ParserTest, CoordinatesBelongToTheAddressOfAnImage) {
  const Module module = MustParse(
      ".entry k() { .reg .b32 %r<5>; .reg .b64 %rd<3>; .reg .pred p; .reg .f32 f;\n"
      "tex.level.a2d.v4.u32.f32 {%r1, %r2, %r3, _}|p, [%rd1, {%r0, f, f, f}], f;\n"
      "sust.b.2d.b32.trap [%rd2, {%r1, %r2}], {%r3}; }");
  const auto& instructions = module.functions[0].instructions;
  ASSERT_EQ(instructions.size(), 2U);
  const Instruction& fetch = instructions[0];
  EXPECT_EQ(fetch.opcode, Opcode::kTex);
  EXPECT_TRUE(fetch.Has(Modifier::kA2d) && fetch.Has(Modifier::kLevel));
  EXPECT_EQ(fetch.types, (std::vector<Type>{Type::kU32, Type::kF32}));
  ASSERT_EQ(fetch.operands.size(), 3U);
  EXPECT_EQ(fetch.operands[0].elements[0].elements.size(), 4U);
  EXPECT_EQ(fetch.operands[1].kind, Operand::Kind::kAddress);
  EXPECT_EQ(fetch.operands[1].elements.size(), 4U);
  EXPECT_TRUE(fetch.is_texture_or_surface_access());
  EXPECT_EQ(instructions[1].operands[0].elements.size(), 2U);
  EXPECT_NE(ErrorOf(".entry k() { .reg .b64 a; tex.1d.v4.u32.s32 {_, _, _, _}, [a, a]; }"), "");
}

TEST(ParserTest, DecodesInstructions) {
  const Module module = MustParse(
      ".entry k() { .reg .b32 %r<5>; .reg .b64 %rd<3>; .reg .pred p, q; .reg .f32 f;\n"
      "@!p ld.relaxed.gpu.global.L1::no_allocate.v2.u32 {%r1, _}, [%rd2+-8];\n"
      "setp.lt.and.s32 p|q, %r1, 5, !q;\nmov.f32 f, 0fBF800000;\nfma.rz.ftz.f32 f, f, f, -1.5;\n"
      "shfl.sync.idx.b32 %r1|p, %r2, %r3, 31, -1; }");
  const auto& instructions = module.functions[0].instructions;
  ASSERT_EQ(instructions.size(), 5U);
  const Instruction& load = instructions[0];
  EXPECT_EQ(load.opcode, Opcode::kLd);
  EXPECT_TRUE(load.guard_negated);
  EXPECT_EQ(load.space(), Space::kGlobal);
  EXPECT_EQ(load.vector_width(), 2U);
  EXPECT_TRUE(load.is_synchronising());
  EXPECT_EQ(load.operands[0].elements[1].kind, Operand::Kind::kSink);
  EXPECT_EQ(static_cast<std::int64_t>(load.operands[1].bits), -8);
  EXPECT_TRUE(instructions[1].operands[3].negated);
  EXPECT_EQ(std::bit_cast<double>(instructions[2].operands[1].bits), -1.0);
  EXPECT_TRUE(instructions[3].Has(Modifier::kRz));
  EXPECT_EQ(std::bit_cast<double>(instructions[3].operands[3].bits), -1.5);
  EXPECT_EQ(instructions[4].operands[0].elements.size(), 2U);
}

TEST(ParserTest, ReadsInitialisers) {
  const Module module = MustParse(
      ".global .align 4 .b8 bytes[8] = {1, 2, 0xff};\n.global .u32 x = -1;\n"
      ".global .align 8 .u64 pointers[3] = {generic(bytes)+4, f, 0};\n"
      ".const .f64 d = 0d3FF0000000000000;\n.global .u16 grid[2][2] = {{1, 2}, {3, 4}};\n"
      ".extern .shared .align 16 .b8 dynamic[];\n.func f() { ret; }");
  EXPECT_EQ(module.variables[0].bytes, 8U);
  EXPECT_EQ(module.variables[0].initial, (std::vector<std::uint8_t>{1, 2, 255}));
  EXPECT_EQ(module.variables[1].initial, (std::vector<std::uint8_t>{255, 255, 255, 255}));
  ASSERT_EQ(module.variables[2].relocations.size(), 2U);
  EXPECT_EQ(module.variables[2].relocations[0].symbol, 0U);
  EXPECT_EQ(module.variables[2].relocations[0].addend, 4);
  EXPECT_TRUE(module.variables[2].relocations[1].is_function);
  EXPECT_EQ(module.variables[3].initial.back(), 0x3f);
  EXPECT_EQ(module.variables[4].initial.size(), 8U);
  EXPECT_EQ(module.variables[5].bytes, 0U);
  EXPECT_EQ(module.variables[5].align, 16U);
}

TEST(ParserTest, KeepsWhatItDoesNotKnow) {
  const Module module = MustParse(
      ".entry k() { .reg .b32 %r<3>; wgmma.fence.sync; mov.b32 %r1, %r2; "
      "tcgen05.ld.x4 {%r1, %r2}, [%r0, {1, 2}]; ret; }");
  const auto& instructions = module.functions[0].instructions;
  ASSERT_EQ(instructions.size(), 4U);
  EXPECT_EQ(instructions[0].opcode, Opcode::kUnknown);
  EXPECT_EQ(instructions[0].spelling, "wgmma.fence.sync");
  EXPECT_EQ(instructions[1].opcode, Opcode::kMov);
  EXPECT_EQ(instructions[2].opcode, Opcode::kUnknown);
}

TEST(ParserTest, NamesTheLineOfAnError) {
  EXPECT_NE(ErrorOf(".entry k()\n{\n bra missing;\n}").find("missing"), std::string::npos);
  EXPECT_NE(ErrorOf(".entry k()\n{\n .reg .b32 %r<2>;\n add.u32 %r1 %r0;\n}").find("line 7"),
            std::string::npos);
  EXPECT_NE(ErrorOf(".entry k()\n{\n bra;\n}").find("line 6: bra"), std::string::npos);
  EXPECT_NE(ErrorOf(".entry k()\n{\n brx.idx;\n}").find("line 6"), std::string::npos);
  EXPECT_NE(ErrorOf(".entry k()\n{\n .reg .b32 r; brx.idx r;\n}").find("line 6"),
            std::string::npos);
  EXPECT_FALSE(ErrorOf(".entry k() { @%p1 ret; }").empty());
  EXPECT_FALSE(ErrorOf(".entry k() { .reg .b32 %r<4000000000>; }").empty());
  EXPECT_FALSE(ErrorOf(".global .b8 huge[99999999999999999];").empty());
  EXPECT_FALSE(ErrorOf(".entry k() { ret; } .entry k() { ret; }").empty());
  EXPECT_FALSE(ErrorOf(".global .u32 x[1] = {1, 2};").empty());
  EXPECT_FALSE(ErrorOf(".entry k() {").empty());
  EXPECT_FALSE(ErrorOf("\x01").empty());
}

}  // namespace
}  // namespace torpor::ptx
