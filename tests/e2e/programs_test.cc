// Every self-checking CUDA program, over the replacement libraries and a private daemon.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/e2e/child_process.h"

namespace torpor::e2e {
namespace {

constexpr auto kPatience = std::chrono::seconds(110);

// One GPU that is large enough for every program, two for good measure.
constexpr const char* kTopology = R"(version: v1
gpus:
  - memory: 2GiB
    count: 2
)";

class Programs : public testing::TestWithParam<const char*> {
 protected:
  TemporaryFolder folder_;
};

TEST_P(Programs, Pass) {
  ChildProcess program({std::string(TORPOR_BIN_DIR) + "/torporctl", "run", "--standalone",
                        "--topology", folder_.Write("topology.yaml", kTopology), "--",
                        std::string(PROGRAM_DIR) + "/" + GetParam()},
                       {folder_.path(), {}});
  const auto status = program.Wait(kPatience);
  EXPECT_EQ(status, 0) << program.Stderr();
  // The program's stdout passes through untouched.
  EXPECT_EQ(program.Stdout(), "PASS\n") << program.Stderr();
}

INSTANTIATE_TEST_SUITE_P(E2e, Programs,
                         testing::Values("vector_add", "vector_add_by_pointer", "tiled_matmul",
                                         "streams_events", "default_stream",
                                         "default_stream_per_thread", "copies", "symbols",
                                         "device_state", "reductions", "arithmetic", "big_copies",
                                         "many_launches", "threads", "errors", "sticky_error",
                                         "attributes", "blas"),
                         [](const auto& info) { return std::string(info.param); });

class StandaloneRun : public testing::Test {
 protected:
  std::vector<std::string> Command(const std::vector<std::string>& program) const {
    std::vector<std::string> command = {
        std::string(TORPOR_BIN_DIR) + "/torporctl", "run", "--standalone", "--topology",
        folder_.Write("topology.yaml", kTopology),  "--"};
    command.insert(command.end(), program.begin(), program.end());
    return command;
  }

  TemporaryFolder folder_;
};

TEST_F(StandaloneRun, EndsWithTheProgramsStatus) {
  ChildProcess program(Command({"/bin/sh", "-c", "echo out; echo err >&2; exit 7"}),
                       {folder_.path(), {}});
  EXPECT_EQ(program.Wait(kPatience), 7);
  EXPECT_EQ(program.Stdout(), "out\n");
  EXPECT_NE(program.Stderr().find("err\n"), std::string::npos);
}

TEST_F(StandaloneRun, SeveralRunAtOnce) {
  const std::string program = std::string(PROGRAM_DIR) + "/vector_add";
  ChildProcess first(Command({program}), {folder_.path(), {}});
  ChildProcess second(Command({program}), {folder_.path(), {}});
  EXPECT_EQ(first.Wait(kPatience), 0) << first.Stderr();
  EXPECT_EQ(second.Wait(kPatience), 0) << second.Stderr();
}

TEST_F(StandaloneRun, LeavesNothingBehind) {
  TemporaryFolder temporary;
  ChildProcess program(Command({std::string(PROGRAM_DIR) + "/vector_add"}),
                       {folder_.path(), {{"TMPDIR", temporary.path()}}});
  EXPECT_EQ(program.Wait(kPatience), 0) << program.Stderr();
  EXPECT_TRUE(std::filesystem::is_empty(temporary.path()));
}

TEST(NodeRun, WithoutADaemonTheProgramEndsWithAnErrorOfItsOwn) {
  const TemporaryFolder folder;
  ChildProcess program(
      {std::string(TORPOR_BIN_DIR) + "/torporctl", "run", "--socket",
       folder.path() + "/nobody.sock", "--", std::string(PROGRAM_DIR) + "/vector_add"},
      {folder.path(), {}});
  const auto status = program.Wait(std::chrono::seconds(30));
  EXPECT_EQ(status, 1) << program.Stderr();
  EXPECT_NE(program.Stdout().find("FAIL"), std::string::npos);
  EXPECT_NE(program.Stderr().find("nobody.sock"), std::string::npos) << program.Stderr();
}

}  // namespace
}  // namespace torpor::e2e
