#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "proto/wire/control_messages.h"
#include "server/config/config_loader.h"
#include "server/daemon/client_libraries.h"
#include "server/daemon/cuda_libraries.h"
#include "server/daemon/topology_preset.h"
#include "server/version/version.h"
#include "tools/torporctl/admin_requests.h"
#include "tools/torporctl/cuda_linkage.h"
#include "tools/torporctl/explanation.h"
#include "tools/torporctl/function_settings.h"
#include "tools/torporctl/memory_report.h"
#include "tools/torporctl/node_report.h"
#include "tools/torporctl/standalone_run.h"
#include "tools/torporctl/user_program.h"

namespace torpor::torporctl {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
constexpr int kExitOurs = 125;  // `run` failed before the program could start
constexpr int kExitNotExecutable = 126;
constexpr int kExitNotFound = 127;

constexpr const char* kFooter =
    "Examples:\n"
    "  torporctl status\n"
    "  torporctl functions --output json\n"
    "  torporctl function set digits --deadline 80ms\n"
    "  torporctl apply -f functions.yaml --dry-run\n"
    "  torporctl load digits --gpu 1\n"
    "  torporctl run --function digits -- ./digits --port 9001\n"
    "  torporctl run --standalone -- ./vectorAdd\n\n"
    "Exit status: 0; 1 if no daemon answers, or says why not; 2 for a wrong flag or "
    "configuration. `run` ends as the "
    "program does (torporctl run --help).\n\n"
    "Files:\n"
    "  /etc/torpor/config.yaml  where the daemon's sockets and the functions' tokens are named";

constexpr const char* kRunFooter =
    "The program and its arguments follow --:\n"
    "  torporctl run [OPTIONS] -- PROGRAM [ARGUMENTS...]\n\n"
    "The program's stdin, stdout and stderr pass through untouched; what torporctl says is on "
    "stderr. The program must load the CUDA runtime as a shared library: nvcc -cudart shared.\n\n"
    "Exit status:\n"
    "  the program's, or 128 and the signal's number if a signal killed it\n"
    "  2    a wrong flag\n"
    "  125  Torpor failed: no daemon, no token\n"
    "  126  the program may not be run\n"
    "  127  there is no such program\n\n"
    "Environment: TORPOR_CONFIG_FILE names the daemon's configuration; the program gets "
    "TORPOR_SOCKET, TORPOR_TOKEN, LD_LIBRARY_PATH and LD_PRELOAD (docs/torporctl.md). Read in the "
    "program (docs/shim.md):\n"
    "  TORPOR_TRACE       summary: which CUDA calls waited, and who made them, on stderr; json: "
    "also\n"
    "                     a file for chrome://tracing or Perfetto\n"
    "  TORPOR_TRACE_FILE  that file (torpor-trace.%p.json; %p is the process's number)\n"
    "  TORPOR_LOG         off, warn, debug: what the libraries say on stderr";

constexpr const char* kFunctionFooter =
    "A change counts for requests that arrive from then on; other functions' requests, sessions "
    "and GPUs are left alone. What changes is printed, a line each. torpord opens the token file, "
    "so it must be able to read it. Changes are kept in torpord's state_dir over restarts, until "
    "the configuration file says something else about the function.\n\n"
    "Examples:\n"
    "  torporctl function add vision --memory-limit 2GiB --token-file /etc/torpor/vision \\\n"
    "                                --upstream 127.0.0.1:9003\n"
    "  torporctl function set vision --deadline 80ms --priority 1\n"
    "  torporctl function set digits/b --upstream 10.0.0.7:9001\n"
    "  torporctl function remove vision\n\n"
    "Exit status: 0; 1 if nothing has changed, with the reason on stderr; 2 for a wrong flag.";

constexpr const char* kApplyFooter =
    "The file holds functions and tenants as torpord's own does (docs/configuration.md). Those "
    "that it names become as it says; others stay, unless --prune. What changes is printed, a "
    "line each. If any part is wrong, or could only be applied by a restart, nothing changes and "
    "that part is named, with its line.\n\n"
    "Examples:\n"
    "  torporctl apply -f functions.yaml --dry-run\n"
    "  torporctl apply -f functions.yaml --prune\n\n"
    "Exit status: 0; 1 if nothing has changed, with the reason on stderr; 2 for a wrong flag or a "
    "file that cannot be read.";

struct Options {
  std::string config_file;
  std::string socket;  // the daemon's client socket or admin socket, by command
  std::string output = "table";
  std::string function;
  std::string request;
  std::map<std::string, std::string> settings;  // those that are given, by key
  std::string file;                             // of apply
  bool prune = false;
  bool is_trial = false;
  std::optional<int> gpu;
  std::string token_file;
  bool is_standalone = false;
  StandaloneOptions standalone;
  std::vector<std::string> program;
};

int Fail(const absl::Status& status, int exit_status) {
  Say(std::string(status.message()));
  return exit_status;
}

// Reads the daemon's configuration. A missing file means defaults, unless the user named the file.
absl::StatusOr<server::Config> DaemonConfig(const Options& options) {
  server::ConfigSources sources;
  sources.environment = server::ProcessEnvironment;
  const auto named = options.config_file.empty() ? server::ProcessEnvironment("TORPOR_CONFIG_FILE")
                                                 : std::optional(options.config_file);
  sources.file = named.value_or(server::kDefaultConfigFile);
  if (!named && !std::filesystem::exists(sources.file)) sources.file.clear();
  return server::LoadConfig(sources);
}

// Returns --socket, else the admin socket of the daemon's configuration.
absl::StatusOr<std::string> AdminSocket(const Options& options) {
  if (!options.socket.empty()) return options.socket;
  const absl::StatusOr<server::Config> config = DaemonConfig(options);
  if (!config.ok()) return config.status();
  return config->admin_socket;
}

// Sends an administrator's request about options.function and waits for the outcome. Returns the
// exit status.
template <typename Ask>
int SendRequest(const Options& options, Ask ask) {
  const absl::StatusOr<std::string> socket = AdminSocket(options);
  if (!socket.ok()) return Fail(socket.status(), kExitUsage);
  const absl::Status status = ask(*socket, options.function);
  return status.ok() ? 0 : Fail(status, kExitFailure);
}

// Fetches a response from the daemon and prints a table or JSON. Returns the exit status.
template <typename Fetch, typename Table, typename Json>
int Report(const Options& options, Fetch fetch, Table table, Json json) {
  const absl::StatusOr<std::string> socket = AdminSocket(options);
  if (!socket.ok()) return Fail(socket.status(), kExitUsage);
  const auto response = fetch(*socket);
  if (!response.ok()) return Fail(response.status(), kExitFailure);
  const std::string text = options.output == "json" ? json(*response) : table(*response);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

// Sends a change and prints what is changed. Returns the exit status.
int ChangeConfiguration(const Options& options, const server::ConfigRequest& request) {
  const absl::StatusOr<std::string> socket = AdminSocket(options);
  if (!socket.ok()) return Fail(socket.status(), kExitUsage);
  const absl::StatusOr<std::vector<std::string>> changes = Configure(*socket, request);
  if (!changes.ok()) return Fail(changes.status(), kExitFailure);
  for (const std::string& line : *changes) std::puts(line.c_str());
  if (changes->empty()) std::puts("nothing changes");
  return 0;
}

// Returns what is wrong with the settings of `function add` or `set`, as far as the command line
// shows.
absl::Status CheckSettings(const server::ConfigRequest& request) {
  using Kind = server::ConfigRequest::Kind;
  if (request.kind == Kind::kSet && request.settings.empty()) {
    return absl::InvalidArgumentError(
        "function set: name what to change, for example --deadline 80ms");
  }
  if (request.function.find('/') != std::string::npos) {
    if (request.kind == Kind::kAdd) {
      return absl::InvalidArgumentError(
          "function add: instances come with the file of `torporctl apply`");
    }
    server::InstanceConfig trial;
    return server::SetInstance(trial, request.settings);
  }
  server::FunctionConfig trial;
  return server::SetFunction(trial, request.settings);
}

// Adds a function or changes one. Checks the settings here, so that errors of the command line are
// reported without a daemon. Returns the exit status.
int ChangeFunction(const Options& options, server::ConfigRequest::Kind kind) {
  server::ConfigRequest request{.kind = kind, .function = options.function};
  for (const auto& [key, text] : options.settings) {
    const bool is_path = server::FindSetting(server::FunctionSettings(), key)->is_path;
    request.settings.emplace_back(
        key, is_path && !text.empty() ? std::filesystem::absolute(text).string() : text);
  }
  const absl::Status usable = CheckSettings(request);
  return usable.ok() ? ChangeConfiguration(options, request) : Fail(usable, kExitUsage);
}

// Sends a file of functions and tenants. Returns the exit status.
int ApplyFile(const Options& options) {
  std::ifstream stream(options.file);
  std::ostringstream text;
  if (!stream || !(text << stream.rdbuf())) {
    return Fail(absl::NotFoundError(options.file + ": cannot be read"), kExitUsage);
  }
  return ChangeConfiguration(options, {.kind = server::ConfigRequest::Kind::kApply,
                                       .text = text.str(),
                                       .file_name = std::filesystem::absolute(options.file),
                                       .prune = options.prune,
                                       .is_trial = options.is_trial});
}

// Returns the first word of the file; NotFound for a missing or blank file.
absl::StatusOr<std::string> ReadToken(const std::string& file) {
  std::ifstream stream(file);
  std::string token;
  if (!(stream >> token)) {
    return absl::NotFoundError(fmt::format("{}: no token can be read from it", file));
  }
  return token;
}

// Returns the token for `torporctl run`: of --token-file, else of the function's configuration;
// empty if the function has no token or no function is given.
absl::StatusOr<std::string> TokenOf(const Options& options, const server::Config& config) {
  if (!options.token_file.empty()) return ReadToken(options.token_file);
  if (options.function.empty()) return std::string();
  std::vector<std::string> instances;
  const auto function =
      config.functions.find(options.function.substr(0, options.function.find('/')));
  if (function != config.functions.end()) {
    for (const server::InstanceConfig& instance : server::InstancesOf(function->second)) {
      instances.push_back(server::FullNameOf(function->second, instance));
      if (instances.back() != options.function) continue;
      return instance.token_file.empty() ? std::string() : ReadToken(instance.token_file);
    }
  }
  if (instances.empty()) {
    return absl::NotFoundError(
        fmt::format("there is no function {} in the configuration; add it, or name its token with "
                    "--token-file",
                    options.function));
  }
  return absl::NotFoundError(fmt::format("{} is no instance; name one of {}", options.function,
                                         fmt::join(instances, ", ")));
}

// Replaces this process by the program, connected to the node's daemon.
int RunOnNode(const UserProgram& program, const Options& options) {
  const bool needs_config = options.socket.empty() || options.token_file.empty();
  absl::StatusOr<server::Config> config =
      needs_config ? DaemonConfig(options) : absl::StatusOr<server::Config>(server::Config());
  if (!config.ok()) return Fail(config.status(), kExitOurs);
  const absl::StatusOr<std::string> token = TokenOf(options, *config);
  if (!token.ok()) return Fail(token.status(), kExitOurs);
  const std::string& socket = options.socket.empty() ? config->client_socket : options.socket;
  SetEnvironment(ClientEnvironment(server::ClientLibraryDirectory(), socket, *token));
  return Execute(program);
}

// Runs the program of `torporctl run`. Returns only for errors and for standalone runs; otherwise
// the program replaces this process.
int RunProgram(const Options& options) {
  absl::StatusOr<UserProgram> program = FindUserProgram(options.program);
  if (absl::IsNotFound(program.status())) return Fail(program.status(), kExitNotFound);
  if (!program.ok()) return Fail(program.status(), kExitNotExecutable);
  if (const std::string warning = LinkageWarningOfFile(program->path); !warning.empty()) {
    Say(fmt::format("warning: {} runs without Torpor: {}", program->path, warning));
  }
  return options.is_standalone ? RunStandalone(*program, options.standalone)
                               : RunOnNode(*program, options);
}

void AddAdminSocketOption(CLI::App& command, Options& options) {
  command
      .add_option("--socket", options.socket,
                  "torpord's admin socket (default: the configuration's admin_socket)")
      ->type_name("PATH");
}

void AddReportOptions(CLI::App& command, Options& options) {
  command.add_option("-o,--output", options.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  AddAdminSocketOption(command, options);
}

// Adds a command for an administrator's request, with the function's name as argument.
CLI::App& AddRequestCommand(CLI::App& app, Options& options, const char* name,
                            const char* description) {
  CLI::App& command = *app.add_subcommand(name, description);
  command
      .add_option("function", options.function,
                  "The function, or one of its instances as FUNCTION/INSTANCE")
      ->required();
  AddAdminSocketOption(command, options);
  return command;
}

struct FunctionCommands {
  CLI::App& show;
  CLI::App& add;
  CLI::App& set;
  CLI::App& remove;
};

// Adds an option for each setting of a function.
void AddSettingOptions(CLI::App& command, Options& options) {
  for (const auto& setting : server::FunctionSettings()) {
    if (setting.key == "name") continue;
    const auto take = [&options, key = std::string(setting.key)](const std::string& text) {
      options.settings[key] = text;
    };
    command
        .add_option_function<std::string>(server::FlagName(setting.key), take,
                                          std::string(setting.help))
        ->type_name(setting.value_name);
  }
}

FunctionCommands AddFunctionCommands(CLI::App& app, Options& options) {
  CLI::App& function =
      *app.add_subcommand("function", "Show, add, change or remove a function while torpord runs");
  function.require_subcommand(1);
  const auto add_command = [&](const char* name, const char* description) -> CLI::App& {
    CLI::App& command = *function.add_subcommand(name, description);
    command.add_option("function", options.function, "The function's name")->required();
    return command;
  };
  CLI::App& show = add_command("show", "Show a function's objective and how many requests met it");
  AddReportOptions(show, options);
  CLI::App& add = add_command("add", "Add a function");
  CLI::App& set = add_command("set", "Change a function's settings");
  CLI::App& remove = add_command(
      "remove", "Remove a function: running requests end, then its programs lose the GPU");
  set.get_option("function")
      ->description(
          "The function, or one of its instances as "
          "FUNCTION/INSTANCE (only --upstream and --token-file)");
  for (CLI::App* const command : {&add, &set}) AddSettingOptions(*command, options);
  function.footer(kFunctionFooter);
  for (CLI::App* const command : {&add, &set, &remove}) command->footer(kFunctionFooter);
  for (CLI::App* const command : {&add, &set, &remove}) AddAdminSocketOption(*command, options);
  return {show, add, set, remove};
}

CLI::App& AddApplyCommand(CLI::App& app, Options& options) {
  CLI::App& apply = *app.add_subcommand(
      "apply", "Add and change the functions and tenants of a file, all of them or nothing");
  apply.add_option("-f,--file", options.file, "In the form of torpord's configuration file")
      ->type_name("FILE")
      ->required();
  apply.add_flag("--prune", options.prune, "Remove functions and tenants that the file lacks");
  apply.add_flag("--dry-run", options.is_trial, "Only print what would change");
  AddAdminSocketOption(apply, options);
  apply.footer(kApplyFooter);
  return apply;
}

// Replaces a preset's name by the preset's file. Returns an error for an unknown name.
std::string TakeTopology(std::string& text) {
  text = server::FindTopology(text, server::ProgramDirectory());
  return CLI::ExistingFile(text);
}

void AddRunOptions(CLI::App& command, Options& options) {
  auto* const function =
      command.add_option("-f,--function", options.function, "Run as an instance of this function")
          ->type_name("NAME[/INSTANCE]");
  auto* const token =
      command
          .add_option("--token-file", options.token_file,
                      "File with the function's token (default: the configuration's)")
          ->type_name("FILE");
  auto* const socket =
      command
          .add_option("--socket", options.socket,
                      "torpord's client socket (default: the configuration's client_socket)")
          ->type_name("PATH");
  auto* const standalone =
      command.add_flag("--standalone", options.is_standalone,
                       "Start a private daemon, on an emulated GPU where there is none, and stop "
                       "it afterwards; any number can run at once");
  standalone->excludes(function)->excludes(token)->excludes(socket);
  command
      .add_option("--topology", options.standalone.topology,
                  "With --standalone: the emulated node, or the name of a preset "
                  "(docs/emulator.md)")
      ->transform(CLI::Validator(TakeTopology, "FILE"))
      ->needs(standalone);
  command
      .add_option("--gpus", options.standalone.gpus,
                  "With --standalone: how many GPUs the program sees")
      ->type_name("COUNT")
      ->check(CLI::Range(1, wire::kMaxDevices))
      ->capture_default_str()
      ->needs(standalone);
  command
      .add_flag("--verbose", options.standalone.verbose,
                "With --standalone: show the daemon's log on stderr")
      ->needs(standalone);
  command.footer(kRunFooter);
}

// Parses the arguments, without the program's own name, and runs the command. Returns the exit
// status.
int Run(std::vector<std::string> arguments) {
  Options options;
  CLI::App app("Inspects and administers a Torpor node, and runs CUDA programs on its GPUs.",
               "torporctl");
  app.set_version_flag("--version", fmt::format("torporctl {}", server::Version()));
  app.footer(kFooter);
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("-c,--config-file", options.config_file,
                 "torpord's configuration (environment: TORPOR_CONFIG_FILE; default: "
                 "/etc/torpor/config.yaml if that exists)")
      ->type_name("FILE");
  CLI::App& status = *app.add_subcommand("status", "Show the node and its GPUs");
  AddReportOptions(status, options);
  CLI::App& functions =
      *app.add_subcommand("functions", "List the functions with state, memory and use");
  AddReportOptions(functions, options);
  const FunctionCommands function = AddFunctionCommands(app, options);
  CLI::App& apply = AddApplyCommand(app, options);
  CLI::App& explain = *app.add_subcommand("explain", "Tell why a request waited and where it ran");
  explain.add_option("request", options.request, "The request's X-Request-Id")->required();
  AddReportOptions(explain, options);
  CLI::App& memory = *app.add_subcommand("memory", "Show GPU and host memory by function");
  AddReportOptions(memory, options);
  CLI::App& load =
      AddRequestCommand(app, options, "load",
                        "Swap a function's memory in to a GPU ahead of requests; waits until done");
  load.add_option("--gpu", options.gpu, "Index of the GPU (default: torpord chooses)")
      ->check(CLI::NonNegativeNumber);
  CLI::App& evict = AddRequestCommand(
      app, options, "evict", "Evict an idle function's memory from the GPUs; waits until done");
  CLI::App& pin = AddRequestCommand(
      app, options, "pin",
      "Evict a function only where evicting all others together leaves too little room");
  CLI::App& unpin =
      AddRequestCommand(app, options, "unpin", "Undo pin: evict the function like any other");
  CLI::App& checkpoint =
      AddRequestCommand(app, options, "checkpoint",
                        "Write a function's changed GPU memory back to host memory, where the "
                        "loss of an executor does not harm the data; waits until done");
  CLI::App& run = *app.add_subcommand("run", "Run a CUDA program on shared GPUs");
  AddRunOptions(run, options);

  // Arguments after `--` belong to the program, whatever they look like.
  const auto separator = std::find(arguments.begin(), arguments.end(), "--");
  if (separator != arguments.end()) options.program.assign(separator + 1, arguments.end());
  arguments.erase(separator, arguments.end());
  try {
    std::reverse(arguments.begin(), arguments.end());  // CLI11's order of a vector
    app.parse(arguments);
    if (run.parsed() && options.program.empty()) {
      throw CLI::RequiredError("run: a program, as in `torporctl run -- ./program`,");
    }
  } catch (const CLI::ExtrasError& error) {
    Say(fmt::format("{}", error.what()));
    if (run.parsed()) Say("a program follows --, as in `torporctl run -- ./program ARGUMENTS`");
    return kExitUsage;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  if (status.parsed()) return Report(options, FetchStatus, StatusTable, StatusJson);
  if (functions.parsed()) return Report(options, FetchFunctions, FunctionsTable, FunctionsJson);
  using Kind = server::ConfigRequest::Kind;
  if (function.add.parsed()) return ChangeFunction(options, Kind::kAdd);
  if (function.set.parsed()) return ChangeFunction(options, Kind::kSet);
  if (function.remove.parsed()) {
    return ChangeConfiguration(options, {.kind = Kind::kRemove, .function = options.function});
  }
  if (apply.parsed()) return ApplyFile(options);
  if (function.show.parsed()) {
    const auto fetch = [&](const std::string& socket) {
      return FetchFunction(socket, options.function);
    };
    return Report(options, fetch, FunctionText, FunctionJson);
  }
  if (explain.parsed()) {
    const auto fetch = [&](const std::string& socket) {
      return FetchExplanation(socket, options.request);
    };
    return Report(options, fetch, ExplanationText, ExplanationJson);
  }
  if (memory.parsed()) return Report(options, FetchMemory, MemoryTable, MemoryJson);
  if (load.parsed()) {
    return SendRequest(options, [&](const std::string& socket, const std::string& function) {
      return Load(socket, function, options.gpu);
    });
  }
  if (evict.parsed()) return SendRequest(options, Evict);
  if (checkpoint.parsed()) return SendRequest(options, Checkpoint);
  if (pin.parsed() || unpin.parsed()) {
    return SendRequest(options, [&](const std::string& socket, const std::string& function) {
      return Pin(socket, function, pin.parsed());
    });
  }
  return RunProgram(options);
}

}  // namespace
}  // namespace torpor::torporctl

int main(int argc, char** argv) {
  try {
    return torpor::torporctl::Run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    std::fputs("torporctl: ", stderr);
    std::fputs(error.what(), stderr);
    std::fputs("\n", stderr);
    return 1;
  }
}
