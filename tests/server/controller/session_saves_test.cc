#include "server/controller/session_saves.h"

#include "tests/server/controller/node_world.h"

namespace torpor::server {
namespace {

using Reply = wire::SaveMemoryReply;

class SessionSavesTest : public NodeWorld {
 protected:
  void Save(TimePoint begin = TimePoint::max()) {
    saves_.Save(InstanceOf("a"), begin, [this](const absl::Status& status) {
      ++answers_;
      outcome_ = status;
    });
  }
  // A session of a with a part in its lease.
  SessionPtr AddParticipant(ParticipantState state) {
    SessionPtr session = AddSession("a");
    InstanceLease& lease = InstanceOf("a").lease ? *InstanceOf("a").lease : GiveLease("a");
    session->lease.id = lease.id;
    lease.participants[session->id] = state;
    return session;
  }
  // The id of the save that the session is asked for.
  static std::uint64_t AskedOf(const SessionPtr& session) {
    const auto asked = LinkOf(session).Take<wire::SaveMemory>();
    EXPECT_TRUE(asked);
    return asked ? asked->save_id : 0;
  }
  // The session's memory is on GPU 0, with work that the host's image lacks.
  static void Change(const SessionPtr& session) {
    Land(session, 0);
    session->image.NoteLease(LeaseId{1}, /*is_explicit=*/true);
  }

