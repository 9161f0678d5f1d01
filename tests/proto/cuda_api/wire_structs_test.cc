#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "proto/cuda_api/cublas_commands.h"
#include "proto/cuda_api/cudart_commands.h"
#include "tests/proto/cuda_api/field_filler.h"

namespace torpor::wire {
namespace {

// A message of this type with random fields, encoded.
template <typename T>
std::vector<std::uint8_t> Random(std::uint32_t seed) {
  FieldFiller filler(seed);
  T message;
  filler(message);
  std::vector<std::uint8_t> bytes;
  Writer{bytes}(message);
  return bytes;
}

// Decoded as this type and encoded again; nothing where the bytes are not exactly one message.
template <typename T>
std::optional<std::vector<std::uint8_t>> Recode(std::span<const std::uint8_t> bytes) {
  T message;
  Reader reader(bytes);
  reader(message);
  if (!reader.done()) return std::nullopt;
  std::vector<std::uint8_t> again;
  Writer{again}(message);
  return again;
}

struct WireType {
  decltype(&Random<StreamCreate>) random;
  decltype(&Recode<StreamCreate>) recode;
};

template <typename... Ts>
struct WireTypes {
  static std::vector<WireType> Get() { return {{&Random<Ts>, &Recode<Ts>}...}; }
};

class WireStructsTest : public testing::TestWithParam<std::vector<WireType>> {};

TEST_P(WireStructsTest, RoundTripAndRefuseEveryOtherLength) {
  for (std::size_t type = 0; type < GetParam().size(); ++type) {
    for (std::uint32_t seed = 0; seed < 4; ++seed) {
      const WireType& wire = GetParam()[type];
      std::vector<std::uint8_t> bytes = wire.random(seed);
      EXPECT_EQ(wire.recode(bytes), bytes) << type;
      for (std::size_t length = 0; length < bytes.size(); ++length)
        EXPECT_FALSE(wire.recode(std::span(bytes.data(), length))) << type << " " << length;
      bytes.resize(bytes.size() + kAlignment);
      EXPECT_FALSE(wire.recode(bytes)) << type;
    }
  }
}

#ifndef __clang_analyzer__  // it looks into every instantiation, which takes minutes
INSTANTIATE_TEST_SUITE_P(All, WireStructsTest,
                         testing::Values(EveryCudartCommand<WireTypes>::Get(),
                                         EveryCudartResult<WireTypes>::Get(),
                                         EveryCublasCommand<WireTypes>::Get(),
                                         EveryCublasResult<WireTypes>::Get()));
#endif

template <typename... Ts>
struct CallIds {
  static std::multiset<std::uint32_t> Get() { return {Ts::kCallId...}; }
};

TEST(CallIdsTest, AreUniqueAndClearOfTheProtocolsOwn) {
  std::multiset<std::uint32_t> ids = EveryCudartCommand<CallIds>::Get();
  ids.merge(EveryCublasCommand<CallIds>::Get());
  for (const std::uint32_t id : ids) {
    EXPECT_EQ(ids.count(id), 1u) << id;
    EXPECT_GE(id, 64u);
  }
}

}  // namespace
}  // namespace torpor::wire
