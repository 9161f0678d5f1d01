#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/controller/controller_harness.h"

namespace torpor::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ControllerAdminTest : public ControllerHarness {
 protected:
  ControllerAdminTest() : ControllerHarness(2) {}

  // The outcome, when there is one.
  std::shared_ptr<std::optional<absl::Status>> Request(AdminRequest::Kind kind,
                                                       const std::string& function,
                                                       std::optional<int> gpu = std::nullopt) {
    AdminRequest request{.kind = kind, .function = function};
    if (gpu) request.gpu = GpuIndex{*gpu};
    auto outcome = std::make_shared<std::optional<absl::Status>>();
    controller_->Administer(request, [outcome](const absl::Status& status) { *outcome = status; });
    Settle();
    return outcome;
  }
  // A load whose image does not arrive.
  std::shared_ptr<std::optional<absl::Status>> RequestEndlessLoad() {
    StartExecutor(0);
    Client client = Connect("token-a");
    EXPECT_TRUE(Malloc(client, kMiB));
    Hold(&v1::DaemonMessage::has_swap_in);
    auto loaded = Request(AdminRequest::Kind::kLoad, "a");
    EXPECT_FALSE(loaded->has_value());
    return loaded;
  }
  std::vector<int> ResidentGpus(const std::string& name) {
    for (const FunctionSnapshot& function : controller_->Snapshot().functions) {
      if (function.name == name) return function.resident_gpus;
    }
    return {};
  }
};

TEST_F(ControllerAdminTest, LoadsWhereItIsTold) {
  StartExecutor(0);
  StartExecutor(1);
  Client client = Connect("token-a");
  ASSERT_TRUE(Malloc(client, kMiB));
  const auto loaded = Request(AdminRequest::Kind::kLoad, "a", 1);
  ASSERT_TRUE(loaded->has_value());
  EXPECT_TRUE((*loaded)->ok()) << **loaded;
  EXPECT_THAT(ResidentGpus("a"), ElementsAre(1));
  EXPECT_EQ(executors_.at(1).resident.size(), 1u);
}

TEST_F(ControllerAdminTest, AnswersWhenTheImageIsThere) {
  const auto loaded = RequestEndlessLoad();
  KillExecutor(0);
  ASSERT_TRUE(loaded->has_value());
  EXPECT_EQ((*loaded)->code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string((*loaded)->message()), HasSubstr("the GPU's executor died"));
}

TEST_F(ControllerAdminTest, WhatCannotFitEvictsNothingAndSaysWhy) {
  StartExecutor(0);
  StartExecutor(1);
  Client pair = Connect("token-pair");
  Client a = Connect("token-a");
  ASSERT_TRUE(Malloc(a, 48 * kMiB));
  Serve("a", a);
  const int evictions = counts_.evictions;
  KillExecutor(1);
  const auto refused = Request(AdminRequest::Kind::kLoad, "pair");
  ASSERT_TRUE(refused->has_value());
  EXPECT_THAT(std::string((*refused)->message()), HasSubstr("it needs 2 GPUs at a time"));
  const auto down = Request(AdminRequest::Kind::kLoad, "a", 1);
  ASSERT_TRUE(down->has_value());
  EXPECT_THAT(std::string((*down)->message()), HasSubstr("GPU 1 does not serve now"));
  EXPECT_EQ(counts_.evictions, evictions);
}

TEST_F(ControllerAdminTest, AFailedCopyIsSaid) {
  StartExecutor(0);
  Client a = Connect("token-a");
  ASSERT_TRUE(Malloc(a, kMiB));
  Refuse(&v1::DaemonMessage::has_swap_in, absl::ResourceExhaustedError("no chunk"));
  const auto loaded = Request(AdminRequest::Kind::kLoad, "a");
  ASSERT_TRUE(loaded->has_value());
  EXPECT_THAT(std::string((*loaded)->message()), HasSubstr("it could not be copied to the GPU"));
}

TEST_F(ControllerAdminTest, ALoadThatWaitsNamesWhoIsInTheWay) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  ASSERT_TRUE(Malloc(a, 40 * kMiB));
  ASSERT_TRUE(Malloc(b, 40 * kMiB));
  const RequestId request = Acquire("b");
  ASSERT_TRUE(TakeLease(b));
  const auto loaded = Request(AdminRequest::Kind::kLoad, "a");
  EXPECT_FALSE(loaded->has_value());
  loop_.Advance(std::chrono::seconds(31));
  ASSERT_TRUE(loaded->has_value());
  EXPECT_EQ((*loaded)->code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string((*loaded)->message()), HasSubstr("(b on GPU 0)"));
  Release(request);
}

