#include "tools/sim/model_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace torpor::sim {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr const char* kHead =
    "version: v1\n"
    "reference: {pcie_gbps: 10, nvlink_gbps: 50}\n"
    "percentile: 0.98\n"
    "driver_call_ms: 0.2\n"
    "models:\n";

std::string Model(const std::string& name, const std::string& host_ms = "150") {
  return "  - {name: " + name + ", native_ms: 40, resident_ms: 50, host_ms: " + host_ms +
         ", peer_ms: 52, parameters_mb: 1000, footprint_gb: 1.5, native_gb: 2.5, "
         "cold_start_s: 9, blocks: 70, deadline_ms: 200}\n";
}

std::string ErrorOf(const std::string& yaml) {
  return std::string(ParseProfiles(yaml, "file.yaml").status().message());
}

TEST(ModelProfile, ReadsWhatModelsTake) {
  const auto profiles = ParseProfiles(kHead + Model("big"), "file.yaml");
  ASSERT_TRUE(profiles.ok()) << profiles.status().message();
  ASSERT_EQ(profiles->models.size(), 1u);
  const ModelProfile& model = profiles->models.front();
  EXPECT_EQ(model.name, "big");
  EXPECT_EQ(model.native, milliseconds(40));
  EXPECT_EQ(model.resident, milliseconds(50));
  EXPECT_EQ(model.parameters, 1'000'000'000u);
  EXPECT_EQ(model.footprint, 1'500'000'000u);
  EXPECT_EQ(model.cold_start, std::chrono::seconds(9));
  EXPECT_EQ(profiles->turnover, Duration::zero());
  EXPECT_EQ(profiles->driver_call, std::chrono::microseconds(200));
}

TEST(ModelProfile, TheRestIsWhatNeitherTransferNorExecutionHides) {
  const auto profiles = ParseProfiles(kHead + Model("big"), "file.yaml");
  ASSERT_TRUE(profiles.ok());
  EXPECT_EQ(profiles->HostRest(profiles->models[0]), milliseconds(50));  // 150 less 100 of transfer
  EXPECT_EQ(profiles->PeerRest(profiles->models[0]), milliseconds(2));   // 52 less 50 of execution
}

TEST(ModelProfile, AnExecutionAloneTakesTheProfilesTime) {
  for (const ModelProfile& model : PaperProfiles().models) {
    const Duration alone = PaperProfiles().HostTransfer(model);
    const TimePoint end =
        ExecutionEnd(TimePoint(), model.resident, {TimePoint(), TimePoint() + alone, alone},
                     PaperProfiles().HostRest(model));
    EXPECT_NEAR(ToMilliseconds(end.time_since_epoch()), ToMilliseconds(model.host), 1e-5);
  }
}

TEST(ModelProfile, ATransferOfTwiceTheTimeFillsThePipelineInTwiceTheTime) {
  const auto end_ms = [](int begun_ms, int arrived_ms, int resident_ms) {
    const TimePoint end = ExecutionEnd(
        TimePoint(), milliseconds(resident_ms),
        {TimePoint(milliseconds(begun_ms)), TimePoint(milliseconds(arrived_ms)), milliseconds(20)},
        milliseconds(10));
    return end.time_since_epoch() / milliseconds(1);
  };
  EXPECT_EQ(end_ms(0, 20, 50), 60);
  EXPECT_EQ(end_ms(0, 40, 50), 70);     // it waits 20 ms for its first bytes
  EXPECT_EQ(end_ms(0, 60, 5), 70);      // the transfer is all that counts
  EXPECT_EQ(end_ms(30, 50, 50), 90);    // as if it had begun 30 ms later
  EXPECT_EQ(end_ms(-40, -20, 50), 50);  // all is there
}

TEST(ModelProfile, ThePapersAreThoseOfItsTables) {
  const Profiles& profiles = PaperProfiles();
  ASSERT_EQ(profiles.models.size(), 8u);
  const auto bert = FindModel(profiles, "bert-qa");
  ASSERT_TRUE(bert.ok());
  EXPECT_EQ(profiles.models[*bert].host, milliseconds(144));
  EXPECT_EQ(profiles.models[*bert].peer, milliseconds(45));
  EXPECT_FALSE(FindModel(profiles, "gpt").ok());
}

TEST(ModelProfile, NativeContainersAndBlocksNeedNotBeKnown) {
  const std::string head =
      "version: v1\nreference: {pcie_gbps: 10, nvlink_gbps: 50}\npercentile: 0.98\nmodels:\n";
  const std::string model =
      "  - {name: a, resident_ms: 5, host_ms: 7, peer_ms: 6, parameters_mb: 10, footprint_gb: 0.1, "
      "deadline_ms: 20";
  const auto profiles = ParseProfiles(head + model + "}\n", "file.yaml");
  ASSERT_TRUE(profiles.ok()) << profiles.status().message();
  EXPECT_EQ(profiles->models[0].native, Duration::zero());
  EXPECT_EQ(profiles->models[0].blocks, 0u);
  EXPECT_THAT(ErrorOf(head + model + ", native_ms: 5}\n"), HasSubstr("native_gb"));
}

TEST(ModelProfile, ErrorsSayWhereAndWhat) {
  EXPECT_THAT(ErrorOf(kHead + Model("a") + Model("a")), HasSubstr("file.yaml:7: a second model"));
  EXPECT_THAT(ErrorOf(kHead + Model("a", "49")), HasSubstr("must not be below resident_ms"));
  EXPECT_THAT(ErrorOf(kHead + Model("a", "90")), HasSubstr("take longer than host_ms"));
  EXPECT_THAT(ErrorOf(kHead + Model("a", "-1")), HasSubstr("host_ms must be a number"));
  EXPECT_THAT(ErrorOf(kHead), HasSubstr("models"));
  EXPECT_THAT(ErrorOf("version: v2\n"), HasSubstr("needs 'version: v1'"));
  EXPECT_THAT(ErrorOf("version: v1\n"), HasSubstr("needs 'reference'"));
  EXPECT_THAT(ErrorOf("version: v1\nmodel: []\n"), HasSubstr("unknown key 'model'"));
  EXPECT_THAT(ErrorOf("{"), HasSubstr("file.yaml"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("needs a mapping"));
}

TEST(ModelProfile, AFileThatIsNotThere) {
  EXPECT_THAT(std::string(ReadProfiles("/nowhere/p.yaml").status().message()),
              HasSubstr("/nowhere/p.yaml"));
}

}  // namespace
}  // namespace torpor::sim
