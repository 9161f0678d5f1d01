#include "server/controller/requests.h"

#include "server/controller/session_saves.h"
#include "tests/server/controller/node_world.h"

namespace torpor::server {
namespace {

constexpr RequestId kRequest{1};

class RequestsTest : public NodeWorld {
 protected:
  void Acquire(RequestId request = kRequest, const std::string& function = "a",
               std::optional<TimePoint> arrival = std::nullopt) {
    requests_.Acquire(
        request,
        {.function = function,
         .id = "r",
         .give_up = loop_.Now() + std::chrono::seconds(5),
         .arrival = arrival},
        [this](absl::StatusOr<RequestGrant> grant) { grant_ = std::move(grant); },
        [this](const absl::Status& status) { lost_ = status; });
  }
  // An earlier torpord has granted the request to an instance of a.
  void GoOn(const std::string& instance, std::optional<TimePoint> arrival = std::nullopt) {
    requests_.Acquire(
        kRequest,
        {.function = "a",
         .id = "r",
         .give_up = loop_.Now() + std::chrono::seconds(5),
         .arrival = arrival.value_or(loop_.Now()),
         .ran_on = instance},
        [this](absl::StatusOr<RequestGrant> grant) { grant_ = std::move(grant); },
        [this](const absl::Status& status) { lost_ = status; });
  }
  // The request runs under a lease that nobody takes part in.
  void Run() {
    Acquire();
    GiveLease("a").requests = {kRequest};
    requests_.NoteLeased(kRequest, InstanceOf("a").id);
    requests_.RunTaken(InstanceOf("a"));
  }
  // The request ran, its lease was lost, and whether its work is done again is open.
  void WaitWithGrant() {
    Run();
    InstanceOf("a").lease.reset();
    requests_.Requeue(kRequest);
  }