  PeerAccess peers_{tables_.executors, tables_.sessions};
  ImageSwaps swaps_{tables_.executors,
                    tables_.instances,
                    tables_.sessions,
                    peers_,
                    host_.room,
                    telemetry_,
                    loop_,
                    [] {}};
  SessionSaves saves_{tables_.sessions, swaps_, loop_};
  int answers_ = 0;
  absl::Status outcome_;
};

TEST_F(SessionSavesTest, WithoutSessionsNothingIsToBeSaved) {
  Save();
  EXPECT_EQ(answers_, 1);
  EXPECT_EQ(outcome_, absl::OkStatus());
}

TEST_F(SessionSavesTest, EverySessionThatHoldsTheGpuSaves) {
  const SessionPtr first = AddParticipant(ParticipantState::kAcked);
  const SessionPtr second = AddParticipant(ParticipantState::kOffered);
  const SessionPtr idle = AddParticipant(ParticipantState::kPreparing);
  Save();
  const std::uint64_t of_first = AskedOf(first);
  const std::uint64_t of_second = AskedOf(second);
  EXPECT_FALSE(LinkOf(idle).Take<wire::SaveMemory>()) << "it has done nothing";
  saves_.OnReply(first, {of_second, Reply::kSaved, ""});
  saves_.OnReply(second, {of_second, Reply::kSaved, ""});
  EXPECT_EQ(answers_, 0);
  saves_.OnReply(first, {of_first, Reply::kSaved, ""});
  EXPECT_EQ(answers_, 1);
  EXPECT_EQ(outcome_, absl::OkStatus());
}

TEST_F(SessionSavesTest, WhatASessionWithoutLeaseHasLeftIsWrittenBack) {
  Change(AddSession("a"));
  Save();
  EXPECT_TRUE(Operation(0).has_swap_out());
  EXPECT_FALSE(Operation(0).swap_out().drop());
  Answer(0);
  EXPECT_EQ(answers_, 1);
  EXPECT_EQ(outcome_, absl::OkStatus());
  Save();
  EXPECT_EQ(answers_, 2) << "the host's image has all";
  EXPECT_TRUE(IsQuiet(0));
}

TEST_F(SessionSavesTest, ALeaseThatEndsMeanwhileLeavesTheRestToTorpord) {
  const SessionPtr session = AddParticipant(ParticipantState::kAcked);
  Change(session);
  Save();
  const std::uint64_t id = AskedOf(session);
  InstanceOf("a").lease.reset();
  session->lease.id = {};
  saves_.OnReply(session, {id, Reply::kNoLease, ""});
  EXPECT_TRUE(Operation(0).has_swap_out());
  Answer(0);
  EXPECT_EQ(outcome_, absl::OkStatus());
}

TEST_F(SessionSavesTest, ALeaseThatOnlyTheClientKnowsToBeOverIsAskedAgain) {
  const SessionPtr session = AddParticipant(ParticipantState::kAcked);
  Save();
  saves_.OnReply(session, {AskedOf(session), Reply::kNoLease, ""});
  EXPECT_TRUE(absl::IsAborted(outcome_));
}

TEST_F(SessionSavesTest, AnExecutorThatDiesIsAskedAgain) {
  const SessionPtr session = AddSession("a");
  Change(session);
  Save();
  KillExecutor(0);
  EXPECT_TRUE(absl::IsAborted(outcome_));
  session->image.NoteReplayDue();
  Save();
  EXPECT_TRUE(absl::IsAborted(outcome_)) << "what was lost is not done again yet";
}

TEST_F(SessionSavesTest, AClientThatIsAwayIsAwaitedIfItWasThere) {
  const SessionPtr session = AddSession("a");
  session->state = ClientSession::State::kAway;
  session->away_since = loop_.Now();
  const TimePoint before = loop_.Now() - std::chrono::seconds(1);
  Save(before);
  EXPECT_TRUE(absl::IsAborted(outcome_));
  loop_.Advance(std::chrono::seconds(5));
  Save(before);
  EXPECT_TRUE(absl::IsUnavailable(outcome_)) << "its process is dead";
  Save(loop_.Now());
  EXPECT_EQ(outcome_, absl::OkStatus()) << "it was away all the time";
  Save();
  EXPECT_EQ(outcome_, absl::OkStatus());
}

TEST_F(SessionSavesTest, AFailureIsTold) {
  const SessionPtr session = AddParticipant(ParticipantState::kAcked);
  Save();
  saves_.OnReply(session, {AskedOf(session), Reply::kFailed, "work goes on and on"});
  EXPECT_TRUE(absl::IsUnavailable(outcome_));
  EXPECT_NE(outcome_.message().find("work goes on and on"), std::string_view::npos);
}

TEST_F(SessionSavesTest, TheMemoryOfAProcessEndsWithIt) {
  const SessionPtr ending = AddParticipant(ParticipantState::kAcked);
  Save();
  EXPECT_EQ(answers_, 0);
  ending->state = ClientSession::State::kClosing;
  saves_.OnClosed(*ending);
  EXPECT_EQ(outcome_, absl::OkStatus());
  EXPECT_EQ(answers_, 1);
  Save();
  EXPECT_EQ(answers_, 2) << "nobody would answer";
}

TEST_F(SessionSavesTest, MemoryThatWasLostMeanwhileCannotBeSaved) {
  const SessionPtr session = AddParticipant(ParticipantState::kAcked);
  session->is_lost = true;
  session->lost_since = loop_.Now();
  Save(loop_.Now() + std::chrono::seconds(1));
  EXPECT_EQ(outcome_, absl::OkStatus()) << "its program knows";
  Save(loop_.Now());
  EXPECT_TRUE(absl::IsUnavailable(outcome_));
}

TEST_F(SessionSavesTest, WorkThatIsToBeDoneAgainIsNotSaved) {
  const SessionPtr session = AddParticipant(ParticipantState::kAcked);
  Save();
  const std::uint64_t id = AskedOf(session);
  // Its executor has died, and no other GPU is free.
  InstanceOf("a").lease.reset();
  session->lease.id = {};
  session->image.NoteReplayDue();
  saves_.OnReply(session, {id, Reply::kNoLease, ""});
  EXPECT_EQ(answers_, 1);
  EXPECT_TRUE(absl::IsAborted(outcome_));
}

TEST_F(SessionSavesTest, AWriteBackThatComesTooLateHasSavedNothing) {
  const SessionPtr session = AddSession("a");
  Change(session);
  StepQueue::Finish finish;
  session->steps.Add([&](const StepQueue::Finish& earlier) { finish = earlier; });
  Save();
  session->image.LoseExecutor(GpuIndex{0});
  session->image.NoteReplayDue();
  finish();
  EXPECT_EQ(answers_, 1);
  EXPECT_TRUE(IsQuiet(0)) << "no image is there any more";
  EXPECT_TRUE(absl::IsAborted(outcome_));
}

}  // namespace
}  // namespace torpor::server
