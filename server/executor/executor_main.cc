#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "base/uuid.h"
#include "server/executor/executor.h"
#include "server/executor/gpu/device_list.h"
#include "server/log/structured_log.h"
#include "server/version.h"

namespace {

using torpor::Bytes;
using torpor::executor::AddressMode;
using torpor::executor::ExecutorOptions;
using torpor::executor::ExitStatus;
using torpor::executor::kLeastGroupBytes;
using torpor::executor::SwapOptions;
using torpor::executor::SwapPipeline;
using torpor::executor::SwapWait;

constexpr const char* kDescription =
    "torpor-executor owns one GPU of the node: its memory, its copies and the kernels that "
    "functions launch.\n\n"
    "torpord starts one for each GPU, tells it over --daemon-socket what to do, and starts another "
    "when it ends. It is not meant to be started by hand, but for --list-devices.";

constexpr const char* kFooter =
    "Exit status:\n"
    "  0  torpord asked it to end (or --list-devices succeeded)\n"
    "  1  it could not start\n"
    "  2  wrong flags\n"
    "  3  a function's work cost the CUDA context; another executor must take over\n"
    "  4  torpord has gone";

struct CommandLine {
  ExecutorOptions options;
  bool list_devices = false;
  std::string log_level = "info";
  std::string log_format = "text";
};

// "auto" or a size.
void AddGroupBytes(CLI::App& app, ExecutorOptions& options) {
  app.add_option_function<std::string>(
         "--swap-group-bytes",
         [&options](const std::string& text) {
           options.measures_link = text == "auto";
           if (options.measures_link) return;
           std::string size = text;  // becomes a plain number
           const std::string wrong = CLI::AsSizeValue(false)(size);
           std::from_chars(size.data(), size.data() + size.size(), options.swap.group_bytes);
           if (wrong.empty() && options.swap.group_bytes >= kLeastGroupBytes) return;
           throw CLI::ValidationError("--swap-group-bytes", "wants auto or at least 64KiB");
         },
         "Size of a group; auto: at which the link is fast, which is measured")
      ->type_name("SIZE")
      ->option_text("auto|BYTES [auto]");
  app.add_option("--link-profile-dir", options.link_profile_dir,
                 "Folder that keeps what was measured; empty: none")
      ->type_name("DIR");
}

// "auto", "none" or sizes.
void AddPartitionSizes(CLI::App& app, ExecutorOptions& options) {
  app.add_option_function<std::string>(
         "--partition-sizes",
         [&options](const std::string& text) {
           options.partition_sizes.reset();
           if (text == "auto") return;
           std::vector<Bytes>& sizes = options.partition_sizes.emplace();
           if (text == "none") return;
           for (std::string& size : CLI::detail::split(text, ',')) {
             const std::string wrong = CLI::AsSizeValue(false)(size);  // becomes a plain number
             Bytes& bytes = sizes.emplace_back(0);
             std::from_chars(size.data(), size.data() + size.size(), bytes);
             if (wrong.empty() && bytes > 0) continue;
             throw CLI::ValidationError("--partition-sizes",
                                        "wants auto, none, or sizes with commas between them");
           }
         },
         "Sizes of the slots in partitions of the arena, for --address-mode=translate; none: "
         "partitions are buddy systems only; auto: 2MiB and 20MiB, where they fit")
      ->type_name("LIST")
      ->option_text("auto|none|BYTES,... [auto]");
}

void AddSwapOptions(CLI::App& app, SwapOptions& swap) {
  app.add_option("--swap-pinned", swap.pinned, "Whether images are pinned for copies")
      ->type_name("BOOL")
      ->capture_default_str();
  const std::map<std::string, SwapPipeline> pipelines = {{"none", SwapPipeline::kNone},
                                                         {"parameter", SwapPipeline::kParameter},
                                                         {"group", SwapPipeline::kGroup}};
  app.add_option("--swap-pipeline", swap.pipeline,
                 "What runs while an image is swapped in: nothing, or what waits for allocations "
                 "that are copied one by one, or in groups")
      ->transform(CLI::CheckedTransformer(pipelines))
      ->option_text("none|parameter|group [group]");
  const std::map<std::string, SwapWait> waits = {{"allocation", SwapWait::kAllocation},
                                                 {"range", SwapWait::kRange}};
  app.add_option(
         "--swap-wait", swap.wait,
         "What a kernel waits for that has a pointer: the allocation, or the group in which "
         "it points")
      ->transform(CLI::CheckedTransformer(waits))
      ->option_text("allocation|range [allocation]");
}

void AddOptions(CLI::App& app, CommandLine& line) {
  ExecutorOptions& options = line.options;
  app.add_flag("--list-devices", line.list_devices,
               "Print the GPUs as one JSON object {\"devices\": [{index, name, uuid, "
               "total_bytes}]} and exit");
  app.add_option("--gpu", options.gpu, "Index of the GPU to own, as the driver counts")
      ->type_name("N");
  app.add_option("--epoch", options.epoch, "Given back to torpord, which tells starts apart by it")
      ->type_name("E");
  app.add_option("--daemon-socket", options.daemon_socket, "torpord's node socket to dial")
      ->type_name("PATH");
  app.add_option("--socket", options.socket, "Where to serve functions; replaced if it exists")
      ->type_name("PATH");
  app.add_option_function<std::string>(
         "--socket-mode",
         [&options](const std::string& text) {
           const char* const end = text.data() + text.size();
           const auto [rest, error] = std::from_chars(text.data(), end, options.socket_mode, 8);
           if (error == std::errc() && rest == end) return;
           throw CLI::ValidationError("--socket-mode", "wants octal digits, for example 0660");
         },
         "Octal mode of that socket")
      ->type_name("MODE")
      ->option_text("MODE [0600]");
  app.add_option("--descriptor-socket", options.descriptor_socket,
                 "Where torpord hands out memory files")
      ->type_name("PATH");
  app.add_option("--module-dir", options.module_dir, "Folder of the node's modules")
      ->type_name("DIR");
  app.add_option(
         "--cuda-library-dir", options.cuda_library_dir,
         "Folder of libcuda.so.1 and the libraries beside it; empty: where the dynamic linker "
         "finds them")
      ->type_name("DIR");
  app.add_option("--driver-reserve", options.driver_reserve,
                 "GPU memory left to the driver for contexts, modules, local memory and "
                 "arrays; at most a quarter of the GPU")
      ->transform(CLI::AsSizeValue(false))
      ->option_text("BYTES [1GiB]");
  app.add_option("--pool-bytes", options.pool_bytes,
                 "GPU memory for images; 0: all but the driver's reserve")
      ->transform(CLI::AsSizeValue(false))
      ->option_text("BYTES [0]");
  app.add_option("--chunk-bytes", options.chunk_bytes, "Unit in which images occupy GPU memory")
      ->transform(CLI::AsSizeValue(false))
      ->option_text("BYTES [2MiB]");
  const std::map<std::string, AddressMode> modes = {{"map", AddressMode::kMap},
                                                    {"translate", AddressMode::kTranslate}};
  app.add_option("--address-mode", options.address_mode,
                 "How the GPU knows images: mapped at the functions' own addresses, or anywhere, "
                 "by addresses that are translated in calls")
      ->transform(CLI::CheckedTransformer(modes))
      ->option_text("map|translate [map]");
  AddPartitionSizes(app, options);
  AddSwapOptions(app, options.swap);
  AddGroupBytes(app, options);
  app.add_option("--log-level", line.log_level, "trace, debug, info, warn, error or off")
      ->capture_default_str();
  app.add_option("--log-format", line.log_format, "Form of a line of the log")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
}

// Empty if all is there.
std::string MissingFlag(const ExecutorOptions& options) {
  if (options.gpu < 0) return "--gpu";
  if (options.daemon_socket.empty()) return "--daemon-socket";
  if (options.socket.empty()) return "--socket";
  if (options.descriptor_socket.empty()) return "--descriptor-socket";
  if (options.module_dir.empty()) return "--module-dir";
  return {};
}

int Fail(const absl::Status& status) {
  std::fputs(fmt::format("torpor-executor: {}\n", std::string(status.message())).c_str(), stderr);
  return static_cast<int>(ExitStatus::kFailure);
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

int Run(int argc, char** argv) {
  CommandLine line;
  CLI::App app(kDescription, "torpor-executor");
  app.footer(kFooter);
  app.set_version_flag("--version", fmt::format("torpor-executor {}", torpor::server::Version()));
  AddOptions(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitStatus::kUsage);
  }
  signal(SIGPIPE, SIG_IGN);
  torpor::server::SetUpLog(line.log_level, line.log_format == "json");
  if (line.list_devices) return ListDevices(line.options.cuda_library_dir);
  if (const std::string missing = MissingFlag(line.options); !missing.empty()) {
    std::fputs(fmt::format("torpor-executor: {} is required\n", missing).c_str(), stderr);
    return static_cast<int>(ExitStatus::kUsage);
  }
  return Fail(torpor::executor::RunExecutor(line.options));
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
