#include "emulator/exec/codegen/builder/access_check.h"

#include "tests/emulator/exec/codegen/builder/builder_test.h"

namespace torpor::emulator {
namespace {

// What the fake runtime was told; a test runs one function at a time.
struct Report {
  std::uint32_t mask = 0;
  std::uint32_t bytes = 0;
  std::uint64_t first = 0;
};

class AccessCheckTest : public BuilderTest {
 protected:
  AccessCheckTest() {
    calls_.check_access = [](WarpContext* warp, std::uint32_t mask, const std::uint64_t* addresses,
                             std::uint32_t bytes) {
      *reinterpret_cast<Report*>(warp->grid_workspace) = {mask, bytes, addresses[0]};
    };
    context_.grid_workspace = reinterpret_cast<std::uint64_t>(&report_);
    context_.window_begin = 0x10000;
    context_.window_bytes = 0x1000;
  }

  void Check(std::uint64_t base, const ptx::LaneShape& shape, unsigned bytes) {
    Open("ret;");
    AccessCheck check(code(), parts_->context, parts_->addresses);
    LaneAddress address;
    address.space = ptx::Space::kGlobal;
    address.shape = shape;
    address.value = code()->getInt64(base);
    if (!shape.linear()) address.value = code().Spread(address.value, 8);
    check.Check(address, bytes, Mask(0xf0));
    Close();
    Run();
  }

  Report report_;
};

TEST_F(AccessCheckTest, LetsTheWindowPass) {
  Check(0x10000, ptx::LaneShape::Linear(4, 0, 0), 4);
  EXPECT_EQ(report_.bytes, 0U);
}

TEST_F(AccessCheckTest, ReportsALaneBehindTheWindow) {
  Check(0x10ffc, ptx::LaneShape::Linear(4, 0, 0), 4);
  EXPECT_EQ(report_.bytes, 4U);
  EXPECT_EQ(report_.mask, 0xf0U);
  EXPECT_EQ(report_.first, 0x10ffcU);
}

TEST_F(AccessCheckTest, ReportsAMisalignedAddress) {
  Check(0x10002, ptx::LaneShape::Uniform(), 4);
  EXPECT_EQ(report_.bytes, 4U);
}

TEST_F(AccessCheckTest, IgnoresVaryingAddressesOfInactiveLanes) {
  Check(0x10000 - 4 * 8, ptx::LaneShape::Varying(), 8);  // lanes 0 to 3 lie before the window
  EXPECT_EQ(report_.bytes, 0U);
}

TEST_F(AccessCheckTest, LooksAtVaryingAddressesOfActiveLanes) {
  Check(0x10000 - 5 * 8, ptx::LaneShape::Varying(), 8);
  EXPECT_EQ(report_.bytes, 8U);
}

}  // namespace
}  // namespace torpor::emulator
