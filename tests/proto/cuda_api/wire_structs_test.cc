#include <gtest/gtest.h>

#include <set>

#include "proto/cuda_api/cublas_commands.h"
#include "proto/cuda_api/cudart_commands.h"
#include "tests/proto/cuda_api/field_filler.h"

namespace torpor::wire {
namespace {

template <typename T>
std::vector<std::uint8_t> Encode(const T& message) {
  std::vector<std::uint8_t> bytes;
  Writer{bytes}(message);
  return bytes;
}

template <typename T>
void RefusesEveryOtherLength(std::vector<std::uint8_t> bytes) {
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    T truncated;
    Reader reader(std::span<const std::uint8_t>(bytes).first(length));
    reader(truncated);
    EXPECT_FALSE(reader.done()) << length << " of " << bytes.size() << typeid(T).name();
  }
  bytes.resize(bytes.size() + kAlignment);
  T extended;
  Reader reader(bytes);
  reader(extended);
  EXPECT_FALSE(reader.done()) << typeid(T).name();
}

template <typename T>
void RoundTrips() {
  for (std::uint32_t seed = 0; seed < 4; ++seed) {
    FieldFiller filler(seed);
    T message;
    filler(message);
    const std::vector<std::uint8_t> bytes = Encode(message);
    T decoded;
    Reader reader(bytes);
    reader(decoded);
    EXPECT_TRUE(reader.done()) << typeid(T).name();
    EXPECT_EQ(Encode(decoded), bytes) << typeid(T).name();
    RefusesEveryOtherLength<T>(bytes);
  }
}

template <typename... Ts>
struct All {
  static void RoundTrip() { (RoundTrips<Ts>(), ...); }
};

TEST(WireStructsTest, CudartCommands) { EveryCudartCommand<All>::RoundTrip(); }
TEST(WireStructsTest, CudartResults) { EveryCudartResult<All>::RoundTrip(); }
TEST(WireStructsTest, CublasCommands) { EveryCublasCommand<All>::RoundTrip(); }
TEST(WireStructsTest, CublasResults) { EveryCublasResult<All>::RoundTrip(); }

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
