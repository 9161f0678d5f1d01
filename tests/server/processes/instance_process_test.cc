#include "server/processes/instance_process.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <set>
#include <utility>

#include "server/supervisor/process_record.h"
#include "tests/server/processes/scripts.h"

namespace torpor::server {
namespace {

using ::testing::HasSubstr;

class InstanceProcessTest : public ScriptTest {
 protected:
  std::unique_ptr<ChildProcess> Start(const InstanceCommand& command) const {
    auto process = StartInstance(command, record_path());
    EXPECT_TRUE(process.ok()) << process.status();
    return process.ok() ? *std::move(process) : nullptr;
  }
  std::string FailureOf(const InstanceCommand& command) const {
    const auto process = StartInstance(command, record_path());
    EXPECT_FALSE(process.ok());
    EXPECT_FALSE(std::filesystem::exists(record_path()));
    return std::string(process.status().message());
  }
  std::string record_path() const { return folder_.path("record"); }

  static std::string EndOf(ChildProcess& process) {
    pollfd ended = {process.descriptor(), POLLIN, 0};
    EXPECT_EQ(poll(&ended, 1, 30'000), 1);
    std::string why;
    EXPECT_TRUE(process.HasEnded(why));
    return why;
  }
};

TEST_F(InstanceProcessTest, RunsInASessionOfItsOwnWithNothingOfThisProcess) {
  setenv("TORPOR_SECRET_OF_TEST", "x", 1);
  signal(SIGPIPE, SIG_IGN);
  // By the system call: glibc refuses to ignore its own signals.
  const std::array<unsigned long, 4> ignored = {1};
  ASSERT_EQ(syscall(SYS_rt_sigaction, 33, ignored.data(), nullptr, sizeof(unsigned long)), 0);
  // The shell alone: a machine that is short of processes is not what is tested.
  const auto process = Start(Script(R"(
      echo $$ $PWD ${TORPOR_SECRET_OF_TEST:-none} > $PIPE
      read -r _ _ _ _ _ session _ < /proc/$$/stat
      echo $session > $PIPE
      while read -r name value; do
        if [ $name = SigIgn: ]; then echo $value > $PIPE; fi
      done < /proc/$$/status
      umask > $PIPE)"));
  ASSERT_TRUE(process);
  const std::string pid = std::to_string(process->pid());
  EXPECT_EQ(Line(), pid + " / none");
  EXPECT_EQ(Line(), pid);
  EXPECT_EQ(Line(), "0000000000000000");
  EXPECT_EQ(Line(), "0022");
  EXPECT_EQ(EndOf(*process), "exit status 0");
}

TEST_F(InstanceProcessTest, GetsNoFurtherDescriptor) {
  const UniqueFd inheritable(dup(STDERR_FILENO));
  const auto process = Start({.words = {"/bin/sleep", "1000"}});
  ASSERT_TRUE(process);
  std::set<std::string> descriptors;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process->pid()) + "/fd")) {
    descriptors.insert(entry.path().filename());
  }
  EXPECT_EQ(descriptors, (std::set<std::string>{"0", "1", "2"}));
  process->Signal(SIGTERM);
  EXPECT_EQ(EndOf(*process), "signal 15");
}

TEST_F(InstanceProcessTest, IsOnRecordBeforeTheProgramRuns) {
  InstanceCommand command = Script("cat $RECORD > $PIPE; exec sleep 1000");
  command.environment["RECORD"] = record_path();
  const auto process = Start(command);
  ASSERT_TRUE(process);
  const auto identity = IdentityOf(process->pid());
  ASSERT_TRUE(identity);
  EXPECT_EQ(Line(), std::to_string(identity->pid) + " " + std::to_string(identity->start_ticks) +
                        " " + command.Fingerprint());
  EXPECT_EQ(ReadProcessRecord(record_path()), (ProcessRecord{*identity, command.Fingerprint()}));
  process->Signal(SIGKILL);
  EXPECT_EQ(EndOf(*process), "signal 9");
}

TEST_F(InstanceProcessTest, AProgramThatCannotRunIsAnError) {
  EXPECT_THAT(FailureOf({.words = {"/no/such/program"}}),
              HasSubstr("cannot execute /no/such/program"));
  InstanceCommand command = Script("true");
  command.token_file = "/no/such/token";
  EXPECT_THAT(FailureOf(command), HasSubstr("cannot read its token_file /no/such/token"));
}

TEST_F(InstanceProcessTest, ARecordThatCannotBeWrittenIsAnErrorAndNothingRuns) {
  const auto process =
      StartInstance(Script("echo ran > $PIPE"), folder_.path("no/such/folder/record"));
  EXPECT_FALSE(process.ok());
  const auto other = Start(Script("echo other > $PIPE"));
  ASSERT_TRUE(other);
  EXPECT_EQ(Line(), "other");
  EndOf(*other);
}

TEST_F(InstanceProcessTest, ADaemonThatDiesBeforeTheRecordLeavesNoProcess) {
  // The daemon dies in the middle of the record, whose file is a pipe without a reader.
  const std::string record = folder_.path("blocked");
  ASSERT_EQ(mkfifo((record + ".new").c_str(), 0600), 0);
  const pid_t daemon = fork();
  if (daemon == 0) {
    setsid();
    (void)StartInstance(Script("echo ran > $PIPE"), record);
    _exit(0);
  }
  // Once the daemon has a child it is about to write.
  const std::string children =
      "/proc/" + std::to_string(daemon) + "/task/" + std::to_string(daemon) + "/children";
  pid_t child = 0;
  while (child == 0) std::ifstream(children) >> child;
  const auto identity = IdentityOf(child);
  kill(daemon, SIGKILL);
  waitpid(daemon, nullptr, 0);
  ASSERT_TRUE(identity);
  const UniqueFd descriptor = OpenProcess(*identity);
  if (descriptor) {
    pollfd ended = {descriptor.get(), POLLIN, 0};
    EXPECT_EQ(poll(&ended, 1, 30'000), 1) << "the process waits for ever";
  }
  const auto other = Start(Script("echo other > $PIPE"));
  ASSERT_TRUE(other);
  EXPECT_EQ(Line(), "other");
  EndOf(*other);
}

TEST_F(InstanceProcessTest, RootStartsProcessesOfOtherUsersOnly) {
  if (geteuid() != 0) GTEST_SKIP() << "only root starts processes of other users";
  InstanceCommand command = Script(
      "echo $(id -u) $(id -g) $(id -G) > $PIPE; "
      "grep NoNewPrivs /proc/$$/status > $PIPE");
  command.user = ProcessUser{.user = 65534, .group = 65533, .name = "nobody", .home = "/"};
  const auto process = Start(command);
  ASSERT_TRUE(process);
  EXPECT_EQ(Line(), "65534 65533 65533");
  EXPECT_EQ(Line(), "NoNewPrivs:\t1");
  EndOf(*process);

  command.token_file = folder_.path("token");
  std::ofstream(command.token_file) << "secret";
  chmod(command.token_file.c_str(), 0600);
  EXPECT_THAT(FailureOf(command), HasSubstr("as user nobody"));
}

TEST_F(InstanceProcessTest, IsAdoptedByItsRecord) {
  const auto process = Start(Script("echo up > $PIPE; exec sleep 1000"));
  ASSERT_TRUE(process);
  EXPECT_EQ(Line(), "up");
  const auto record = ReadProcessRecord(record_path());
  ASSERT_TRUE(record);
  ProcessIdentity another = record->process;
  another.start_ticks += 1;
  EXPECT_FALSE(ChildProcess::Adopt(another)) << "another process of this number";
  const auto adopted = ChildProcess::Adopt(record->process);
  ASSERT_TRUE(adopted);
  std::string why;
  EXPECT_FALSE(adopted->HasEnded(why));
  adopted->Signal(SIGTERM);
  EXPECT_THAT(EndOf(*adopted), HasSubstr("unknown status"));
  EXPECT_EQ(EndOf(*process), "signal 15");
  EXPECT_FALSE(ChildProcess::Adopt(record->process));
}

TEST_F(InstanceProcessTest, ItsEndTakesItsGroupAlong) {
  const auto process = Start(Script("sleep 1000 & echo $! > $PIPE; exit 4"));
  ASSERT_TRUE(process);
  const auto child = IdentityOf(Number());
  EXPECT_EQ(EndOf(*process), "exit status 4");
  if (!child) return;
  const UniqueFd descriptor = OpenProcess(*child);
  pollfd ended = {descriptor.get(), POLLIN, 0};
  if (!descriptor) return;
  EXPECT_EQ(poll(&ended, 1, 30'000), 1);
}

}  // namespace
}  // namespace torpor::server
