#include "tests/e2e/emulated_node.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <utility>

#include "absl/strings/str_replace.h"
#include "base/units.h"
#include "tests/e2e/await.h"
#include "tests/e2e/metrics_page.h"

namespace torpor::e2e {
namespace {

constexpr auto kStartPatience = std::chrono::seconds(150);

const std::string kTorporctl = std::string(TORPOR_BIN_DIR) + "/torporctl";

// What a GPU of these tests has besides images.
constexpr Bytes kNotForImages = 8 * kMiB;

const std::regex& MemoryInMebibytes() {
  static const std::regex memory("memory: ([0-9]+)MiB");
  return memory;
}

// Returns `topology` with GPUs larger than it says, since a strict driver takes memory for contexts
// and code, and appends to `settings` the pool that a GPU of that size would have had.
std::string WithRoomForTheDriver(const std::string& topology, std::string& settings) {
  std::smatch found;
  if (!std::regex_search(topology, found, MemoryInMebibytes())) return topology;
  const Bytes memory = std::stoull(found[1]) * kMiB;
  settings += fmt::format("pool_bytes: {}MiB\n", (memory - kNotForImages) / kMiB);
  return std::regex_replace(topology, MemoryInMebibytes(),
                            fmt::format("memory: {}MiB", (memory + memory / 4) / kMiB + 64));
}

}  // namespace

EmulatedNode::Port EmulatedNode::FreePort() {
  Port port = {UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), 0};
  const int fd = port.holder.get();
  // A socket that does not listen shares its port with one that wants to, if both say so.
  const int on = 1;
  EXPECT_EQ(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  port.number = ntohs(address.sin_port);
  return port;
}

EmulatedNode::EmulatedNode(const std::string& topology, const std::vector<std::string>& functions,
                           const std::string& settings, int gpus,
                           const std::string& function_setting)
    : programs_(TORPOR_BIN_DIR) {
  std::string pool;
  folder_.Write("topology.yaml", WithRoomForTheDriver(topology, pool));
  std::string yaml =
      "version: v1\n"
      "run_dir: .\n"
      "state_dir: state\n"
      "metrics_address: 127.0.0.1:0\n"
      "emulator_topology: topology.yaml\n" +
      settings;
  // Measuring the links, and spare executors, would take their time at every start.
  for (const std::string& name :
       {std::string("driver_reserve: 8MiB\n"), pool, std::string("swap_group_bytes: 2MiB\n"),
        std::string("spare_executor: false\n"), std::string("http_address: 127.0.0.1:0\n")}) {
    if (settings.find(name.substr(0, name.find(' '))) == std::string::npos) yaml += name;
  }
  yaml += "functions:\n";
  std::string last_function;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const std::size_t slash = functions[i].find('/');
    const std::string function = functions[i].substr(0, slash);
    if (function != std::exchange(last_function, function)) {
      yaml += "  - name: " + function + "\n";
      yaml += "    deadline: 1s\n    upstream_timeout: 60s\n";
      if (function_setting.find("memory_limit:") == std::string::npos) {
        yaml += "    memory_limit: 1GiB\n";
      }
      if (i == 0) yaml += "    gpus: " + std::to_string(gpus) + "\n";
      if (!function_setting.empty()) {
        yaml += "    " +
                absl::StrReplaceAll(function_setting, {{"{function}", function},
                                                       {"{initial}", function.substr(0, 1)}}) +
                "\n";
      }
      if (slash != std::string::npos) yaml += "    instances:\n";
    }
    // Known before the function starts: it is in the configuration.
    const Port& port = ports_[functions[i]] = FreePort();
    const std::string token_file = fmt::format("{}.token", i);
    folder_.Write(token_file, "secret-of-the-function-" + functions[i] + "\n");
    if (slash != std::string::npos)
      yaml += "      - name: " + functions[i].substr(slash + 1) + "\n";
    const char* const indent = slash == std::string::npos ? "    " : "        ";
    yaml += fmt::format("{}upstream: 127.0.0.1:{}\n", indent, port.number);
    yaml += fmt::format("{}token_file: {}\n", indent, token_file);
  }
  config_path_ = folder_.Write("config.yaml", yaml);
}

EmulatedNode::~EmulatedNode() {
  // A router outlives a torpord that is killed.
  const pid_t router = RouterProcess();
  if (is_under_init_) {
    daemon_->Signal(SIGTERM);
    daemon_->Wait(kPatience);
  }
  daemon_.reset();
  if (router > 0) kill(router, SIGKILL);
}

void EmulatedNode::Start() { StartDaemon({programs_ + "/torpord", "--config-file", config_path_}); }

void EmulatedNode::StartUnderInit() {
  is_under_init_ = true;
  StartDaemon(
      {programs_ + "/torpor-init", "--", programs_ + "/torpord", "--config-file", config_path_});
}

void EmulatedNode::InstallPrograms() {
  namespace fs = std::filesystem;
  programs_ = folder_.path() + "/bin";
  fs::create_directory(programs_);
  for (const std::string name : {"torpord", "torpor-executor", "torpor-init", "torpor-router"}) {
    // As package managers do: what runs keeps the file that it was started from.
    const std::string installed = programs_ + "/" + name;
    fs::copy_file(std::string(TORPOR_BIN_DIR) + "/" + name, installed + ".new");
    fs::rename(installed + ".new", installed);
  }
  const std::string libraries = folder_.path() + "/lib";
  if (!fs::exists(libraries)) {
    fs::create_directory_symlink(std::string(TORPOR_BIN_DIR) + "/../lib", libraries);
  }
}

