#include "tests/server/controller/controller_harness.h"

namespace torpor::server {
namespace {

// On two GPUs; function a has instances x and y.
class ControllerInstances : public ControllerHarness {
 protected:
  explicit ControllerInstances(const std::function<void(Config&)>& configure = AddInstances)
      : ControllerHarness(2, AddressMode::kMap, configure) {
    StartExecutor(0);
    StartExecutor(1);
  }

  static void AddInstances(Config& config) {
    FunctionConfig& a = config.functions["a"];
    a.upstream.clear();
    a.instances["x"] = {"x", "127.0.0.1:9101", ""};
    a.instances["y"] = {"y", "127.0.0.1:9102", ""};
  }

  Client Serving(const std::string& token) {
    Client client = Connect(token);
    Malloc(client, 10 * kMiB);
    return client;
  }
  // The instance that the request runs on; empty: none.
  std::string InstanceOf(RequestId request) {
    return IsRunning(request) ? (*outcome(request).grant)->instance : "";
  }
  FunctionSnapshot Function(const std::string& name) {
    for (const FunctionSnapshot& function : controller_->Snapshot().functions) {
      if (function.name == name) return function;
    }
    return {};
  }
};

// What an executor takes with it is done again on another.
class ControllerReplayedInstances : public ControllerInstances {
 protected:
  ControllerReplayedInstances()
      : ControllerInstances([](Config& config) {
          AddInstances(config);
          config.functions["a"].durability = Durability::kEviction;
        }) {
    Serve("a", x_);
    y_ = Serving("token-a/y");
  }

  // Returns a request that runs on x when the executor there dies.
  RequestId LoseExecutorInMidRequest() {
    const RequestId request = Acquire("a");
    const auto lease = TakeLease(x_);
    EXPECT_EQ(InstanceOf(request), "x");
    KillExecutor(lease->gpu);
    EXPECT_TRUE(IsRunning(request)) << "and waits with its grant";
    return request;
  }
  void AskAgain(RequestId request) {
    outcome(request).grant.reset();
    controller_->AskAgain(request);
    Settle();
  }