  const std::unique_ptr<scheduler::Scheduler> own_scheduler_ = MakeScheduler();
  scheduler::Scheduler& scheduler_ = *own_scheduler_;
  RequestTraces traces_{tables_.instances, scheduler_, loop_, 10};
  InstanceHealth health_{tables_.instances, tables_.sessions, events_, loop_};
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
  Requests requests_{tables_.instances,
                     tables_.sessions,
                     tables_.executors,
                     health_,
                     saves_,
                     traces_,
                     events_,
                     loop_};
  std::optional<absl::StatusOr<RequestGrant>> grant_;
  std::optional<absl::Status> lost_;
};

TEST_F(RequestsTest, ARequestRunsOnceItsLeaseIsTaken) {
  AddSession("a");
  Acquire();
  EXPECT_EQ(events_.Of<scheduler::RequestArrived>().at(0).request, kRequest);
  EXPECT_EQ(events_.Of<scheduler::RequestArrived>().at(0).function, InstanceOf("a").function->id);
  EXPECT_EQ(requests_.queued(), 1u);
  InstanceLease& lease = GiveLease("a");
  lease.requests = {kRequest};
  requests_.NoteLeased(kRequest, InstanceOf("a").id);
  EXPECT_EQ(requests_.queued(), 0u);
  lease.participants.begin()->second = ParticipantState::kOffered;
  requests_.RunTaken(InstanceOf("a"));
  EXPECT_FALSE(grant_);
  lease.participants.begin()->second = ParticipantState::kAcked;
  requests_.RunTaken(InstanceOf("a"));
  ASSERT_TRUE(grant_ && grant_->ok());
  EXPECT_EQ((*grant_)->lease, lease.id);
  requests_.Release(kRequest, scheduler::Ending::kAnswered);
  EXPECT_EQ(events_.Of<scheduler::RequestGone>().at(0).ending, scheduler::Ending::kAnswered);
  EXPECT_TRUE(lease.requests.empty());
}

TEST_F(RequestsTest, ARequestThatHasWaitedElsewhereIsAsOldAsItIs) {
  loop_.Advance(std::chrono::seconds(10));
  const TimePoint arrival = loop_.Now() - std::chrono::seconds(2);
  Acquire(kRequest, "a", arrival);
  const auto arrived = events_.Of<scheduler::RequestArrived>().at(0);
  EXPECT_EQ(arrived.deadline, arrival + InstanceOf("a").config().deadline);
  EXPECT_FALSE(arrived.arrival) << "the limits of waiting requests hold for it";
  EXPECT_EQ(traces_.Explain("r")->arrival, arrival);
  GiveLease("a").requests = {kRequest};
  requests_.NoteLeased(kRequest, InstanceOf("a").id);
  requests_.RunTaken(InstanceOf("a"));
  EXPECT_EQ((*grant_)->queue + (*grant_)->swap, std::chrono::seconds(2));
}

TEST_F(RequestsTest, NoRequestComesFromTheFuture) {
  Acquire(kRequest, "a", loop_.Now() + std::chrono::seconds(2));
  EXPECT_EQ(traces_.Explain("r")->arrival, loop_.Now());
}

TEST_F(RequestsTest, ARequestOfAnEarlierTorpordWaitsForItsInstancesNextLease) {
  InstanceOf("a").function->config.durability = Durability::kEviction;
  AddSession("a")->state = ClientSession::State::kAway;
  const TimePoint arrival = loop_.Now() - std::chrono::seconds(2);
  GoOn("a", arrival);
  const auto arrived = events_.Of<scheduler::RequestArrived>().at(0);
  EXPECT_EQ(arrived.instance, InstanceOf("a").id);
  EXPECT_EQ(arrived.arrival, arrival);
  loop_.Advance(std::chrono::seconds(10));
  EXPECT_FALSE(grant_) << "the caller has one, and waits for the answer";
  GiveLease("a").requests = {kRequest};
  requests_.NoteLeased(kRequest, InstanceOf("a").id);
  requests_.RunTaken(InstanceOf("a"));
  EXPECT_FALSE(grant_);
  requests_.Release(kRequest, scheduler::Ending::kAnswered);
  EXPECT_FALSE(lost_);
  EXPECT_FALSE(requests_.Has(kRequest));
}

TEST_F(RequestsTest, ARequestThatIsNotDoneAgainIsLostWhenItsCallerAsks) {
  GoOn("a");
  EXPECT_TRUE(events_.Of<scheduler::RequestArrived>().empty()) << "there is no session";
  EXPECT_FALSE(lost_) << "its function may answer without a GPU";
  bool is_confirmed = false;
  requests_.ConfirmLease(kRequest, [&] { is_confirmed = true; });
  EXPECT_TRUE(lost_ && absl::IsUnavailable(*lost_));
  EXPECT_TRUE(is_confirmed);
  requests_.Release(kRequest, scheduler::Ending::kLost);
  EXPECT_FALSE(requests_.Has(kRequest));
}

TEST_F(RequestsTest, ARequestOfAnEarlierTorpordMayGoToAnotherInstance) {
  InstanceOf("a").function->config.durability = Durability::kEviction;
  AddSession("a");
  GoOn("a");
  loop_.Advance(std::chrono::seconds(20));
  requests_.AskAgain(kRequest);
  const auto arrived = events_.Of<scheduler::RequestArrived>().at(1);
  EXPECT_FALSE(arrived.instance);
  EXPECT_EQ(arrived.function, InstanceOf("a").function->id);
  EXPECT_FALSE(grant_);
  loop_.Advance(std::chrono::seconds(5));
  EXPECT_TRUE(grant_ && absl::IsDeadlineExceeded(grant_->status())) << "as long as a new one";
}

TEST_F(RequestsTest, AnInstanceThatIsNoMoreGoesOnWithNothing) {
  GoOn("gone");
  EXPECT_TRUE(grant_ && absl::IsNotFound(grant_->status()));
  EXPECT_FALSE(requests_.Has(kRequest));
}

TEST_F(RequestsTest, RefusesUnknownFunctions) {
  Acquire(kRequest, "c");
  EXPECT_TRUE(absl::IsNotFound(grant_->status()));
  EXPECT_TRUE(events_.fed.empty());
}

TEST_F(RequestsTest, GivesUpInTime) {
  Acquire();
  loop_.Advance(std::chrono::seconds(5));
  EXPECT_TRUE(absl::IsDeadlineExceeded(grant_->status()));
  EXPECT_EQ(InstanceOf("a").function->errors, 1u);
}

TEST_F(RequestsTest, AReleasedRequestThatWaitsIsCancelled) {
  Acquire();
  requests_.Release(kRequest, scheduler::Ending::kCancelled);
  EXPECT_TRUE(absl::IsCancelled(grant_->status()));
  EXPECT_FALSE(requests_.Has(kRequest));
}

TEST_F(RequestsTest, RequestsThatDoNotRunFailWithTheirLease) {
  Acquire();
  requests_.NoteLeased(kRequest, InstanceOf("a").id);
  InstanceLease lease;
  lease.requests = {kRequest};
  requests_.OnLeaseEnded(lease);
  EXPECT_TRUE(absl::IsUnavailable(grant_->status()));
}

TEST_F(RequestsTest, OfALostLeaseOnlyHarmedRequestsHear) {
  Run();
  LeaseService::Lost lost;
  lost.lease.requests = {kRequest};
  EXPECT_EQ(requests_.OnLeaseLost(lost), std::vector{kRequest}) << "it goes on";
  EXPECT_FALSE(lost_) << "its function had not used the GPU";
  const SessionPtr session = AddSession("a");
  lost.harmed = {session->id};
  lost.lease.id = LeaseId{7};
  requests_.OnLeaseLost(lost);
  EXPECT_TRUE(lost_);
  requests_.Release(kRequest, scheduler::Ending::kLost);
  EXPECT_TRUE(LinkOf(session).Take<wire::LeaseRevoke>()) << "its calls may go on now";
}

TEST_F(RequestsTest, ARequestWhoseWorkIsDoneAgainWaitsWithItsGrant) {
  Run();
  LeaseService::Lost lost;
  lost.lease.requests = {kRequest};
  lost.harmed = {AddSession("a")->id};
  lost.is_replayed = true;
  EXPECT_EQ(requests_.OnLeaseLost(lost), std::vector{kRequest});
  EXPECT_FALSE(lost_);
  InstanceOf("a").lease.reset();
  requests_.Requeue(kRequest);
  loop_.Advance(std::chrono::seconds(5));
  EXPECT_FALSE(lost_) << "it has its grant, whenever the GPU comes";
  grant_.reset();
  requests_.Fail(kRequest, absl::UnavailableError("no GPU"));
  EXPECT_FALSE(grant_) << "the caller has one";
  EXPECT_TRUE(lost_);
  requests_.Release(kRequest, scheduler::Ending::kLost);
  EXPECT_FALSE(requests_.Has(kRequest));
}

TEST_F(RequestsTest, ALeasedRequestIsQueuedAgain) {
  Acquire();
  requests_.NoteLeased(kRequest, InstanceOf("a").id);
  LeaseService::Lost lost;
  lost.lease.requests = {kRequest, RequestId{std::uint64_t{1} << 63}};
  EXPECT_EQ(requests_.OnLeaseLost(lost), std::vector{kRequest});
  requests_.Requeue(kRequest);
  EXPECT_EQ(requests_.queued(), 1u);
  EXPECT_EQ(events_.Of<scheduler::RequestArrived>().size(), 2u);
}

TEST_F(RequestsTest, ARequestThatLosesItsGpuStillGivesUpInTime) {
  Acquire();
  requests_.NoteLeased(kRequest, InstanceOf("a").id);
  loop_.Advance(std::chrono::seconds(6));
  EXPECT_FALSE(grant_) << "its GPU is on its way";
  LeaseService::Lost lost;
  lost.lease.requests = {kRequest};
  EXPECT_EQ(requests_.OnLeaseLost(lost), std::vector{kRequest});
  requests_.Requeue(kRequest);
  loop_.Advance({});
  ASSERT_TRUE(grant_);
  EXPECT_TRUE(absl::IsDeadlineExceeded(grant_->status()));
}

TEST_F(RequestsTest, ARequestThatIsAskedAgainWaitsAsLongAgain) {
  Run();
  loop_.Advance(std::chrono::seconds(3));
  grant_.reset();
  requests_.AskAgain(kRequest);
  loop_.Advance(std::chrono::seconds(4));
  EXPECT_FALSE(grant_);
  loop_.Advance(std::chrono::seconds(1));
  ASSERT_TRUE(grant_);
  EXPECT_TRUE(absl::IsDeadlineExceeded(grant_->status()));
}

TEST_F(RequestsTest, ALossIsToldOnceAGrant) {
  Run();
  requests_.OnSessionLost(InstanceOf("a").id, "it cannot go on");
  ASSERT_TRUE(lost_);
  lost_.reset();
  LeaseService::Lost lost;
  lost.lease.requests = {kRequest};
  lost.harmed = {AddSession("a")->id};
  requests_.OnLeaseLost(lost);
  EXPECT_FALSE(lost_);
  EXPECT_EQ(InstanceOf("a").function->errors, 1u);
}

TEST_F(RequestsTest, ConfirmsALeaseWhenItsExecutorAnswersOrHangs) {
  Run();
  int confirmed = 0;
  requests_.ConfirmLease(kRequest, [&] { ++confirmed; });
  EXPECT_TRUE(Operation(0).has_ping());
  Answer(0);
  EXPECT_EQ(confirmed, 1);
  requests_.ConfirmLease(kRequest, [&] { ++confirmed; });
  loop_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(confirmed, 2);
}

TEST_F(RequestsTest, ConfirmsALostLeaseWhenItsReplayRuns) {
  WaitWithGrant();
  int confirmed = 0;
  requests_.ConfirmLease(kRequest, [&] { ++confirmed; });
  loop_.Advance(std::chrono::milliseconds(900));
  EXPECT_EQ(confirmed, 0) << "whether the work is done again is open";
  GiveLease("a").requests = {kRequest};
  requests_.NoteLeased(kRequest, InstanceOf("a").id);
  requests_.RunTaken(InstanceOf("a"));
  loop_.Advance(Duration::zero());
  EXPECT_EQ(confirmed, 1);
  loop_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(confirmed, 1);
}

TEST_F(RequestsTest, ConfirmsALostLeaseRightBehindTheWordOfItsLoss) {
  WaitWithGrant();
  bool is_lost_first = false;
  requests_.ConfirmLease(kRequest, [&] { is_lost_first = lost_.has_value(); });
  requests_.OnSessionLost(InstanceOf("a").id, "it cannot go on");
  loop_.Advance(Duration::zero());
  EXPECT_TRUE(is_lost_first);
}

TEST_F(RequestsTest, ALeaseThatIsNotReplayedInTimeCountsAsIntact) {
  WaitWithGrant();
  int confirmed = 0;
  requests_.ConfirmLease(kRequest, [&] { ++confirmed; });
  loop_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(confirmed, 1);
}

TEST_F(RequestsTest, DrainsUntilNothingIsLeft) {
  Run();
  bool is_idle = false;
  requests_.Drain([&] { is_idle = true; });
  EXPECT_FALSE(is_idle);
  grant_.reset();
  Acquire(RequestId{2});
  EXPECT_TRUE(absl::IsUnavailable(grant_->status()));
  requests_.Release(kRequest, scheduler::Ending::kAnswered);
  EXPECT_TRUE(is_idle);
}

TEST_F(RequestsTest, ShutdownAnswersThoseThatWait) {
  Acquire();
  requests_.Shutdown();
  EXPECT_TRUE(absl::IsUnavailable(grant_->status()));
}

TEST_F(RequestsTest, ExplainsARequestFromItsArrivalOn) {
  Acquire();
  loop_.Advance(std::chrono::seconds(1));
  const auto waiting = traces_.Explain("r");
  ASSERT_TRUE(waiting.ok());
  EXPECT_FALSE(waiting->ended);
  EXPECT_EQ(waiting->as_of - waiting->arrival, std::chrono::seconds(1));
  requests_.Release(kRequest, scheduler::Ending::kCancelled);
  const auto over = traces_.Explain("r");
  ASSERT_TRUE(over.ok());
  EXPECT_EQ(over->ending, scheduler::Ending::kCancelled);
  EXPECT_FALSE(over->why.empty());
  EXPECT_TRUE(absl::IsNotFound(traces_.Explain("x").status()));
}

TEST_F(RequestsTest, KeepsTheLastTraces) {
  RequestHistory history(2);
  for (const char* id : {"x", "y", "z"}) history.Add({.id = id});
  EXPECT_EQ(history.Find("x"), nullptr);
  EXPECT_EQ(history.traces().front().id, "z");
}

// A request whose session holds the GPU.
class RequestsThatSave : public RequestsTest {
 protected:
  void SetUp() override {
    InstanceOf("a").function->config.durability = Durability::kRequest;
    session_ = AddSession("a");
    Run();
  }
  void Save() {
    requests_.Save(kRequest, [this] { ++saved_; });
  }
  // Answers the save for the session.
  void Reply(wire::SaveMemoryReply::Outcome outcome) {
    const auto asked = LinkOf(session_).Take<wire::SaveMemory>();
    ASSERT_TRUE(asked);
    saves_.OnReply(session_, {asked->save_id, outcome, "no"});
  }

