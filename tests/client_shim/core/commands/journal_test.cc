#include "client_shim/core/commands/journal.h"

#include <gtest/gtest.h>

namespace torpor::shim {
namespace {

std::vector<std::uint32_t> Replayed(const Journal& journal, std::uint64_t known) {
  std::vector<std::uint32_t> ids;
  journal.Replay(known, [&](const Command& command) { ids.push_back(command.call_id); });
  return ids;
}

TEST(JournalTest, ReplaysInTheOrderOfCreation) {
  Journal journal;
  journal.Create(10, {1, {}});
  journal.Create(5, {2, {}});
  journal.Configure(10, {3, {}}, 0);
  EXPECT_EQ(Replayed(journal, 0), (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_TRUE(Replayed(journal, journal.version()).empty());
}

TEST(JournalTest, TellsOnlyWhatIsNew) {
  Journal journal;
  journal.Create(1, {1, {}});
  const std::uint64_t known = journal.version();
  journal.Create(2, {2, {}});
  journal.Configure(1, {3, {}}, 0);
  EXPECT_EQ(Replayed(journal, known), (std::vector<std::uint32_t>{2, 3}));
}

TEST(JournalTest, ALaterSettingReplacesTheEarlierOfTheSameKey) {
  Journal journal;
  journal.Create(1, {1, {}});
  journal.Configure(1, {3, {}}, 7);
  journal.Configure(1, {4, {}}, 0);
  journal.Configure(1, {3, {}}, 8);
  journal.Configure(1, {3, {}}, 7);
  EXPECT_EQ(Replayed(journal, 0), (std::vector<std::uint32_t>{1, 4, 3, 3}));
}

TEST(JournalTest, OnlyWhoKnewAnObjectHearsOfItsEnd) {
  Journal journal;
  journal.Create(1, {1, {}});
  const std::uint64_t knew = journal.version();
  EXPECT_TRUE(journal.Destroy(1, {9, {}}));
  EXPECT_FALSE(journal.Destroy(1, {9, {}}));
  EXPECT_FALSE(journal.Configure(1, {3, {}}, 0));
  EXPECT_TRUE(Replayed(journal, 0).empty());
  EXPECT_EQ(Replayed(journal, knew), (std::vector<std::uint32_t>{9}));
  journal.Trim(journal.version());
  EXPECT_TRUE(Replayed(journal, knew).empty());
}

TEST(JournalTest, AnObjectMayGoWithoutAWord) {
  Journal journal;
  journal.Create(1, {1, {}});
  const std::uint64_t knew = journal.version();
  EXPECT_TRUE(journal.Destroy(1, {}));
  EXPECT_FALSE(journal.IsLive(1));
  EXPECT_TRUE(Replayed(journal, knew).empty());
  EXPECT_TRUE(Replayed(journal, 0).empty());
}

}  // namespace
}  // namespace torpor::shim
