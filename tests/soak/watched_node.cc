#include "tests/soak/watched_node.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "base/units.h"
#include "tests/e2e/await_status.h"
#include "tests/e2e/child_process.h"
#include "tests/e2e/run_environment.h"
#include "tests/soak/accounts.h"
#include "tools/torporctl/node_report.h"

namespace torpor::soak {
namespace {

using std::chrono::seconds;

// How much more a process may have in the end than after the warm-up, with as many functions.
constexpr Bytes kMaxAnonymousGrowth = 16 * kMiB;
constexpr int kMaxDescriptorGrowth = 8;

constexpr Bytes kMaxSharedLeft = 1 * kMiB;
constexpr Bytes kLeastChunk = 2 * kMiB;

constexpr const char* kDaemon = "torpord";
constexpr const char* kRouter = "router";
constexpr const char* kSparedExecutor = "executor 0";

bool IsExecutor(const std::string& process) { return process != kDaemon && process != kRouter; }

// What a process may have: an executor is killed before long, but not the one of GPU 0.
const e2e::ProcessFigures& ReferenceOf(const std::string& process,
                                       const WatchedNode::Figures& warm) {
  return warm.at(IsExecutor(process) ? kSparedExecutor : process);
}

// The memory that a process may go on mapping: chunks of other GPUs from which images came (an
// emulated GPU has a descriptor for each), and the arena.
struct Kept {
  Bytes peers = 0;
  Bytes arena = 0;

  int descriptors() const { return static_cast<int>(peers / kLeastChunk); }
};

Bytes PoolsOf(const v1::NodeStatus& status) {
  Bytes bytes = 0;
  for (const v1::GpuStatus& gpu : status.gpus()) bytes += gpu.pool_bytes();
  return bytes;
}

// Whether a node without functions uses no more than before its functions came, `kept` apart.
bool IsBare(const e2e::ProcessFigures& left, const e2e::ProcessFigures& bare, const Kept& kept) {
  return left.shared <= bare.shared + kMaxSharedLeft + kept.arena + kept.peers &&
         left.descriptor_count() <=
             bare.descriptor_count() + kMaxDescriptorGrowth + kept.descriptors();
}

}  // namespace

WatchedNode::WatchedNode(e2e::EmulatedNode& node)
    : node_(node), socket_(node.folder().path() + "/admin/admin.sock") {}

void WatchedNode::Start() {
  ASSERT_NO_FATAL_FAILURE(node_.Start());
  WaitForStatus("every GPU is ready", [](const v1::NodeStatus& status) {
    return std::all_of(status.gpus().begin(), status.gpus().end(),
                       [](const v1::GpuStatus& gpu) { return gpu.state() == "ready"; });
  });
  executors_ = e2e::DescendantsOf(node_.daemon().pid());
  bare_ = Measure();
}

v1::NodeStatus WatchedNode::Status() const {
  const auto status = torporctl::FetchStatus(socket_);
  EXPECT_TRUE(status.ok()) << status.status();
  return status.ok() ? *status : v1::NodeStatus();
}

void WatchedNode::WaitForStatus(const std::string& what,
                                const std::function<bool(const v1::NodeStatus&)>& is_so) const {
  ASSERT_EQ(e2e::AwaitStatus(socket_, what, is_so), absl::OkStatus());
}

WatchedNode::Figures WatchedNode::Measure() const {
  Figures figures = {{kDaemon, e2e::FiguresOf(node_.daemon().pid())},
                     {kRouter, e2e::FiguresOf(node_.RouterProcess())}};
  const v1::NodeStatus status = Status();
  for (const v1::GpuStatus& gpu : status.gpus()) {
    figures[fmt::format("executor {}", gpu.gpu())] =
        e2e::FiguresOf(static_cast<pid_t>(gpu.executor_pid()));
  }
  return figures;
}

void WatchedNode::Print(const char* when, const Figures& figures) {
  for (const auto& [process, values] : figures) {
    e2e::Say(
        fmt::format("{:18} {:11} {:4} MiB of its own, {:4} MiB shared, {:4} descriptors, "
                    "{:3} threads\n",
                    when, process, values.anonymous / kMiB, values.shared / kMiB,
                    values.descriptor_count(), values.threads));
  }
}

void WatchedNode::CheckGrowth(const Figures& warm, const Figures& after, int functions) const {
  const Bytes pools = PoolsOf(Status());
  for (const auto& [process, figures] : after) {
    const e2e::ProcessFigures& before = ReferenceOf(process, warm);
    const Kept kept{.peers = IsExecutor(process) ? pools : 0};
    EXPECT_LE(figures.anonymous, before.anonymous + kMaxAnonymousGrowth) << process;
    // Connections to functions that were asked a moment ago are kept.
    EXPECT_LE(figures.descriptor_count(),
              before.descriptor_count() + kMaxDescriptorGrowth + functions + kept.descriptors())
        << process << " has " << figures.DescriptorText() << "; it had " << before.DescriptorText();
  }
}

void WatchedNode::CheckThatFunctionsLeaveNothing(bool is_translating) const {
  WaitForStatus("no session is left", [](const v1::NodeStatus& status) {
    return status.sessions() == 0 && status.host_image_bytes() == 0;
  });
  CheckGpusAreEmpty(socket_);
  Figures left;
  const v1::NodeStatus status = Status();
  const Kept of_executors{.peers = PoolsOf(status),
                          .arena = is_translating ? status.gpus(0).pool_bytes() : 0};
  const auto is_bare = [&](const auto& process) {
    return IsBare(process.second, bare_.at(process.first),
                  IsExecutor(process.first) ? of_executors : Kept());
  };
  // Connections to functions are closed a little later.
  WaitForStatus("memory and descriptors of the functions are gone", [&](const auto&) {
    left = Measure();
    return std::all_of(left.begin(), left.end(), is_bare);
  });
  Print("without functions", left);
  for (const auto& [process, figures] : left) {
    if (!is_bare(*left.find(process))) e2e::Say(process + ": " + figures.DescriptorText() + "\n");
  }
}

void WatchedNode::CheckThatTheDaemonLeavesNothing() {
  std::vector<pid_t> processes = e2e::DescendantsOf(node_.daemon().pid());
  EXPECT_EQ(processes.size(), executors_.size()) << "processes of the daemon";
  node_.daemon().Signal(SIGTERM);
  EXPECT_EQ(node_.daemon().Wait(seconds(60)), 0);
  for (const pid_t process : processes) {
    EXPECT_TRUE(e2e::WaitUntilGone(process, seconds(10))) << e2e::ProgramNameOf(process);
  }
}

std::string WatchedNode::EndOfLog() const {
  constexpr std::size_t kMaxLog = 64 << 10;
  const std::string log = node_.daemon().Stderr();
  return "the end of torpord's log:\n" + log.substr(log.size() - std::min(log.size(), kMaxLog));
}

}  // namespace torpor::soak