  SessionPtr session_;
  int saved_ = 0;
};

TEST_F(RequestsThatSave, WaitForTheirSessions) {
  Save();
  EXPECT_EQ(saved_, 0);
  Reply(wire::SaveMemoryReply::kSaved);
  EXPECT_EQ(saved_, 1);
  EXPECT_FALSE(lost_);
}

TEST_F(RequestsThatSave, HearOfAFailureFirst) {
  Save();
  Reply(wire::SaveMemoryReply::kFailed);
  EXPECT_TRUE(lost_ && absl::IsUnavailable(*lost_));
  EXPECT_EQ(saved_, 1);
  Save();
  EXPECT_EQ(saved_, 2) << "of a lost request there is nothing to save";
}

TEST_F(RequestsThatSave, WaitUntilLostWorkIsDoneAgain) {
  InstanceOf("a").lease.reset();
  requests_.Requeue(kRequest);
  Save();
  EXPECT_FALSE(LinkOf(session_).Take<wire::SaveMemory>());
  GiveLease("a").requests = {kRequest};
  requests_.NoteLeased(kRequest, InstanceOf("a").id);
  requests_.RunTaken(InstanceOf("a"));
  loop_.Advance({});
  Reply(wire::SaveMemoryReply::kSaved);
  EXPECT_EQ(saved_, 1);
}

TEST_F(RequestsThatSave, AskAgainWhileTheEndOfALeaseIsOnItsWay) {
  Save();
  Reply(wire::SaveMemoryReply::kNoLease);
  EXPECT_EQ(saved_, 0);
  EXPECT_FALSE(lost_);
  loop_.Advance(std::chrono::milliseconds(10));
  Reply(wire::SaveMemoryReply::kSaved);
  EXPECT_EQ(saved_, 1);
}

TEST_F(RequestsThatSave, AwaitTheClientOfWorkUnderAnEarlierTorpord) {
  requests_.Release(kRequest, scheduler::Ending::kAnswered);
  InstanceOf("a").lease.reset();
  session_->lease.id = {};
  session_->state = ClientSession::State::kAway;
  session_->away_since = loop_.Now();
  session_->image.Restore(/*was_saved=*/true, /*replays=*/true);
  GoOn("a");
  Save();
  GiveLease("a").requests = {kRequest};
  InstanceOf("a").lease->participants.clear();
  requests_.NoteLeased(kRequest, InstanceOf("a").id);
  requests_.RunTaken(InstanceOf("a"));
  loop_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(saved_, 0);
  session_->state = ClientSession::State::kOpen;
  session_->image.NoteLease(InstanceOf("a").lease->id, /*is_explicit=*/true);
  session_->image.NoteSaved(InstanceOf("a").lease->id);  // the lost work is done again, and saved
  loop_.Advance(std::chrono::milliseconds(10));
  EXPECT_EQ(saved_, 1);
  EXPECT_FALSE(lost_);
}

TEST_F(RequestsThatSave, AreLostIfNoSessionHasOutlivedTheTorpordBefore) {
  requests_.Release(kRequest, scheduler::Ending::kAnswered);
  InstanceOf("a").lease.reset();
  session_->is_lost = true;
  GoOn("a");
  Save();
  EXPECT_TRUE(lost_);
  EXPECT_EQ(saved_, 1);
}

}  // namespace
}  // namespace torpor::server
