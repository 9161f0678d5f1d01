#include "emulator/ptx/fragment_slots.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "emulator/ptx/parser.h"

namespace torpor::ptx {
namespace {

class FragmentSlotsTest : public testing::Test {
 protected:
  // Registers %f<40> are numbers 0 to 39, %r<40> numbers 40 to 79.
  FragmentSlots PlaceIn(const std::string& body) {
    auto parsed = Parse(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n"
        ".reg .f32 %f<40>; .reg .b32 %r<40>; .reg .pred %p<3>;\n" +
        body + "\nret;\n}\n");
    EXPECT_TRUE(parsed) << parsed.failure().message;
    module_ = std::move(*parsed);
    const Function& function = module_.functions[0];
    flow_ = BuildControlFlow(function);
    lanes_ =
        std::make_unique<LaneAnalysis>(module_, function, flow_, BlockShape{32, true, true}, 0);
    return PlaceFragments(function, flow_, *lanes_);
  }

  static std::string Mma(const std::string& d, const std::string& c) {
    return "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 " + d + ", {%r1, %r2}, {%r5}, " + c +
           ";\n";
  }

  Module module_;
  ControlFlow flow_;
  std::unique_ptr<LaneAnalysis> lanes_;
};

constexpr char kLoads[] =
    "mov.u32 %r9, %laneid; add.u32 %r1, %r9, %r9; mul.lo.u32 %r1, %r1, %r9; mov.u32 %r2, %r1;\n"
    "mov.u32 %r5, %r1; cvt.rn.f32.u32 %f1, %r1; mov.f32 %f2, %f1; mov.f32 %f3, %f1;\n"
    "mov.f32 %f4, %f1;\n";

TEST_F(FragmentSlotsTest, OperandsLieSideBySide) {
  const FragmentSlots slots =
      PlaceIn(kLoads + Mma("{%f11, %f12, %f13, %f14}", "{%f1, %f2, %f3, %f4}"));
  EXPECT_NE(slots.places[11].slot, kNoIndex);
  EXPECT_EQ(slots.places[14].slot, slots.places[11].slot);
  EXPECT_EQ(slots.places[14].index, 3U);
  EXPECT_NE(slots.places[1].slot, slots.places[11].slot);
  EXPECT_EQ(slots.places[20].slot, kNoIndex);
  const Instruction& product = module_.functions[0].instructions.end()[-2];
  for (const Operand& operand : product.operands) EXPECT_TRUE(slots.IsInPlace(operand));
}

TEST_F(FragmentSlotsTest, RegistersApartOrUniformStayOrdinary) {
  const FragmentSlots slots =
      PlaceIn(kLoads + std::string("mov.f32 %f20, 0f00000000; mov.f32 %f21, %f20;\n") +
              "mov.f32 %f22, %f20; mov.f32 %f23, %f20;\n" +
              Mma("{%f11, %f12, %f14, %f13}", "{%f20, %f21, %f22, %f23}"));
  EXPECT_EQ(slots.places[11].slot, kNoIndex);
  EXPECT_EQ(slots.places[20].slot, kNoIndex);
  EXPECT_FALSE(slots.IsInPlace(module_.functions[0].instructions.end()[-2].operands[0]));
}

TEST_F(FragmentSlotsTest, AChainOfProductsTakesTwoSlotsInTurn) {
  const FragmentSlots slots = PlaceIn(kLoads + Mma("{%f6, %f7, %f8, %f9}", "{%f1, %f2, %f3, %f4}") +
                                      Mma("{%f11, %f12, %f13, %f14}", "{%f6, %f7, %f8, %f9}") +
                                      Mma("{%f16, %f17, %f18, %f19}", "{%f11, %f12, %f13, %f14}"));
  EXPECT_EQ(slots.places[11].slot, slots.places[1].slot);
  EXPECT_EQ(slots.places[16].slot, slots.places[6].slot);
  EXPECT_NE(slots.places[6].slot, slots.places[1].slot);
}

TEST_F(FragmentSlotsTest, WhatALoopNeedsAgainIsNotShared) {
  const FragmentSlots slots =
      PlaceIn(kLoads + std::string("mov.u32 %r20, 0;\nLOOP:\n") +
              Mma("{%f6, %f7, %f8, %f9}", "{%f1, %f2, %f3, %f4}") +
              Mma("{%f11, %f12, %f13, %f14}", "{%f6, %f7, %f8, %f9}") +
              "add.u32 %r20, %r20, 1; setp.lt.u32 %p1, %r20, 9; @%p1 bra LOOP;");
  // %f1 to %f4 are read in every round.
  EXPECT_NE(slots.places[6].slot, slots.places[1].slot);
  EXPECT_NE(slots.places[11].slot, slots.places[1].slot);
}

}  // namespace
}  // namespace torpor::ptx
