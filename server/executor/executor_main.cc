#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/uuid.h"
#include "server/executor/executor.h"
#include "server/executor/gpu/address_probe.h"
#include "server/executor/gpu/device_list.h"
#include "server/executor/pool_owner_process.h"
#include "server/log/crash_log.h"
#include "server/log/structured_log.h"
#include "server/settings/executor_settings.h"
#include "server/settings/node_addresses.h"
#include "server/version/version.h"

namespace {

using torpor::executor::ExitStatus;
using torpor::server::ExecutorSettings;
using torpor::server::ExecutorSettingTable;
using torpor::server::NodeAddresses;
using torpor::server::Setting;

constexpr const char* kDescription =
    "torpor-executor owns one GPU of the node: its memory, its copies and the kernels that "
    "functions launch.\n\n"
    "torpord starts one executor for each GPU, commands it over daemon_socket, and goes on with a "
    "spare one when it ends. People start torpor-executor for --list-devices and --probe-addresses "
    "only.";

constexpr const char* kExitStatus =
    "Exit status:\n"
    "  0  torpord asked it to end (or --list-devices or --probe-addresses\n     succeeded, or no "
    "executor needs the pool)\n"
    "  1  it could not start\n"
    "  2  wrong flags or settings\n"
    "  3  a function's work cost the CUDA context; another executor must take over\n"
    "  4  torpord has gone, and no other has taken over";

struct CommandLine {
  bool list_devices = false;
  bool own_pool = false;
  std::string probe_addresses;  // empty: no probe
  std::string settings;
  std::string cuda_library_dir;
};

// Lists the settings with values, default and meaning.
std::string SettingsHelp() {
  std::string help =
      "Settings are one JSON object with a text for every key, as in {\"gpu\": \"0\"}:\n";
  for (const Setting<ExecutorSettings>& setting : ExecutorSettingTable()) {
    const std::string by_default =
        setting.is_required ? "required" : fmt::format("default \"{}\"", setting.DefaultText());
    help += fmt::format("  {} ({}, {})\n      {}\n", setting.key, setting.value_name, by_default,
                        setting.help);
  }
  return help;
}

void AddOptions(CLI::App& app, CommandLine& line) {
  app.add_flag("--list-devices", line.list_devices,
               "Print the GPUs as one JSON object {\"devices\": [{index, name, uuid, "
               "total_bytes}]} and exit");
  app.add_option("--probe-addresses", line.probe_addresses,
                 "Try which addresses the driver reserves on all of the GPUs, as torpord asks: "
                 "{\"gpus\": [0], \"base\": ADDRESS, \"bytes\": N}; print {found, why} with the "
                 "index of torpord's first candidate that it reserves, and exit")
      ->type_name("JSON");
  app.add_option("--cuda-library-dir", line.cuda_library_dir,
                 "For --list-devices and --probe-addresses: folder of libcuda.so.1; empty: where "
                 "the dynamic linker finds it")
      ->type_name("DIR");
  app.add_option("--settings", line.settings, "Settings of the executor to start")
      ->type_name("JSON");
  app.add_flag("--own-pool", line.own_pool,
               "With --settings: own the GPU's memory for the GPU's executors, which ask for it at "
               "pool_socket, and run nothing");
}

// Opens standard error once more, for the log: descriptor 2 itself will belong to kernels.
std::FILE* OwnStandardError() {
  const int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  return fd < 0 ? nullptr : fdopen(fd, "w");
}

int Fail(const absl::Status& status, ExitStatus exit_status = ExitStatus::kFailure) {
  std::fputs(fmt::format("torpor-executor: {}\n", std::string(status.message())).c_str(), stderr);
  return static_cast<int>(exit_status);
}

int ListDevices(const std::string& cuda_library_dir) {
  const auto devices = torpor::executor::ListDevices(cuda_library_dir);
  if (!devices.ok()) return Fail(devices.status());
  nlohmann::json list = nlohmann::json::array();
  for (std::size_t i = 0; i < devices->size(); ++i) {
    const torpor::executor::DeviceProperties& device = (*devices)[i];
    list.push_back({{"index", i},
                    {"name", device.name},
                    {"uuid", torpor::FormatUuid({reinterpret_cast<const char*>(device.uuid.data()),
                                                 device.uuid.size()})},
                    {"total_bytes", device.total_bytes}});
  }
  std::puts(nlohmann::json{{"devices", list}}.dump().c_str());
  return static_cast<int>(ExitStatus::kShutdown);
}

int ProbeAddresses(const CommandLine& line) {
  std::vector<int> gpus;
  std::vector<NodeAddresses> candidates;
  try {
    const auto request = nlohmann::json::parse(line.probe_addresses);
    gpus = request.at("gpus").get<std::vector<int>>();
    candidates = torpor::server::AddressCandidates(request.at("base").get<std::uint64_t>(),
                                                   request.at("bytes").get<torpor::Bytes>());
  } catch (const nlohmann::json::exception& error) {
    return Fail(absl::InvalidArgumentError(absl::StrCat("--probe-addresses: ", error.what())),
                ExitStatus::kUsage);
  }
  const auto probe = torpor::executor::ProbeAddresses(line.cuda_library_dir, gpus, candidates);
  if (!probe.ok()) return Fail(probe.status());
  nlohmann::json found;
  if (probe->found) found = *probe->found;
  std::puts(nlohmann::json{{"found", found}, {"why", probe->why}}.dump().c_str());
  return static_cast<int>(ExitStatus::kShutdown);
}

int Run(int argc, char** argv) {
  CommandLine line;
  CLI::App app(kDescription, "torpor-executor");
  app.footer(SettingsHelp() + "\n" + kExitStatus);
  app.set_version_flag("--version", fmt::format("torpor-executor {}", torpor::server::Version()));
  AddOptions(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitStatus::kUsage);
  }
  signal(SIGPIPE, SIG_IGN);
  if (line.list_devices || !line.probe_addresses.empty()) {
    torpor::server::SetUpLog(torpor::server::LogLevel::kInfo, torpor::server::LogFormat::kText);
    return line.list_devices ? ListDevices(line.cuda_library_dir) : ProbeAddresses(line);
  }
  const auto settings = torpor::server::ParseExecutorSettings(line.settings);
  if (!settings.ok()) return Fail(settings.status(), ExitStatus::kUsage);
  std::FILE* const log = OwnStandardError();
  if (log == nullptr) return Fail(absl::ErrnoToStatus(errno, "cannot open the log"));
  torpor::server::SetUpLog(settings->log.level, settings->log.format, log);
  torpor::server::LogUncaughtExceptions();
  const absl::Status failed = line.own_pool ? torpor::executor::RunPoolOwner(*settings)
                                            : torpor::executor::RunExecutor(*settings);
  std::fprintf(log, "torpor-executor: %s\n", std::string(failed.message()).c_str());
  return static_cast<int>(ExitStatus::kFailure);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run(argc, argv);
  } catch (const std::exception& error) {
    std::fputs("torpor-executor: ", stderr);
    std::fputs(error.what(), stderr);
    std::fputs("\n", stderr);
    return static_cast<int>(ExitStatus::kFailure);
  }
}
