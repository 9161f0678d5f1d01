#include "server/controller/model/session_table.h"

#include "tests/server/controller/node_world.h"

namespace torpor::server {
namespace {

class SessionTableTest : public NodeWorld {};

TEST_F(SessionTableTest, AStreamHasOneSession) {
  const auto link = std::make_shared<FakeSessionLink>();
  const SessionPtr session = tables_.sessions.OfLink(link);
  EXPECT_EQ(tables_.sessions.OfLink(link), session);
  EXPECT_EQ(tables_.sessions.Find(session->id), session);
  EXPECT_EQ(tables_.sessions.TakeOfLink(link.get()), session);
  EXPECT_EQ(tables_.sessions.TakeOfLink(link.get()), nullptr);
  EXPECT_EQ(tables_.sessions.Find(session->id), session) << "it has not been forgotten";
  tables_.sessions.Forget(*session);
  EXPECT_EQ(tables_.sessions.Find(session->id), nullptr);
}

TEST_F(SessionTableTest, SessionsOfAProcessAreSiblings) {
  const SessionPtr primary = AddSession("pair");
  const SessionPtr secondary = AddSession("pair", 1, primary);
  const SessionPtr other = AddSession("pair");
  EXPECT_EQ(tables_.sessions.SiblingsOf(*primary), std::vector{secondary});
  EXPECT_EQ(tables_.sessions.SiblingsOf(*secondary), std::vector{primary});
  EXPECT_TRUE(tables_.sessions.SiblingsOf(*other).empty());
  EXPECT_EQ(tables_.sessions.PeersOf(*primary), std::vector{secondary});
  EXPECT_TRUE(tables_.sessions.SiblingsOf(ClientSession{}).empty()) << "it has not said Hello";
}

TEST_F(SessionTableTest, AllSessionsOfASharingFunctionArePeers) {
  const SessionPtr first = AddSession("a");
  const SessionPtr second = AddSession("a");
  EXPECT_TRUE(tables_.sessions.PeersOf(*first).empty());
  InstanceOf("a").is_sharing = true;
  EXPECT_EQ(tables_.sessions.PeersOf(*first), std::vector{second});
}

TEST_F(SessionTableTest, FindsTheSessionsOfAShardAndTheAbleOnes) {
  const SessionPtr primary = AddSession("pair");
  const SessionPtr secondary = AddSession("pair", 1, primary);
  const FunctionInstance& pair = InstanceOf("pair");
  EXPECT_EQ(tables_.sessions.Of(tables_.instances.ShardOf(pair.shards[1])), std::vector{secondary});
  primary->is_lost = true;
  EXPECT_EQ(tables_.sessions.AbleOf(pair), std::vector{secondary});
}

TEST_F(SessionTableTest, OpenedBlocksAreTheProcesss) {
  const SessionPtr owner = AddSession("pair");
  const SessionPtr primary = AddSession("pair");
  const SessionPtr secondary = AddSession("pair", 1, primary);
  primary->opened_blocks.emplace(owner->id, Bytes{0});
  EXPECT_EQ(tables_.sessions.OwnersOpenedBy(*secondary), std::vector{owner});
  EXPECT_TRUE(tables_.sessions.OwnersOpenedBy(*owner).empty());
}

// A session of an earlier torpord.
TEST_F(SessionTableTest, AStreamCanTurnOutToBeAnAbsentClients) {
  tables_.sessions.BeginIdsAt(SessionId{50});
  const SessionPtr session = tables_.sessions.Add(SessionId{7});
  session->link->Send(wire::LeaseRevoke{});  // which nobody hears
  const auto link = std::make_shared<FakeSessionLink>();
  const SessionPtr newcomer = tables_.sessions.OfLink(link);
  EXPECT_EQ(newcomer->id, SessionId{50}) << "earlier ids were given out";
  tables_.sessions.MoveLink(newcomer, session);
  EXPECT_EQ(tables_.sessions.Find(newcomer->id), nullptr);
  EXPECT_EQ(tables_.sessions.OfLink(link), session);
  tables_.sessions.DropLink(session);
  EXPECT_EQ(tables_.sessions.TakeOfLink(link.get()), nullptr);
  EXPECT_EQ(tables_.sessions.Find(session->id), session);
}

}  // namespace
}  // namespace torpor::server
