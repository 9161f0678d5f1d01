// `torporctl` beside a running daemon, and its errors without a daemon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tests/base/temporary_folder.h"
#include "tests/e2e/emulated_node.h"

namespace torpor::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

class Torporctl : public testing::Test {
 protected:
  std::unique_ptr<ChildProcess> Run(const std::vector<std::string>& arguments) const {
    return RunToItsEnd("torporctl", arguments, folder_.path());
  }

  const TemporaryFolder folder_;
};

class TorporctlOnANode : public Torporctl {
 protected:
  explicit TorporctlOnANode(const std::string& settings = "")
      : node_(kTwoSmallGpus, {"busy", "absent"}, settings) {}
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(node_.Start());
    ASSERT_NO_FATAL_FAILURE(node_.StartFunction(
        "busy", {std::string(DRIVEN_DIR) + "/state_server", "--megabytes", "48"}));
  }

  std::string Show(const std::string& what, const std::string& format) const {
    return node_.Torporctl({what, "--output", format});
  }

  nlohmann::json Busy() const {
    const auto functions = nlohmann::json::parse(Show("functions", "json")).at("functions");
    return functions[functions[0].at("name") == "busy" ? 0 : 1];
  }

  Reply Add(int value) const {
    return node_.PostOne("/function/busy/add", "{\"value\":[" + std::to_string(value) + "]}");
  }

  EmulatedNode node_;
};

class TorporctlUnderABudget : public TorporctlOnANode {
 protected:
  TorporctlUnderABudget() : TorporctlOnANode("host_memory: 80MiB\n") {}
};

TEST_F(TorporctlUnderABudget, WhatDoesNotFitIntoHostMemoryIsRefusedAndTold) {
  const auto before = nlohmann::json::parse(Show("status", "json"));
  EXPECT_EQ(before.at("host_memory_bytes"), 80 << 20);
  EXPECT_GE(before.at("host_memory_used_bytes"), 48 << 20);
  EXPECT_EQ(before.at("host_memory_refusals"), 0);
  const auto program = node_.RunProgram(
      {"--token-file", node_.folder().Write("program.token", "secret-of-the-function-absent"),
       "--socket", node_.folder().path() + "/functions/torpor.sock"},
      {std::string(PROGRAM_DIR) + "/segments"});
  EXPECT_NE(program->Wait(std::chrono::seconds(60)), 0);
  EXPECT_THAT(program->Stdout() + program->Stderr(), HasSubstr("gave cudaErrorMemoryAllocation"));
  EXPECT_THAT(node_.Logs(), HasSubstr("of host_memory 80MiB; raise host_memory"));
  const auto after = nlohmann::json::parse(Show("status", "json"));
  EXPECT_GE(after.at("host_memory_refusals"), 1);
  EXPECT_THAT(Show("status", "table"), HasSubstr("of 80.0MiB allocated, "));
  EXPECT_EQ(Add(1).status, 200) << "others go on";
}

TEST_F(TorporctlOnANode, StatusShowsTheNodeAndItsGpus) {
  const auto status = nlohmann::json::parse(Show("status", "json"));
  EXPECT_EQ(status.at("state"), "ready");
  EXPECT_EQ(status.at("sessions"), 1);
  ASSERT_EQ(status.at("gpus").size(), 2U);
  for (const auto& gpu : status.at("gpus")) {
    EXPECT_EQ(kill(gpu.at("executor_pid").get<pid_t>(), 0), 0);
    EXPECT_EQ(gpu.at("executor_restarts"), 0);
    EXPECT_LE(gpu.at("used_bytes"), gpu.at("pool_bytes"));
    EXPECT_EQ(gpu.at("link_bytes_per_second"), 0);
    EXPECT_EQ(gpu.at("swap_group_bytes"), 2 << 20);
  }
  const std::string table = Show("status", "table");
  EXPECT_THAT(table, HasSubstr("state     ready\n"));
  EXPECT_THAT(table, HasSubstr("GPU  STATE"));
}

class TorporctlOnMeasuredLinks : public TorporctlOnANode {
 protected:
  TorporctlOnMeasuredLinks() : TorporctlOnANode("swap_group_bytes: auto\n") {}
};

TEST_F(TorporctlOnMeasuredLinks, StatusShowsThem) {
  for (const auto& gpu : node_.Status().at("gpus")) {
    EXPECT_GT(gpu.at("link_bytes_per_second"), 0);
    EXPECT_GE(gpu.at("swap_group_bytes"), 64 << 10);
  }
  EXPECT_THAT(Show("status", "table"), HasSubstr("GB/s"));
}

TEST_F(TorporctlOnANode, MemoryAddsUp) {
  ASSERT_EQ(Add(1).status, 200);
  const auto memory = nlohmann::json::parse(Show("memory", "json"));
  std::uint64_t of_busy = 0;
  for (const auto& gpu : memory.at("gpus")) {
    const auto bytes = [](const nlohmann::json& of, const char* what) {
      return of.at(what).get<std::uint64_t>();
    };
    EXPECT_EQ(bytes(gpu, "used_bytes") + bytes(gpu, "cached_bytes") + bytes(gpu, "free_bytes"),
              bytes(gpu, "pool_bytes"));
    for (const auto& function : gpu.at("functions")) {
      EXPECT_EQ(function.at("name"), "busy");
      of_busy += bytes(function, "used_bytes");
    }
  }
  EXPECT_GE(of_busy, 48U << 20);
  EXPECT_THAT(Show("memory", "table"), HasSubstr("GPU  FUNCTION"));
}