pid_t EmulatedNode::TorpordProcess() const {
  std::ifstream lock(folder_.path() + "/torpord.lock");
  pid_t torpord = 0;
  lock >> torpord;
  return torpord;
}

void EmulatedNode::RestartTorpord(int signal) const {
  const pid_t torpord = TorpordProcess();
  ASSERT_EQ(kill(torpord, signal), 0);
  const auto serves = [&] {
    return TorpordProcess() != torpord && Status().value("state", "") == "ready";
  };
  ASSERT_EQ(Await("the next torpord serves", serves), absl::OkStatus()) << Logs();
}

void EmulatedNode::StartDaemon(const std::vector<std::string>& command) {
  daemon_ = std::make_unique<ChildProcess>(command, ChildProcess::Options{folder_.path(), {}});
  const TimePoint give_up = SteadyClock().Now() + kStartPatience;
  nlohmann::json status = nlohmann::json::object();
  while (status.value("state", "") != "ready") {
    ASSERT_LT(SteadyClock().Now(), give_up) << Logs();
    ASSERT_FALSE(daemon_->Wait(std::chrono::milliseconds(20)).has_value()) << Logs();
    status = Status();
  }
  http_address_ = status.at("http_address");
}

void EmulatedNode::StartFunction(const std::string& name, std::vector<std::string> program) {
  program.insert(program.end(), {"--port", std::to_string(ports_.at(name).number)});
  instances_[name] = RunProgram({"--function", name}, program);
  ASSERT_NE(instances_[name]->WaitForLine("listening on", kStartPatience), "") << Logs();
}

std::vector<std::string> EmulatedNode::RunCommand(const std::vector<std::string>& options,
                                                  const std::vector<std::string>& program) const {
  std::vector<std::string> command = {kTorporctl, "--config-file", config_path_, "run"};
  command.insert(command.end(), options.begin(), options.end());
  command.emplace_back("--");
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

std::unique_ptr<ChildProcess> EmulatedNode::RunProgram(
    const std::vector<std::string>& options, const std::vector<std::string>& program) const {
  return std::make_unique<ChildProcess>(RunCommand(options, program),
                                        ChildProcess::Options{folder_.path(), {}});
}

std::vector<Reply> EmulatedNode::PostAll(const std::vector<Post>& posts) const {
  return e2e::PostAll(http_address_, posts);
}

Reply EmulatedNode::PostOne(const std::string& path, const std::string& body) const {
  return PostAll({{path, body}}).front();
}

nlohmann::json EmulatedNode::Status() const {
  ChildProcess torporctl(
      {kTorporctl, "status", "--output", "json", "--socket", folder_.path() + "/admin/admin.sock"},
      {folder_.path(), {}});
  if (torporctl.Wait(kStartPatience) != 0) return nlohmann::json::object();
  return nlohmann::json::parse(torporctl.Stdout(), nullptr, false);
}

pid_t EmulatedNode::ExecutorOf(std::size_t gpu) const {
  return Status().at("gpus").at(gpu).at("executor_pid").get<pid_t>();
}

pid_t EmulatedNode::RouterProcess() const {
  std::ifstream record(folder_.path() + "/router.pid");
  pid_t router = 0;
  record >> router;
  return router;
}

nlohmann::json EmulatedNode::ResidentGpus(const std::string& function) const {
  const auto functions =
      nlohmann::json::parse(Torporctl({"functions", "--output", "json"})).at("functions");
  for (const auto& one : functions) {
    if (one.at("name") == function) return one.at("resident_gpus");
  }
  return {};
}

void EmulatedNode::WaitUntilIdle() const {
  const auto is_idle = [](const nlohmann::json& gpu) {
    return gpu.at("leased_to").get<std::string>().empty();
  };
  const auto are_idle = [&] {
    const nlohmann::json gpus = Status().at("gpus");
    return std::all_of(gpus.begin(), gpus.end(), is_idle);
  };
  EXPECT_EQ(Await("no GPU is leased", are_idle), absl::OkStatus()) << Logs();
}

void EmulatedNode::WaitUntilKnownDead(std::size_t gpu, pid_t executor) const {
  const auto is_known = [&] { return ExecutorOf(gpu) != executor; };
  EXPECT_EQ(Await("torpord knows that an executor is dead", is_known), absl::OkStatus()) << Logs();
}

std::string EmulatedNode::Metrics() const {
  return ReadMetrics(Status().at("metrics_address").get<std::string>());
}

std::string EmulatedNode::Torporctl(std::vector<std::string> arguments) const {
  arguments.insert(arguments.end(), {"--socket", folder_.path() + "/admin/admin.sock"});
  const auto torporctl = RunToItsEnd("torporctl", arguments, folder_.path());
  EXPECT_EQ(torporctl->Wait(Duration::zero()), 0) << torporctl->Stderr();
  return torporctl->Stdout();
}

std::string EmulatedNode::RefusedTorporctl(std::vector<std::string> arguments) const {
  arguments.insert(arguments.end(), {"--socket", folder_.path() + "/admin/admin.sock"});
  const auto torporctl = RunToItsEnd("torporctl", arguments, folder_.path());
  EXPECT_NE(torporctl->Wait(Duration::zero()), 0) << torporctl->Stdout();
  return torporctl->Stderr();
}

std::string EmulatedNode::Logs() const {
  std::string text = "torpord:\n" + daemon_->Stdout() + daemon_->Stderr();
  for (const auto& [name, process] : instances_) {
    text += name + ":\n" + process->Stdout() + process->Stderr();
  }
  return text;
}

}  // namespace torpor::e2e
