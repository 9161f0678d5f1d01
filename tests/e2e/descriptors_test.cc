// Programs open more connections than torpord has descriptors: 1,024.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/clock.h"
#include "tests/e2e/await.h"
#include "tests/e2e/emulated_node.h"

namespace torpor::e2e {
namespace {

constexpr rlim_t kLimit = 1024;

// A process that has opened connections and says nothing on them.
class SilentConnections {
 public:
  // Returns once so many connections are open, or refused.
  SilentConnections(const std::string& path, int count) {
    std::array<int, 2> ready{};
    EXPECT_EQ(pipe(ready.data()), 0);
    process_ = fork();
    if (process_ == 0) Hold(path, count, ready[1]);
    close(ready[1]);
    char word = 0;
    EXPECT_EQ(read(ready[0], &word, 1), 1);
    close(ready[0]);
  }
  ~SilentConnections() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  SilentConnections(const SilentConnections&) = delete;
  SilentConnections& operator=(const SilentConnections&) = delete;

 private:
  [[noreturn]] static void Hold(const std::string& path, int count, int ready) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    for (int i = 0; i < count; ++i) {
      const int connection = socket(AF_UNIX, SOCK_STREAM, 0);
      // A refusal is what the test is about.
      (void)connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    }
    if (write(ready, "x", 1) != 1) _exit(1);
    while (true) pause();
  }

  pid_t process_ = 0;
};

class Descriptors : public testing::Test {
 protected:
  void SetUp() override {
    constexpr rlimit kLimits{kLimit, kLimit};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &kLimits), 0) << "for the node's processes, too";
    ASSERT_NO_FATAL_FAILURE(node_.Start());
    ASSERT_NO_FATAL_FAILURE(Start("one"));
  }
  void TearDown() override {
    if (HasFailure()) std::fputs(node_.Logs().c_str(), stderr);
  }

  void Start(const std::string& function) {
    node_.StartFunction(function, {std::string(DRIVEN_DIR) + "/state_server", "--megabytes", "1"});
  }
  void ExpectServed(const std::string& function) const {
    const Reply reply = node_.PostOne("/function/" + function + "/add", R"({"value":[1]})");
    EXPECT_EQ(reply.status, 200) << reply.body;
  }

  EmulatedNode node_{"version: v1\ngpus:\n  - memory: 96MiB\n", {"one", "two"}};
};

TEST_F(Descriptors, IdleConnectionsTakeThemFromNobodyElseAndGiveThemBack) {
  {
    const std::string socket = node_.folder().path("functions/torpor.sock");
    const SilentConnections some(socket, 550);
    const SilentConnections more(socket, 550);
    const auto are_refused = [&] {
      return node_.Logs().find("no descriptors are left for connections") != std::string::npos;
    };
    ASSERT_EQ(Await("connections are refused", are_refused), absl::OkStatus());
    ExpectServed("one");
    EXPECT_EQ(node_.Status().at("state"), "ready") << "administration has its own";
  }
  const TimePoint released = SteadyClock().Now();
  ASSERT_NO_FATAL_FAILURE(Start("two"));
  ExpectServed("two");
  std::printf("a new function served %.2f s after the connections' end\n",
              std::chrono::duration<double>(SteadyClock().Now() - released).count());
}

}  // namespace
}  // namespace torpor::e2e
