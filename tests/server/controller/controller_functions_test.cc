#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "tests/server/controller/controller_harness.h"

namespace torpor::server {
namespace {

using ::testing::HasSubstr;

// Functions come, change and go while the controller runs; on two GPUs.
class ControllerFunctions : public ControllerHarness {
 protected:
  ControllerFunctions() : ControllerHarness(2) {
    StartExecutor(0);
    StartExecutor(1);
  }

  static void AddFunction(Config& config, const std::string& name) {
    config.functions[name] = config.functions.at("a");
    config.functions[name].name = name;
  }
  static auto Remove(const std::string& name) {
    return [name](Config& config) { config.functions.erase(name); };
  }
  bool HasFunction(const std::string& name) {
    for (const FunctionSnapshot& function : controller_->Snapshot().functions) {
      if (function.name == name) return true;
    }
    return false;
  }
  Client Serving(const std::string& token) {
    Client client = Connect(token);
    Malloc(client, 10 * kMiB);
    return client;
  }
  bool IsKnown(const std::string& token) {
    const auto reply = Hello(token).link->Take<wire::HelloReply>();
    return reply && reply->error == 0;
  }
  Bytes UsedBytes() {
    Bytes bytes = 0;
    for (const GpuSnapshot& gpu : controller_->Snapshot().gpus) bytes += gpu.used_bytes;
    return bytes;
  }
};

TEST_F(ControllerFunctions, ANewFunctionServesAtOnce) {
  Reconfigure([](Config& config) { AddFunction(config, "new"); });
  const Client client = Serving("token-new");
  const RequestId request = Acquire("new");
  ASSERT_TRUE(TakeLease(client));
  EXPECT_TRUE(IsRunning(request));
}

TEST_F(ControllerFunctions, ARemovedFunctionIsGoneWithItsMemory) {
  const Client a = Serving("token-a");
  Serve("a", a);
  EXPECT_GT(UsedBytes(), 0u);
  Reconfigure(Remove("a"));
  EXPECT_TRUE(a.link->closed);
  EXPECT_FALSE(HasFunction("a"));
  EXPECT_EQ(UsedBytes(), 0u);
  EXPECT_EQ(Failure(Acquire("a")), absl::StatusCode::kNotFound);
  EXPECT_FALSE(IsKnown("token-a"));
  EXPECT_TRUE(executors_[0].sessions.empty());
}

TEST_F(ControllerFunctions, WhatRunsEndsAndWhatWaitsIsTold) {
  const Client a = Serving("token-a");
  const RequestId running = Acquire("a");
  ASSERT_TRUE(TakeLease(a));
  const RequestId waiting = Acquire("a");
  Reconfigure(Remove("a"));
  EXPECT_EQ(Failure(waiting), absl::StatusCode::kNotFound);
  EXPECT_TRUE(IsRunning(running));
  EXPECT_FALSE(a.link->closed);
  Release(running);
  GiveBack(a);
  Settle();
  EXPECT_TRUE(a.link->closed);
  EXPECT_EQ(UsedBytes(), 0u);
}

TEST_F(ControllerFunctions, AFunctionMayComeAgainWhileItsPredecessorEnds) {
  const Client old = Serving("token-a");
  const RequestId running = Acquire("a");
  ASSERT_TRUE(TakeLease(old));
  const FunctionConfig again = config_.functions.at("a");
  Reconfigure(Remove("a"));
  Reconfigure([&](Config& config) { config.functions["a"] = again; });
  const Client fresh = Serving("token-a");
  const RequestId request = Acquire("a");
  ASSERT_TRUE(TakeLease(fresh));
  EXPECT_TRUE(IsRunning(request));
  EXPECT_TRUE(IsRunning(running));
  Release(running);
  GiveBack(old);
  Settle();
  EXPECT_TRUE(old.link->closed);
  EXPECT_FALSE(fresh.link->closed);
}

TEST_F(ControllerFunctions, OthersKeepTheirGpus) {
  const Client b = Serving("token-b");
  const RequestId running = Acquire("b");
  ASSERT_TRUE(TakeLease(b));
  Reconfigure([](Config& config) {
    for (const char* name : {"x", "y", "z"}) AddFunction(config, name);
    for (const char* name : {"a", "c"}) config.functions.erase(name);
  });
  EXPECT_TRUE(IsRunning(running));
  EXPECT_FALSE(b.link->Take<wire::LeaseRevoke>());
  Release(running);
  EXPECT_TRUE(GiveBack(b));
}

TEST_F(ControllerFunctions, ANewTokenCountsAtOnceAndOpenSessionsLiveOn) {
  const Client old = Serving("token-a");
  auto tokens = TokensOf(config_);
  tokens["a"] = "rotated";
  controller_->Reconfigure(config_, tokens);
  Settle();
  EXPECT_FALSE(old.link->closed);
  Serve("a", old);
  EXPECT_FALSE(IsKnown("token-a"));
  EXPECT_TRUE(IsKnown("rotated"));
}

TEST_F(ControllerFunctions, InstancesComeAndGo) {
  const Client only = Serving("token-a");
  Reconfigure([](Config& config) {
    FunctionConfig& a = config.functions["a"];
    a.upstream.clear();
    a.instances["x"] = {"x", "127.0.0.1:9101", ""};
  });
  EXPECT_TRUE(only.link->closed);
  const Client x = Serving("token-a/x");
  const RequestId request = Acquire("a");
  ASSERT_TRUE(TakeLease(x));
  EXPECT_EQ((*outcome(request).grant)->upstream, "127.0.0.1:9101");
  Release(request);
  GiveBack(x);
  Reconfigure(
      [](Config& config) { config.functions["a"].instances["x"].upstream = "127.0.0.1:9102"; });
  EXPECT_EQ(controller_->ServingUpstreams("a"), std::vector<std::string>{"127.0.0.1:9102"});
  EXPECT_FALSE(x.link->closed);
}

TEST_F(ControllerFunctions, TenantsComeAndGo) {
  Reconfigure([](Config& config) {
    config.tenants["default"] = {"default", 2};
    config.tenants["mail"] = {"mail", 1};
    config.functions["b"].tenant = "mail";
  });
  const Client b = Serving("token-b");
  Serve("b", b);
  Reconfigure([](Config& config) {
    config.tenants.clear();
    config.functions["b"].tenant = "default";
  });
  Serve("b", b);
  for (const char* tenant : {"1", "2"}) {
    EXPECT_THAT(event_log_, HasSubstr(absl::StrCat("tenant_set tenant=", tenant, " weight=1\n")))
        << "the scheduler forgets it";
  }
}

TEST_F(ControllerFunctions, AnAdministratorsRequestAboutARemovedFunctionIsAnswered) {
  const Client a = Serving("token-a");
  Acquire("a");
  ASSERT_TRUE(TakeLease(a));
  std::optional<absl::Status> outcome;
  controller_->Administer({.kind = AdminRequest::Kind::kCheckpoint, .function = "a"},
                          [&](absl::Status status) { outcome = std::move(status); });
  EXPECT_FALSE(outcome);
  Reconfigure(Remove("a"));
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(absl::IsNotFound(*outcome));
}

TEST_F(ControllerFunctions, AdministratorsDoNotReachAnInstanceThatLeaves) {
  Reconfigure([](Config& config) {
    FunctionConfig& a = config.functions["a"];
    a.upstream.clear();
    a.instances["x"] = {"x", "127.0.0.1:9101", ""};
    a.instances["y"] = {"y", "127.0.0.1:9102", ""};
  });
  const Client x = Serving("token-a/x");
  const RequestId running = Acquire("a");
  ASSERT_TRUE(TakeLease(x));
  Reconfigure([](Config& config) { config.functions["a"].instances.erase("x"); });
  const RequestId next = Acquire("a");
  ASSERT_TRUE(IsRunning(next));
  EXPECT_FALSE((*outcome(next).grant)->has_siblings) << "y is alone from now on";
  Release(next);
  std::optional<absl::Status> outcome;
  controller_->Administer({.kind = AdminRequest::Kind::kCheckpoint, .function = "a"},
                          [&](absl::Status status) { outcome = std::move(status); });
  Settle();
  EXPECT_EQ(outcome, absl::OkStatus()) << "y has nothing to save";
  Release(running);
  EXPECT_TRUE(GiveBack(x));
  EXPECT_TRUE(x.link->closed);
  loop_.Advance(std::chrono::minutes(1));
}

}  // namespace
}  // namespace torpor::server