TEST_F(TorporctlOnANode, FunctionsShowsWhatEachHasUsed) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(node_.PostOne("/function/busy/add", R"({"value":[1]})").status, 200);
  }
  const auto functions = nlohmann::json::parse(Show("functions", "json")).at("functions");
  ASSERT_EQ(functions.size(), 2U);
  const auto& absent = functions[functions[0].at("name") == "absent" ? 0 : 1];
  const auto& busy = functions[functions[0].at("name") == "absent" ? 1 : 0];
  EXPECT_EQ(busy.at("requests"), 3);
  EXPECT_EQ(busy.at("errors"), 0);
  EXPECT_EQ(busy.at("sessions"), 1);
  EXPECT_EQ(busy.at("resident_gpus").size(), 1U);
  EXPECT_GE(busy.at("image_bytes"), 48 << 20);
  EXPECT_GT(busy.at("gpu_seconds"), 0.0);
  EXPECT_EQ(absent.at("sessions"), 0);
  EXPECT_TRUE(absent.at("resident_gpus").empty());
  EXPECT_NE(absent.at("state"), busy.at("state"));
  const std::string table = Show("functions", "table");
  EXPECT_THAT(table, HasSubstr("FUNCTION  STATE"));
  EXPECT_THAT(table, HasSubstr("\nbusy "));
  EXPECT_THAT(table, HasSubstr("\nabsent "));
}

TEST_F(TorporctlOnANode, AnAdministratorPutsMemoryWhereItShallBe) {
  const std::string answer = Add(1).body;
  for (const int gpu : {0, 1, 0}) {
    node_.Torporctl({"load", "busy", "--gpu", std::to_string(gpu)});
    const nlohmann::json there = Busy().at("resident_gpus");
    EXPECT_EQ(std::count(there.begin(), there.end(), gpu), 1) << there;
    EXPECT_EQ(Add(0).body, answer);
  }
  node_.Torporctl({"evict", "busy"});
  EXPECT_EQ(Busy().at("resident_gpus"), nlohmann::json::array());
  EXPECT_EQ(Add(0).body, answer);
  node_.Torporctl({"pin", "busy"});
  EXPECT_EQ(Busy().at("is_pinned"), true);
  node_.Torporctl({"unpin", "busy"});
  EXPECT_EQ(Busy().at("is_pinned"), false);
}

TEST_F(TorporctlOnANode, ACheckpointIsWhatAnExecutorsDeathLeaves) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Add(1).status, 200);
  const std::string answer = Add(0).body;
  node_.Torporctl({"checkpoint", "busy"});
  const auto gpu = Busy().at("resident_gpus").at(0).get<std::size_t>();
  const auto executor = node_.Status().at("gpus").at(gpu).at("executor_pid").get<pid_t>();
  ASSERT_EQ(kill(executor, SIGKILL), 0);
  Reply after;
  for (int i = 0; i < 500 && after.status != 200; ++i) after = Add(0);
  EXPECT_EQ(after.body, answer);
}

TEST_F(TorporctlOnANode, HintsThatCannotBeFollowedSayWhy) {
  const std::string socket = node_.folder().path() + "/admin/admin.sock";
  const auto absent = Run({"load", "absent", "--socket", socket});
  EXPECT_EQ(absent->Wait(Duration::zero()), 1);
  EXPECT_THAT(absent->Stderr(), HasSubstr("absent has no process"));
  const auto unknown = Run({"evict", "nobody", "--socket", socket});
  EXPECT_EQ(unknown->Wait(Duration::zero()), 1);
  EXPECT_THAT(unknown->Stderr(), HasSubstr("there is no function nobody"));
}

TEST_F(Torporctl, WithoutADaemonEachCommandSaysSo) {
  const std::string socket = folder_.path() + "/nobody.sock";
  for (const char* command : {"status", "functions"}) {
    const auto shown = Run({command, "--socket", socket});
    EXPECT_EQ(shown->Wait(Duration::zero()), 1);
    EXPECT_EQ(shown->Stdout(), "");
    EXPECT_THAT(shown->Stderr(), HasSubstr("torporctl: no torpord answers on " + socket));
  }
}

TEST_F(Torporctl, WithoutADaemonAProgramsCudaCallsFail) {
  const auto program = Run({"run", "--socket", folder_.path() + "/nobody.sock", "--",
                            std::string(PROGRAM_DIR) + "/vector_add"});
  EXPECT_EQ(program->Wait(Duration::zero()), 1) << program->Stderr();
  EXPECT_THAT(program->Stdout(), HasSubstr("FAIL"));
  EXPECT_THAT(program->Stderr(), HasSubstr("nobody.sock"));
}

TEST_F(Torporctl, WrongUseIsStatus2) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {}, {"state"}, {"status", "--output", "xml"}, {"run"}, {"run", "./program"}}) {
    const auto refused = Run(arguments);
    EXPECT_EQ(refused->Wait(Duration::zero()), 2);
    EXPECT_EQ(refused->Stdout(), "");
    EXPECT_THAT(refused->Stderr(), Not(HasSubstr("terminate")));
  }
}

TEST_F(Torporctl, AConfigurationThatIsMissingIsNamed) {
  const auto status = Run({"--config-file", "/nowhere.yaml", "status"});
  EXPECT_EQ(status->Wait(Duration::zero()), 2);
  EXPECT_THAT(status->Stderr(), HasSubstr("/nowhere.yaml"));
  const auto run = Run({"--config-file", "/nowhere.yaml", "run", "--", "/bin/true"});
  EXPECT_EQ(run->Wait(Duration::zero()), 125);
  EXPECT_THAT(run->Stderr(), HasSubstr("/nowhere.yaml"));
}

}  // namespace
}  // namespace torpor::e2e
