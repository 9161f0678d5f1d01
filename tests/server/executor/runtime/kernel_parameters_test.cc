#include "server/executor/runtime/kernel_parameters.h"

#include <array>

#include "tests/server/executor/runtime/runtime_fixture.h"

namespace torpor::executor {
namespace {

using Words = std::array<std::uint64_t, 2>;

std::span<const std::uint8_t> Bytes8(const Words& words) {
  return {reinterpret_cast<const std::uint8_t*>(words.data()), sizeof words};
}

class KernelParametersTest : public RuntimeTest {
 protected:
  explicit KernelParametersTest(AddressMode mode = AddressMode::kMap) : RuntimeTest(mode) {}

  Words OnThisGpu(const std::vector<wire::KernelParameter>& layout, const Words& words) {
    Words result{};
    std::memcpy(result.data(), parameters_.OnThisGpu(layout, Bytes8(words)), sizeof result);
    return result;
  }

  SessionTextures textures_{*s_.device};
  KernelParameters parameters_{*s_.memory, modules_, textures_};
};

TEST_F(KernelParametersTest, WhereAllNumbersMeanTheSameNothingIsCopied) {
  const Words words{base(), 5};
  EXPECT_EQ(parameters_.OnThisGpu({{0, 8}, {8, 8}}, Bytes8(words)), Bytes8(words).data());
}

class TranslatedParametersTest : public KernelParametersTest {
 protected:
  TranslatedParametersTest() : KernelParametersTest(AddressMode::kTranslate) {}

  std::uint64_t there() const { return reinterpret_cast<std::uint64_t>(s_.Gpu(16)); }
};

TEST_F(TranslatedParametersTest, PointersBecomeTheAddressesThatTheGpuKnows) {
  ASSERT_NE(there(), base() + 16);
  EXPECT_EQ(OnThisGpu({{0, 8}, {8, 8}}, {base() + 16, 5}), (Words{there(), 5}));
}

TEST_F(TranslatedParametersTest, PointersInsideOfStructuresToo) {
  EXPECT_EQ(OnThisGpu({{0, 16}}, {5, base() + 16}), (Words{5, there()}));
}

TEST_F(TranslatedParametersTest, TwoNumbersThatLookLikeAnAddressTogetherStay) {
  EXPECT_EQ(OnThisGpu({{0, 4}, {4, 4}, {8, 8}}, {base() + 16, base() + 16}),
            (Words{base() + 16, there()}));
}

}  // namespace
}  // namespace torpor::executor
