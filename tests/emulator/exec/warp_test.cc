#include <algorithm>
#include <bit>
#include <vector>

#include "tests/emulator/exec/kernel_test.h"

namespace torpor::emulator {
namespace {

class WarpTest : public KernelTest {
 protected:
  void SetUp() override { Load("warp"); }
};

constexpr int kThreads = 64;

int ValueOf(int thread) { return thread * 7 + 1; }

// The values of a thread's warp, in lane order.
std::vector<int> WarpValues(int thread) {
  std::vector<int> values;
  for (int lane = 0; lane < 32; ++lane) values.push_back(ValueOf(thread / 32 * 32 + lane));
  return values;
}

TEST_F(WarpTest, ShufflesReadTheRightLane) {
  DeviceArray<int> out(memory_, 8 * kThreads);
  MustRun("shuffles", {1, 1, 1}, {kThreads, 1, 1}, out.data(), 6);
  for (int t = 0; t < kThreads; ++t) {
    const std::vector<int> v = WarpValues(t);
    const int lane = t % 32;
    EXPECT_EQ(out[t], v[t * 5 & 31]);
    EXPECT_EQ(out[kThreads + t], v[lane >= 3 ? lane - 3 : lane]);
    EXPECT_EQ(out[2 * kThreads + t], v[lane % 8 + 5 < 8 ? lane + 5 : lane]);
    EXPECT_EQ(out[3 * kThreads + t], v[lane ^ 9]);
    EXPECT_EQ(out[4 * kThreads + t], v[4]);
    EXPECT_EQ(out[5 * kThreads + t], v[lane + 6 < 32 ? lane + 6 : lane]);
    EXPECT_EQ(out[6 * kThreads + t], static_cast<int>(v[lane ^ 1] * 1.5));
    EXPECT_EQ(out[7 * kThreads + t], v[lane / 8 * 8 + 2]);
  }
}

TEST_F(WarpTest, VotesSeeTheWholeWarp) {
  DeviceArray<int> out(memory_, 8 * kThreads);
  MustRun("votes", {1, 1, 1}, {kThreads, 1, 1}, out.data());
  for (int t = 0; t < kThreads; ++t) {
    const std::vector<int> v = WarpValues(t);
    unsigned ballot = 0;
    unsigned same = 0;
    int sum = 0;
    int largest = 0;
    int odd_before = 0;
    for (int lane = 0; lane < 32; ++lane) {
      if ((v[lane] & 4) != 0) ballot |= 1U << lane;
      if ((v[lane] & 6) == (v[t % 32] & 6)) same |= 1U << lane;
      sum += v[lane];
      largest = std::max(largest, v[lane] ^ 21);
      odd_before += lane < t % 32 && lane % 2 == 1 ? 1 : 0;
    }
    unsigned active = 0;
    for (int lane = 0; lane < 32; ++lane) {
      if ((t / 32 * 32 + lane) % 3 != 0) active |= 1U << lane;
    }
    EXPECT_EQ(out[t], static_cast<int>(ballot));
    EXPECT_EQ(out[kThreads + t], t < 32 ? 1 + 2 : 0);
    EXPECT_EQ(out[2 * kThreads + t], sum);
    EXPECT_EQ(out[3 * kThreads + t], static_cast<int>(same));
    EXPECT_EQ(out[4 * kThreads + t], t % 3 == 0 ? 0 : static_cast<int>(active));
    EXPECT_EQ(out[5 * kThreads + t], largest);
    EXPECT_EQ(out[6 * kThreads + t], sum);
    EXPECT_EQ(out[7 * kThreads + t], odd_before);
  }
}

TEST_F(WarpTest, AtomicsLoseNothing) {
  constexpr int kTotal = 100 * 128;
  DeviceArray<int> i(memory_, 9);
  DeviceArray<float> f(memory_, 4);
  DeviceArray<double> d(memory_, 1);
  DeviceArray<std::uint64_t> u(memory_, 2);
  i[6] = -1;
  i[7] = 0;
  MustRun("atomics", {100, 1, 1}, {128, 1, 1}, i.data(), f.data(), d.data(), u.data());
  const int sum = kTotal * (kTotal - 1) / 2;
  int exclusive = 0;
  for (int t = 0; t < kTotal; ++t) exclusive ^= t;
  EXPECT_EQ(i[0], sum);
  EXPECT_EQ(i[1], kTotal - 1);
  EXPECT_EQ(i[2], -(kTotal - 1));
  EXPECT_EQ(i[3], kTotal % 100);
  EXPECT_EQ(i[4], exclusive);
  EXPECT_EQ(i[5], -1);
  EXPECT_EQ(i[6], static_cast<int>(0xffff0000));
  EXPECT_EQ(i[7], -kTotal);
  EXPECT_EQ(i[8], (8 - kTotal % 8) % 8);
  for (int k = 0; k < 4; ++k) EXPECT_EQ(f[k], kTotal / 4.0F);
  EXPECT_EQ(d[0], kTotal * 0.5);
  EXPECT_EQ(u[0], static_cast<std::uint64_t>(sum));
  EXPECT_EQ(u[1], static_cast<std::uint64_t>(kTotal - 1) << 33);
}

TEST_F(WarpTest, SharedAtomicsCountAHistogram) {
  constexpr int kCount = 100000;
  DeviceArray<std::uint8_t> data(memory_, kCount);
  DeviceArray<int> bins(memory_, 256);
  std::vector<int> expected(256);
  for (int i = 0; i < kCount; ++i) {
    data[i] = static_cast<std::uint8_t>(i * i >> 4);
    ++expected[data[i]];
  }
  MustRun("histogram", {7, 1, 1}, {256, 1, 1}, data.data(), kCount, bins.data());
  for (int b = 0; b < 256; ++b) EXPECT_EQ(bins[b], expected[b]);
}

}  // namespace
}  // namespace torpor::emulator