  Client x_ = Serving("token-a/x");
  Client y_;
};

TEST_F(ControllerReplayedInstances, ARequestThatIsQueuedAgainMayGoElsewhere) {
  KillExecutor(1);
  const RequestId request = LoseExecutorInMidRequest();
  AskAgain(request);
  EXPECT_FALSE(outcome(request).grant) << "no GPU serves";
  StartExecutor(0);
  ASSERT_TRUE(TakeLease(y_));
  EXPECT_EQ(InstanceOf(request), "y");
  EXPECT_EQ(Function("a").instances[0].health, "down");
  Release(request);
  EXPECT_TRUE(GiveBack(y_));
  EXPECT_EQ(Function("a").errors, 0u);
}

TEST_F(ControllerReplayedInstances, ARequestWhoseReplayHasNotBegunMayGoElsewhere) {
  const RequestId request = LoseExecutorInMidRequest();
  const auto lost = x_.link->Take<wire::LeaseLost>();
  ASSERT_TRUE(lost && lost->replays);
  AskAgain(request);
  ASSERT_TRUE(TakeLease(x_)) << "which it takes while torpord wants it back";
  EXPECT_FALSE(IsRunning(request));
  EXPECT_TRUE(GiveBack(x_));
  ASSERT_TRUE(TakeLease(y_));
  EXPECT_EQ(InstanceOf(request), "y");
}

TEST_F(ControllerReplayedInstances, ARequestThatIsAskedAgainMayBeLostAgain) {
  const RequestId request = LoseExecutorInMidRequest();
  ASSERT_TRUE(TakeLease(x_));
  Say(x_, wire::ReplayFailed{"a result differs"});
  ASSERT_TRUE(outcome(request).lost);
  outcome(request).lost.reset();
  AskAgain(request);
  const auto lease = TakeLease(y_);
  ASSERT_TRUE(lease);
  ASSERT_EQ(InstanceOf(request), "y");
  Say(y_, wire::ReplayFailed{"a result differs"});
  EXPECT_TRUE(outcome(request).lost) << "once a grant";
}

TEST_F(ControllerInstances, TwoInstancesHoldLeasesAtOneTime) {
  Client x = Serving("token-a/x");
  Client y = Serving("token-a/y");
  const RequestId first = Acquire("a");
  const RequestId second = Acquire("a");
  const auto lease_x = TakeLease(x);
  const auto lease_y = TakeLease(y);
  ASSERT_TRUE(lease_x && lease_y);
  EXPECT_NE(lease_x->gpu, lease_y->gpu);
  EXPECT_EQ(InstanceOf(first), "x");
  EXPECT_EQ(InstanceOf(second), "y");
  EXPECT_EQ((*outcome(first).grant)->upstream, "127.0.0.1:9101");
  EXPECT_EQ((*outcome(second).grant)->upstream, "127.0.0.1:9102");
  EXPECT_TRUE((*outcome(first).grant)->has_siblings);
  // The third waits for either.
  const RequestId third = Acquire("a");
  Release(second);
  EXPECT_TRUE(GiveBack(y));
  TakeLease(y);
  EXPECT_EQ(InstanceOf(third), "y");
}

TEST_F(ControllerInstances, ASessionIsOfTheInstanceWhoseTokenItShows) {
  Serving("token-a/y");
  const FunctionSnapshot a = Function("a");
  ASSERT_EQ(a.instances.size(), 2u);
  EXPECT_EQ(a.instances[0].name, "x");
  EXPECT_EQ(a.instances[0].health, "unproven");
  EXPECT_EQ(a.instances[0].state, "absent");
  EXPECT_EQ(a.instances[1].health, "serving");
  EXPECT_EQ(a.instances[1].sessions, 1u);
  EXPECT_EQ(a.sessions, 1u);
  EXPECT_EQ(a.state, "idle");
  EXPECT_EQ(a.health, "serving");
  EXPECT_TRUE(Function("b").instances.empty());
}

TEST_F(ControllerInstances, OnlyInstancesWithASessionAreReady) {
  EXPECT_TRUE(controller_->ServingUpstreams("a").empty());
  const Client y = Serving("token-a/y");
  EXPECT_EQ(controller_->ServingUpstreams("a"), std::vector<std::string>{"127.0.0.1:9102"});
  Disconnect(y);
  EXPECT_TRUE(controller_->ServingUpstreams("a").empty());
  EXPECT_TRUE(controller_->ServingUpstreams("nobody").empty());
}

TEST_F(ControllerInstances, ADeadInstanceIsNotChosenWhileAnotherLives) {
  const Client x = Serving("token-a/x");
  const Client y = Serving("token-a/y");
  Disconnect(x);
  for (int i = 0; i < 3; ++i) {
    const RequestId request = Acquire("a");
    ASSERT_TRUE(TakeLease(y));
    EXPECT_EQ(InstanceOf(request), "y");
    Release(request);
    EXPECT_TRUE(GiveBack(y));
  }
}

TEST_F(ControllerInstances, WithoutAnySessionEitherMayBeStartedByARequest) {
  const RequestId request = Acquire("a");
  EXPECT_EQ(InstanceOf(request), "x");
  Release(request);
}

TEST_F(ControllerInstances, ARequestWhoseProcessDiesBeforeItRunsGoesElsewhere) {
  const Client x = Serving("token-a/x");
  const Client y = Serving("token-a/y");
  const RequestId request = Acquire("a");
  ASSERT_FALSE(outcome(request).grant) << "x has not acknowledged";
  Disconnect(x);
  ASSERT_TRUE(TakeLease(y));
  EXPECT_EQ(InstanceOf(request), "y");
}

TEST_F(ControllerInstances, ARefusedRequestAsksAgainAndItsServerIsLeftAloneForAWhile) {
  const Client x = Serving("token-a/x");
  const Client y = Serving("token-a/y");
  const RequestId request = Acquire("a");
  ASSERT_TRUE(TakeLease(x));
  ASSERT_EQ(InstanceOf(request), "x");
  outcome(request).grant.reset();
  controller_->AskAgain(request);
  Settle();
  EXPECT_TRUE(GiveBack(x));
  ASSERT_TRUE(TakeLease(y));
  EXPECT_EQ(InstanceOf(request), "y");
  EXPECT_EQ(Function("a").instances[0].health, "down");
  EXPECT_EQ(Function("a").requests, 1u) << "it is one request still";
  const auto trace = controller_->Explain("request-1");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->instance, "y");
  Release(request);
  EXPECT_TRUE(GiveBack(y));
  const FunctionSnapshot a = Function("a");
  EXPECT_EQ(a.objective.finished, 1u) << "nor does the first try count";
  EXPECT_EQ(a.objective.in_time, 1u);
  EXPECT_EQ(a.errors, 0u);
  loop_.Advance(InstanceHealth::kFirstPause);
  EXPECT_EQ(Function("a").instances[0].health, "serving");
}

TEST_F(ControllerInstances, ANewProcessIsForgivenItsPredecessorsRefusals) {
  Client x = Serving("token-a/x");
  Client y = Serving("token-a/y");
  const RequestId request = Acquire("a");
  ASSERT_TRUE(TakeLease(x));
  controller_->AskAgain(request);
  Disconnect(x);
  EXPECT_EQ(Function("a").instances[0].health, "down");
  x = Serving("token-a/x");
  EXPECT_EQ(Function("a").instances[0].health, "serving");
}

TEST_F(ControllerInstances, AdministratorsNameAFunctionOrAnInstance) {
  const Client x = Serving("token-a/x");
  const Client y = Serving("token-a/y");
  std::vector<absl::Status> outcomes;
  const auto administer = [&](AdminRequest::Kind kind, const std::string& name) {
    controller_->Administer({.kind = kind, .function = name},
                            [&](absl::Status status) { outcomes.push_back(std::move(status)); });
    Settle();
  };
  administer(AdminRequest::Kind::kPin, "a/y");
  EXPECT_FALSE(Function("a").instances[0].is_pinned);
  EXPECT_TRUE(Function("a").instances[1].is_pinned);
  EXPECT_FALSE(Function("a").is_pinned);
  administer(AdminRequest::Kind::kLoad, "a");
  for (const InstanceSnapshot& instance : Function("a").instances) {
    EXPECT_EQ(instance.resident_gpus.size(), 1u) << instance.name;
  }
  EXPECT_EQ(outcomes, std::vector(2, absl::OkStatus()));
  administer(AdminRequest::Kind::kEvict, "a/z");
  EXPECT_TRUE(absl::IsNotFound(outcomes.back()));
}

}  // namespace
}  // namespace torpor::server
