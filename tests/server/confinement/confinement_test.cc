#include "server/confinement/confinement.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/landlock.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "tests/base/temporary_folder.h"

namespace torpor::server {
namespace {

bool HasLandlock() {
  return syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) > 0;
}

// Runs `work` in a process that has confined itself; a true result is exit status 0.
int RunConfined(const Confinement& confinement, const std::function<bool()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    Confine(confinement);
    _exit(work() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

bool MayRead(const std::string& path) {
  return static_cast<bool>(UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC)));
}

bool MayWrite(const std::string& path) {
  return static_cast<bool>(UniqueFd(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)));
}

std::string StatusLine(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) return line.substr(line.find_last_of(" \t") + 1);
  }
  return "";
}

class ConfinementTest : public testing::Test {
 protected:
  ConfinementTest() {
    for (const char* const name : {"mine", "secret", "work"}) {
      std::filesystem::create_directory(folder_.path(name));
    }
    folder_.Write("mine/file", "x");
    folder_.Write("secret/token", "x");
    folder_.Write("work/old", "x");
  }
  Confinement Strict() const {
    return {.seccomp = Seccomp::kEnforce,
            .readable = {folder_.path("mine"), "/proc", "/usr", "/lib", "/nowhere/at/all"},
            .writable = {folder_.path("work")}};
  }

  TemporaryFolder folder_;
};

TEST_F(ConfinementTest, FilesBeyondTheGivenOnesAreNotThere) {
  if (!HasLandlock()) GTEST_SKIP() << "the kernel has no Landlock";
  ASSERT_TRUE(MayRead(folder_.path("secret/token")));
  EXPECT_EQ(RunConfined(Strict(), [&] { return MayRead(folder_.path("mine/file")); }), 0);
  EXPECT_EQ(RunConfined(Strict(), [&] { return MayWrite(folder_.path("work/new")); }), 0);
  EXPECT_EQ(RunConfined(Strict(), [&] { return MayRead(folder_.path("work/old")); }), 0);
  EXPECT_EQ(RunConfined(Strict(), [&] { return MayRead(folder_.path("secret/token")); }), 1);
  EXPECT_EQ(RunConfined(Strict(), [&] { return MayWrite(folder_.path("mine/file")); }), 1);
}

TEST_F(ConfinementTest, NoProgramIsStartedAndNoProcessTraced) {
  const pid_t parent = getpid();
  EXPECT_EQ(RunConfined(Strict(),
                        [] {
                          execl("/bin/true", "true", nullptr);
                          return errno == EPERM || errno == EACCES;
                        }),
            0);
  EXPECT_EQ(RunConfined(Strict(), [&] { return ptrace(PTRACE_ATTACH, parent, 0, 0) == 0; }), 1);
  int here = 7;
  const iovec local = {&here, sizeof here};
  EXPECT_EQ(
      RunConfined(Strict(), [&] { return process_vm_readv(parent, &local, 1, &local, 1, 0) > 0; }),
      1);
  EXPECT_EQ(
      RunConfined(Strict(), [&] { return MayRead("/proc/" + std::to_string(parent) + "/mem"); }),
      HasLandlock() ? 1 : 0);
}

TEST_F(ConfinementTest, ItSignalsItselfAlone) {
  const pid_t parent = getpid();
  EXPECT_EQ(RunConfined(Strict(), [&] { return kill(parent, 0) == 0; }), 1);
  EXPECT_EQ(RunConfined(Strict(), [&] { return syscall(SYS_tgkill, parent, parent, 0) == 0; }), 1);
  EXPECT_EQ(RunConfined(Strict(), [] { return kill(getpid(), SIGKILL) == 0; }), -SIGKILL);
  EXPECT_EQ(RunConfined(Strict(), [] { return raise(SIGTERM) == 0; }), -SIGTERM);
}

TEST_F(ConfinementTest, OnlyLocalSocketsAreMade) {
  EXPECT_EQ(RunConfined(Strict(), [] { return socket(AF_UNIX, SOCK_STREAM, 0) >= 0; }), 0);
  for (const int family : {AF_INET, AF_INET6, AF_NETLINK, AF_PACKET}) {
    EXPECT_EQ(RunConfined(Strict(), [&] { return socket(family, SOCK_DGRAM, 0) >= 0; }), 1);
  }
}

TEST_F(ConfinementTest, NamespacesAreNotMade) {
  EXPECT_EQ(RunConfined(Strict(), [] { return unshare(CLONE_NEWUSER) == 0; }), 1);
  EXPECT_EQ(
      RunConfined(Strict(),
                  [] { return syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0) >= 0; }),
      1);
}

TEST_F(ConfinementTest, WorkGoesOn) {
  EXPECT_EQ(RunConfined(Strict(),
                        [] {
                          int result = 0;
                          std::thread([&] { result = 5; }).join();
                          const UniqueFd file(memfd_create("x", MFD_CLOEXEC));
                          if (ftruncate(file.get(), 4096) != 0) return false;
                          void* const code = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                                                  MAP_SHARED, file.get(), 0);
                          return code != MAP_FAILED && result == 5;
                        }),
            0);
}

TEST_F(ConfinementTest, TheKernelSaysSo) {
  EXPECT_EQ(RunConfined(Strict(),
                        [] {
                          return StatusLine("CapEff") == "0000000000000000" &&
                                 StatusLine("CapPrm") == "0000000000000000" &&
                                 StatusLine("NoNewPrivs") == "1" && StatusLine("Seccomp") == "2";
                        }),
            0);
}

// Without a filter all else is in force, and the operator is told what is not.
TEST_F(ConfinementTest, WhatIsNotInForceIsTold) {
  const Confinement off = {.seccomp = Seccomp::kOff, .readable = {}, .writable = {}};
  EXPECT_EQ(RunConfined(off,
                        [] {
                          return StatusLine("CapEff") == "0000000000000000" &&
                                 StatusLine("NoNewPrivs") == "1" && StatusLine("Seccomp") == "0";
                        }),
            0);
  const pid_t child = fork();
  if (child == 0) {
    const std::vector<std::string> missing = Confine(off);
    const bool is_right = missing.size() == 2 && missing[0].starts_with("files: ") &&
                          missing[1].starts_with("system calls: ");
    _exit(is_right ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace torpor::server