TEST_F(ControllerAdminTest, GivesUpAfterAWhile) {
  const auto loaded = RequestEndlessLoad();
  loop_.Advance(std::chrono::seconds(31));
  ASSERT_TRUE(loaded->has_value());
  EXPECT_EQ((*loaded)->code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(ControllerAdminTest, EvictsWhatIsIdle) {
  StartExecutor(0);
  const Client client = Connect("token-a");
  const RequestId request = Acquire("a");
  TakeLease(client);
  const auto refused = Request(AdminRequest::Kind::kEvict, "a");
  ASSERT_TRUE(refused->has_value());
  EXPECT_EQ((*refused)->code(), absl::StatusCode::kFailedPrecondition);
  Release(request);
  ASSERT_TRUE(GiveBack(client));
  const auto evicted = Request(AdminRequest::Kind::kEvict, "a");
  ASSERT_TRUE(evicted->has_value());
  EXPECT_TRUE((*evicted)->ok()) << **evicted;
  EXPECT_TRUE(executors_.at(0).resident.empty());
}

TEST_F(ControllerAdminTest, AnEvictionIsCarriedOutThoughARequestBringsTheImageBackAtOnce) {
  StartExecutor(0);
  const Client client = Connect("token-a");
  Serve("a", client);
  std::optional<absl::Status> evicted;
  controller_->Administer({.kind = AdminRequest::Kind::kEvict, .function = "a"},
                          [&](const absl::Status& status) { evicted = status; });
  Acquire("a");
  Settle();
  EXPECT_THAT(ResidentGpus("a"), ElementsAre(0));
  ASSERT_TRUE(evicted.has_value());
  EXPECT_TRUE(evicted->ok()) << *evicted;
}

TEST_F(ControllerAdminTest, ALeaseThatIsEndingIsWaitedFor) {
  StartExecutor(0);
  const Client client = Connect("token-a");
  const RequestId request = Acquire("a");
  TakeLease(client);
  Release(request);
  const auto evicted = Request(AdminRequest::Kind::kEvict, "a");
  EXPECT_FALSE(evicted->has_value());
  ASSERT_TRUE(GiveBack(client));
  ASSERT_TRUE(evicted->has_value());
  EXPECT_TRUE((*evicted)->ok()) << **evicted;
  EXPECT_TRUE(executors_.at(0).resident.empty());
}

TEST_F(ControllerAdminTest, ACheckpointWaitsForTheRequestAndKeepsTheImage) {
  StartExecutor(0);
  const Client client = Connect("token-a");
  Serve("a", client);
  const RequestId request = Acquire("a");
  TakeLease(client);
  const int before = counts_.swaps_out;
  const auto saved = Request(AdminRequest::Kind::kCheckpoint, "a");
  EXPECT_FALSE(saved->has_value());
  Release(request);
  ASSERT_TRUE(GiveBack(client));
  ASSERT_TRUE(saved->has_value());
  EXPECT_TRUE((*saved)->ok()) << **saved;
  EXPECT_EQ(counts_.swaps_out, before + 1);
  EXPECT_THAT(ResidentGpus("a"), ElementsAre(0));
}

TEST_F(ControllerAdminTest, ACheckpointThatTheExecutorDoesNotOutliveSaysSo) {
  StartExecutor(0);
  const Client client = Connect("token-a");
  Serve("a", client);  // saved at its end, as the program's set-up
  Serve("a", client);
  Hold(&v1::DaemonMessage::has_swap_out);
  const auto saved = Request(AdminRequest::Kind::kCheckpoint, "a");
  EXPECT_FALSE(saved->has_value());
  KillExecutor(0);
  ASSERT_TRUE(saved->has_value());
  EXPECT_EQ((*saved)->code(), absl::StatusCode::kAborted);
}

TEST_F(ControllerAdminTest, PinsAreSeen) {
  StartExecutor(0);
  EXPECT_TRUE((*Request(AdminRequest::Kind::kPin, "a"))->ok());
  EXPECT_TRUE(controller_->Snapshot().functions.at(0).is_pinned);
  EXPECT_TRUE((*Request(AdminRequest::Kind::kUnpin, "a"))->ok());
  EXPECT_FALSE(controller_->Snapshot().functions.at(0).is_pinned);
}

TEST_F(ControllerAdminTest, WhatCannotBeIsSaid) {
  StartExecutor(0);
  EXPECT_EQ((*Request(AdminRequest::Kind::kPin, "nobody"))->code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string((*Request(AdminRequest::Kind::kLoad, "a"))->message()),
              HasSubstr("has no process"));
  Connect("token-a");
  EXPECT_THAT(std::string((*Request(AdminRequest::Kind::kLoad, "a", 7))->message()),
              HasSubstr("serves no GPU 7"));
}

TEST_F(ControllerAdminTest, NobodyWaitsForANodeThatShutsDown) {
  const auto loaded = RequestEndlessLoad();
  controller_->Shutdown();
  ASSERT_TRUE(loaded->has_value());
  EXPECT_EQ((*loaded)->code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace torpor::server
