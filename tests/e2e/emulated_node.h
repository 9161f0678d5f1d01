#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "nlohmann/json.hpp"
#include "tests/base/temporary_folder.h"
#include "tests/e2e/child_process.h"
#include "tests/e2e/http_posts.h"

namespace torpor::e2e {

// Topologies of two GPUs without room for many images, the second with a fast link between them.
inline constexpr const char* kTwoSmallGpus = R"(version: v1
gpus:
  - memory: 96MiB
    count: 2
)";
inline constexpr const char* kTwoLinkedGpus = R"(version: v1
gpus:
  - {memory: 96MiB, pcie_gbps: 4, count: 2}
nvlinks: {gbps_per_link: 8, pairs: [{gpus: [0, 1]}]}
)";

// torpord on emulated GPUs, in a folder of its own, and the functions that it serves. Whatever
// fails to start is a failure of the test (check HasFatalFailure).
class EmulatedNode {
 public:
  // A port of this machine, reserved while the object lives: a server that names its number can
  // listen there.
  struct Port {
    UniqueFd holder;
    int number = 0;
  };
  static Port FreePort();

  // `settings` are further lines of the configuration; `gpus`, how many GPUs the first function
  // has; `function_setting`, a line of every function's, where {function} is its name, and
  // {initial} the first letter of that. FUNCTION/INSTANCE stands for an instance: those of a
  // function follow each other.
  EmulatedNode(const std::string& topology, const std::vector<std::string>& functions,
               const std::string& settings = "", int gpus = 1,
               const std::string& function_setting = "");

  ~EmulatedNode();

  // Starts torpord; another one if there was one, which must be dead.
  void Start();
  // Starts torpord by torpor-init, which starts it again when it dies, and is daemon() then.
  void StartUnderInit();
  // Puts the daemon's programs into the node's folder, as another build of those that are there.
  // Before the start the node is to be started from there.
  void InstallPrograms();
  // The process of torpord itself, of the last one if it is dead.
  pid_t TorpordProcess() const;
  // Kills torpord, or sends it another signal, and waits until the next one serves. Under
  // torpor-init.
  void RestartTorpord(int signal = SIGKILL) const;
  // Starts an instance of the function and waits until it listens.
  void StartFunction(const std::string& name, std::vector<std::string> program);

  ChildProcess& daemon() { return *daemon_; }
  ChildProcess& function(const std::string& name) { return *instances_.at(name); }
  void StopFunction(const std::string& name) { instances_.erase(name); }

  // Through the router, all at the same time; the answers come in the order of the requests.
  std::vector<Reply> PostAll(const std::vector<Post>& posts) const;
  Reply PostOne(const std::string& path, const std::string& body) const;

  // `torporctl status` as JSON.
  nlohmann::json Status() const;
  // Its executor's process.
  pid_t ExecutorOf(std::size_t gpu) const;
  // The process of its router; 0 while there is none.
  pid_t RouterProcess() const;
  // By index, those that the function is on, or on its way to.
  nlohmann::json ResidentGpus(const std::string& function) const;
  // Waits until no GPU is leased: the answer to a request may come before its lease has ended.
  void WaitUntilIdle() const;
  // Waits until the daemon knows that this executor, which was killed, is dead.
  void WaitUntilKnownDead(std::size_t gpu, pid_t executor) const;
  // The page of its metrics server.
  std::string Metrics() const;
  // Runs torporctl with these arguments against this node's daemon. Expects success; returns its
  // output.
  std::string Torporctl(std::vector<std::string> arguments) const;
  // Runs torporctl likewise. Expects a failure; returns the text on stderr.
  std::string RefusedTorporctl(std::vector<std::string> arguments) const;

  // Runs `torporctl run --function` with a program that is expected to end.
  std::unique_ptr<ChildProcess> RunProgram(const std::vector<std::string>& options,
                                           const std::vector<std::string>& program) const;

  // Where the function's server is expected.
  int PortOf(const std::string& function) const { return ports_.at(function).number; }

  // The router's host:port.
  const std::string& http_address() const { return http_address_; }

  const TemporaryFolder& folder() const { return folder_; }
  // What everybody has written, for a failure's message; of torpord, the last one.
  std::string Logs() const;

 private:
  void StartDaemon(const std::vector<std::string>& command);
  std::vector<std::string> RunCommand(const std::vector<std::string>& options,
                                      const std::vector<std::string>& program) const;

  TemporaryFolder folder_;
  std::string config_path_;
  std::map<std::string, Port> ports_;
  std::string http_address_;
  std::unique_ptr<ChildProcess> daemon_;
  bool is_under_init_ = false;
  std::string programs_;  // folder of the daemon's programs
  std::map<std::string, std::unique_ptr<ChildProcess>> instances_;
};

}  // namespace torpor::e2e
