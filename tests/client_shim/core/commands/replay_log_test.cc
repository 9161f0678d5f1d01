#include "client_shim/core/commands/replay_log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client_shim/core/commands/batch_writer.h"

namespace torpor::shim {
namespace {

constexpr std::uint32_t kCall = 100;
constexpr std::uint32_t kCreate = 101;
constexpr std::uint32_t kSet = 102;
constexpr std::uint32_t kDestroy = 103;
constexpr std::uint64_t kObject = 0x1'0000'0000'0001;

class ReplayLogTest : public ::testing::Test {
 protected:
  // A batch of commands with numbers from `first` to `last`, and a drain behind.
  void Append(std::uint64_t first, std::uint64_t last, std::size_t field_bytes = 3) {
    BatchWriter batch({1 << 20, 1000, std::chrono::hours(1)});
    for (std::uint64_t number = first; number <= last; ++number)
      batch.Append(kCall, std::vector<std::uint8_t>(field_bytes, Byte(number)), number);
    batch.Append(static_cast<std::uint32_t>(wire::ProtocolCall::kDrain), {});
    log_.Append(batch.first_number(), batch.numbered(), batch.commands());
  }
  static std::uint8_t Byte(std::uint64_t number) { return static_cast<std::uint8_t>(number); }
  void Change(JournalChange::Kind kind, std::uint32_t call, std::uint64_t number,
              bool is_command = false) {
    log_.NoteChange(JournalChange::Of(kind, kObject, {call, {}}), number, is_command);
  }
  // Commands by their numbers, changes by their calls.
  std::vector<std::string> Visited() const {
    std::vector<std::string> visited;
    log_.Visit({.on_command =
                    [&](std::uint64_t number, const Command& command) {
                      EXPECT_EQ(command.call_id, kCall);
                      EXPECT_EQ(command.fields[0], Byte(number));
                      visited.push_back(std::to_string(number));
                    },
                .on_change =
                    [&](const JournalChange& change) {
                      visited.push_back("c" + std::to_string(change.call_id));
                    }});
    return visited;
  }
  std::vector<std::uint32_t> Objects() {
    std::vector<std::uint32_t> calls;
    log_.objects().Replay(0, [&](const Command& command) { calls.push_back(command.call_id); });
    return calls;
  }
  using Strings = std::vector<std::string>;

  ReplayLog log_;
};

TEST_F(ReplayLogTest, GivesCommandsInOrderFromTheCheckpointOn) {
  EXPECT_FALSE(log_.has_commands());
  Append(1, 3);
  Append(4, 5);
  EXPECT_TRUE(log_.has_commands());
  EXPECT_EQ(Visited(), (Strings{"1", "2", "3", "4", "5"}));
  EXPECT_TRUE(log_.TrimTo(3));
  EXPECT_EQ(Visited(), (Strings{"4", "5"}));
  EXPECT_TRUE(log_.TrimTo(4)) << "in the middle of a batch";
  EXPECT_EQ(Visited(), Strings{"5"});
  EXPECT_TRUE(log_.TrimTo(5));
  EXPECT_FALSE(log_.has_commands());
  EXPECT_EQ(log_.bytes(), 0u);
}

TEST_F(ReplayLogTest, KnowsHowFarItReaches) {
  Append(1, 9);
  EXPECT_FALSE(log_.TrimTo(10)) << "nobody has sent that";
  EXPECT_TRUE(log_.TrimTo(6));
  EXPECT_FALSE(log_.TrimTo(5)) << "5 is forgotten";
  EXPECT_TRUE(log_.TrimTo(6));
  EXPECT_EQ(log_.saved(), 6u);
  EXPECT_EQ(log_.last(), 9u);
}

TEST_F(ReplayLogTest, ARestartMakesEarlierCheckpointsAsGood) {
  Append(1, 9);
  EXPECT_TRUE(log_.TrimTo(2));
  log_.Restart(9);
  EXPECT_TRUE(log_.TrimTo(2)) << "no memory is left of that time";
  EXPECT_TRUE(Visited().empty());
  Append(10, 11);
  EXPECT_TRUE(log_.TrimTo(2));
  EXPECT_EQ(Visited(), (Strings{"10", "11"}));
  EXPECT_TRUE(log_.TrimTo(10));
  EXPECT_FALSE(log_.TrimTo(2));
}

TEST_F(ReplayLogTest, ChangesOfTheJournalStandInTheirPlaces) {
  Change(JournalChange::Kind::kCreate, kCreate, 0);
  Append(1, 2);
  Change(JournalChange::Kind::kConfigure, kSet, 2);
  Append(3, 4);
  Change(JournalChange::Kind::kDestroy, kDestroy, 4);
  EXPECT_EQ(Visited(), (Strings{"c101", "1", "2", "c102", "3", "4", "c103"}));
  EXPECT_TRUE(log_.TrimTo(1));
  EXPECT_EQ(Objects(), std::vector{kCreate});
  EXPECT_EQ(Visited(), (Strings{"2", "c102", "3", "4", "c103"}));
  EXPECT_TRUE(log_.TrimTo(2));
  EXPECT_EQ(Objects(), (std::vector{kCreate, kSet}));
  EXPECT_EQ(Visited(), (Strings{"3", "4", "c103"}));
  EXPECT_TRUE(log_.TrimTo(4));
  EXPECT_TRUE(Objects().empty());
}

TEST_F(ReplayLogTest, ChangesThatAreCommandsComeOnce) {
  Change(JournalChange::Kind::kCreate, kCreate, 2, /*is_command=*/true);
  Append(1, 3);
  EXPECT_EQ(Visited(), (Strings{"1", "2", "3"}));
  EXPECT_TRUE(log_.TrimTo(2));
  EXPECT_EQ(Objects(), std::vector{kCreate});
}

TEST_F(ReplayLogTest, RemembersWhatTheProgramHasSeen) {
  Append(1, 5);
  for (const std::uint64_t call : {2, 4, 5}) log_.NoteCall(call);
  log_.NoteSeen(2, {0, 77});
  log_.NoteSeen(4, {700, std::nullopt});
  std::optional<ReplayLog::Seen> seen;
  EXPECT_FALSE(log_.FindCall(1, seen));
  ASSERT_TRUE(log_.FindCall(2, seen));
  EXPECT_EQ(seen->hash, 77u);
  ASSERT_TRUE(log_.FindCall(4, seen));
  EXPECT_EQ(seen->status, 700);
  ASSERT_TRUE(log_.FindCall(5, seen));
  EXPECT_FALSE(seen) << "nobody has had the answer";
  EXPECT_TRUE(log_.TrimTo(2));
  EXPECT_FALSE(log_.FindCall(2, seen));
  log_.NoteSeen(2, {0, 1});  // came late
}

TEST_F(ReplayLogTest, LongBatchesAndManyOfThemLoseNothing) {
  std::uint64_t number = 1;
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 40; ++i, number += 2) Append(number, number + 1, 100'000);
    Append(number, number, 3 << 20);
    EXPECT_GT(log_.bytes(), std::size_t{10} << 20);
    const std::size_t left = Visited().size();
    EXPECT_EQ(left, 81u);
    EXPECT_TRUE(log_.TrimTo(number));
    ++number;
    EXPECT_EQ(log_.bytes(), 0u);
  }
}

}  // namespace
}  // namespace torpor::shim
