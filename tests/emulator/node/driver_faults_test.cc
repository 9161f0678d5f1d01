#include "emulator/node/driver_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "emulator/node/topology.h"

namespace torpor::emulator {
namespace {

using testing::HasSubstr;

NodeResult<Topology> ParseFaults(const std::string& faults) {
  return ParseTopology("version: v1\ngpus: [{memory: 1GiB}]\n" + faults, "node.yaml");
}

std::string ProblemOfFaults(const std::string& faults) {
  const auto topology = ParseFaults(faults);
  return topology.ok() ? "" : topology.failure().message;
}

TEST(DriverFaultsTest, ADriverKeepsItsPromisesUnlessToldOtherwise) {
  EXPECT_EQ(ParseFaults("")->faults, DriverFaults());
  EXPECT_EQ(ParseFaults("faults: {}\n")->faults, DriverFaults());
}

TEST(DriverFaultsTest, AFaultIsSetByItself) {
  EXPECT_EQ(ParseFaults("faults: {exports: refused}\n")->faults,
            DriverFaults{.refuses_exports = true});
  EXPECT_EQ(ParseFaults("faults: {memory_ends_at: 96MiB}\n")->faults,
            DriverFaults{.memory_ends_at = 96 * kMiB});
}

TEST(DriverFaultsTest, AnythingElseIsAnErrorWithItsLine) {
  EXPECT_THAT(ProblemOfFaults("faults: {exports: allowed}\n"),
              HasSubstr("node.yaml:3: 'exports' can only be refused"));
  EXPECT_THAT(ProblemOfFaults("faults: {exports: [refused]}\n"), HasSubstr("'exports'"));
  EXPECT_THAT(ProblemOfFaults("faults: {memory_ends_at: soon}\n"), HasSubstr("node.yaml:3"));
  EXPECT_THAT(ProblemOfFaults("faults: {memory: 1MiB}\n"), HasSubstr("memory"));
  EXPECT_THAT(ProblemOfFaults("faults: true\n"), HasSubstr("node.yaml:3"));
}

}  // namespace
}  // namespace torpor::emulator
