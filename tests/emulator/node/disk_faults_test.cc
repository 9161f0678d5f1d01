#include "emulator/node/disk_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "emulator/node/topology.h"

namespace torpor::emulator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

NodeResult<Topology> ParseDisk(const std::string& disk) {
  return ParseTopology("version: v1\ngpus: [{memory: 1GiB}]\nfaults:\n  disk:\n" + disk,
                       "node.yaml");
}

std::string DiskProblemOf(const std::string& entry) {
  const auto topology = ParseDisk("    - {" + entry + "}\n");
  return topology.ok() ? "" : topology.failure().message;
}

TEST(DiskFaultsTest, ReadsEntries) {
  const auto topology = ParseDisk(
      "    - {operation: write, path: '*.image', nth: 3, times: forever, error: ENOSPC}\n"
      "    - {operation: sync, nth: 1, error: EIO}\n"
      "    - {operation: read, path: '*/changes.json', nth: 1, times: 2, error: wrong_bytes}\n"
      "    - {operation: write, nth: 9, error: torn}\n");
  ASSERT_TRUE(topology.ok()) << topology.failure().message;
  EXPECT_THAT(
      topology->plan.disk,
      ElementsAre(
          DiskFault{DiskOperation::kWrite, "*.image", 3, DiskFault::kForever, DiskError::kNoSpace},
          DiskFault{DiskOperation::kSync, "*", 1, 1, DiskError::kInputOutput},
          DiskFault{DiskOperation::kRead, "*/changes.json", 1, 2, DiskError::kWrongBytes},
          DiskFault{DiskOperation::kWrite, "*", 9, 1, DiskError::kTorn}));
}

TEST(DiskFaultsTest, ATopologyWithoutThemPlansNone) {
  const auto topology = ParseTopology("version: v1\ngpus: [{memory: 1GiB}]\n", "node.yaml");
  ASSERT_TRUE(topology.ok()) << topology.failure().message;
  EXPECT_TRUE(topology->plan.disk.empty());
}

TEST(DiskFaultsTest, MistakesAreToldWithTheirLine) {
  EXPECT_THAT(DiskProblemOf("operation: write, error: EIO"),
              HasSubstr("node.yaml:5: needs 'nth', the number of the operation"));
  EXPECT_THAT(DiskProblemOf("operation: open, nth: 1, error: EIO"),
              HasSubstr("'operation' must be one of create, read, write, sync, rename, remove"));
  EXPECT_THAT(DiskProblemOf("operation: write, nth: 1, error: EROFS"),
              HasSubstr("'error' must be one of ENOSPC, EIO, torn, wrong_bytes"));
  EXPECT_THAT(DiskProblemOf("operation: write, nth: 0, error: EIO"),
              HasSubstr("nth must be a whole number from 1"));
  EXPECT_THAT(DiskProblemOf("operation: write, nth: 1, times: 0, error: EIO"),
              HasSubstr("times, if not forever, must be a whole number from 1"));
  EXPECT_THAT(DiskProblemOf("operation: write, nth: 1, path: '', error: EIO"), HasSubstr("path"));
  EXPECT_THAT(DiskProblemOf("operation: sync, nth: 1, error: torn"),
              HasSubstr("only a write can be torn"));
  EXPECT_THAT(DiskProblemOf("operation: write, nth: 1, error: wrong_bytes"),
              HasSubstr("only a read can have wrong_bytes"));
  EXPECT_THAT(DiskProblemOf("operation: remove, nth: 1, error: ENOSPC"),
              HasSubstr("need no space"));
  EXPECT_THAT(DiskProblemOf("operation: write, nth: 1, error: EIO, gpu: 0"), HasSubstr("gpu"));
}

TEST(DiskFaultsTest, AnEntryCountsOneOperationOnMatchingFiles) {
  const DiskFault fault{.operation = DiskOperation::kWrite, .path = "*.image"};
  EXPECT_TRUE(fault.Counts(DiskOperation::kWrite, "/var/lib/torpor/spilled/session-1.image"));
  EXPECT_FALSE(fault.Counts(DiskOperation::kRead, "/var/lib/torpor/spilled/session-1.image"));
  EXPECT_FALSE(fault.Counts(DiskOperation::kWrite, "/var/lib/torpor/changes.json"));
  EXPECT_TRUE(DiskFault{.operation = DiskOperation::kSync}.Counts(DiskOperation::kSync, "/any"));
}

TEST(DiskFaultsTest, TheErrorIsMetAsOftenAsPlanned) {
  const DiskFault twice{.nth = 3, .times = 2};
  EXPECT_FALSE(twice.IsMetBy(2));
  EXPECT_TRUE(twice.IsMetBy(3));
  EXPECT_TRUE(twice.IsMetBy(4));
  EXPECT_FALSE(twice.IsMetBy(5));
  const DiskFault always{.nth = 3, .times = DiskFault::kForever};
  EXPECT_FALSE(always.IsMetBy(2));
  EXPECT_TRUE(always.IsMetBy(1'000'000));
}

TEST(DiskFaultsTest, NamesAreThoseOfTheFile) {
  EXPECT_EQ(NameOf(DiskOperation::kRename), "rename");
  EXPECT_EQ(NameOf(DiskError::kNoSpace), "ENOSPC");
  EXPECT_EQ(NameOf(DiskError::kWrongBytes), "wrong_bytes");
}

}  // namespace
}  // namespace torpor::emulator
